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
from tools.test_desk import Served, Tool, call, desk, work

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


def test_yes_to_all_orders_does_not_cover_an_unknown_skill(book: ConsentStore) -> None:
    order = unknown("row")
    book.allow_orders(order.run)
    with pytest.raises(ConsentNeeded):
        desk(Inside("row"), book=book).admit(order)


def test_everything_is_not_a_subject_that_a_file_can_bring(book: ConsentStore) -> None:
    book.allow("run-1", "*")
    with pytest.raises(ConsentNeeded):
        book.require("run-1", "shell:id@sha256:0", "run id")


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
