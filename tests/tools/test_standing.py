"""A skill needs standing before it gets tools; a call that a model proposes needs its own yes (SAF-1, X-43)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from navigator_kernel.bootstrap.places import open_consents
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.sandbox.consents import ConsentStore
from navigator_kernel.tools.guarded import GuardedTools
from navigator_kernel.values.standing import skill_subject
from tools.test_desk import Served, Tool, call, desk, offered, work

if TYPE_CHECKING:
    from navigator_kernel.values.work import AgentTask

pytestmark = pytest.mark.requirement("SAF-1", "X-43")


@dataclass
class Inside(Tool):
    """A tool that contacts nobody else."""

    outward: bool = False


@pytest.fixture
def book() -> ConsentStore:
    return open_consents()


def unknown(*tools: str) -> AgentTask:
    return replace(work(*tools), standing="unknown")


def asked(held: GuardedTools, order: AgentTask, name: str, **arguments: Any) -> ConsentNeeded:
    with pytest.raises(ConsentNeeded) as caught:
        call(held, order, name, **arguments)
    return caught.value


def test_an_unknown_skill_that_declares_tools_is_asked_about_by_name(book: ConsentStore) -> None:
    held, order = desk(Inside("row"), book=book), unknown("row")
    with pytest.raises(ConsentNeeded) as caught:
        held.admit(order)
    assert caught.value.data["subject"] == skill_subject("sailor", order.digest)
    assert "sailor" in caught.value.message and "row" in caught.value.message


def test_no_tool_of_an_unknown_skill_runs_without_that_yes(book: ConsentStore) -> None:
    row = Inside("row")
    asked(desk(row, book=book), unknown("row"), "row")
    assert row.ran == []


def test_yes_to_all_orders_does_not_cover_an_unknown_skill(book: ConsentStore) -> None:
    order = unknown("row")
    book.allow_orders(order.run)
    with pytest.raises(ConsentNeeded):
        desk(Inside("row"), book=book).admit(order)


@pytest.mark.parametrize("for_good", [False, True])
def test_a_yes_that_names_the_skill_gives_it_its_tools(book: ConsentStore, for_good: bool) -> None:
    held, order = desk(Inside("row"), book=book), unknown("row")
    subject = skill_subject("sailor", order.digest)
    book.trust(subject, note="a test") if for_good else book.allow(order.run, subject)
    held.admit(order)
    assert offered(held, order) == ["look_up", "row"] and not call(held, order, "row").failed


def test_a_yes_to_a_skill_does_not_cover_a_changed_digest(book: ConsentStore) -> None:
    order = unknown("row")
    book.trust(skill_subject("sailor", order.digest), note="a test")
    with pytest.raises(ConsentNeeded):
        desk(Inside("row"), book=book).admit(replace(order, digest="sha256:other"))


def test_an_unknown_skill_without_tools_gets_none_and_is_not_asked_about(book: ConsentStore) -> None:
    held = desk(Inside("row"), book=book)
    held.admit(unknown())
    assert offered(held, unknown()) == []


@pytest.mark.parametrize("standing", ["installed", "trusted"])
def test_a_skill_that_the_person_accepts_is_not_asked_about(book: ConsentStore, standing: Any) -> None:
    held, order = desk(Inside("row"), book=book), replace(work("row"), standing=standing)
    held.admit(order)
    assert offered(held, order) == ["look_up", "row"]


def test_yes_to_all_orders_covers_no_call_that_a_model_thought_of(book: ConsentStore) -> None:
    sink, order = Tool("sink", confirm="Sink it?"), work("sink")
    book.allow_orders(order.run)
    asked(desk(sink, book=book), order, "sink")
    assert sink.ran == []


def test_everything_is_not_a_subject_that_a_file_can_bring(book: ConsentStore) -> None:
    book.allow("run-1", "*")
    with pytest.raises(ConsentNeeded):
        book.require("run-1", "shell:id@sha256:0", "run id")


def test_a_server_tool_that_claims_to_only_read_still_needs_consent(book: ConsentStore) -> None:
    look = Served("look", confirm="Call look?")
    asked(desk(look, book=book), work("look"), "look")
    assert look.ran == []


def test_one_yes_covers_a_tool_that_only_reads_under_the_same_bytes_of_a_skill(book: ConsentStore) -> None:
    look, order = Served("look", confirm="Call look?", outward=False), work("look")
    held = desk(look, book=book)
    subject = asked(held, order, "look", at="sea").data["subject"]
    assert "@sha256:" in subject  # so that consent can cover a session
    book.allow(order.run, subject)
    for place in ("sea", "sky"):
        assert not call(held, order, "look", at=place).failed
    asked(held, replace(order, digest="sha256:other"), "look", at="sea")
    asked(desk(Served("look", confirm="Call look?", identity="changed"), book=book), order, "look", at="sea")


@pytest.mark.parametrize("private", [True, False], ids=["the message holds a file", "a tool gave data"])
def test_after_private_data_whatever_goes_outward_asks_for_just_this_call(book: ConsentStore, private: bool) -> None:
    read, send = Inside("read"), Tool("send")
    held, order = desk(read, send, book=book), replace(work("read", "send"), private=private)
    if not private:
        assert not call(held, order, "send", to="a").failed  # nothing was read yet, and `send` itself needs no consent
        held = desk(read, send, book=book)
        call(held, order, "read")
    first = asked(held, order, "send", to="b")
    assert '"to": "b"' in first.message and "send them out" in first.message
    book.allow(order.run, first.data["subject"])
    assert not call(held, order, "send", to="b").failed
    asked(held, order, "send", to="c")


def test_a_yes_for_the_session_does_not_cover_what_goes_outward_after_private_data(book: ConsentStore) -> None:
    look, order = Served("look", confirm="Call look?"), work("look")
    held = desk(look, book=book)
    subject = asked(held, order, "look", at="sea").data["subject"]
    book.allow(order.run, subject)
    assert not call(held, order, "look", at="sea").failed  # the first answer is private data
    assert asked(held, order, "look", at="sky").data["subject"] != subject


def test_a_tool_that_sends_nothing_out_needs_no_consent_after_private_data(book: ConsentStore) -> None:
    read = Inside("read")
    held, order = desk(read, book=book), replace(work("read"), private=True)
    assert not call(held, order, "read").failed and not call(held, order, "read").failed
