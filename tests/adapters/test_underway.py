"""The record of a turn's calls, and how several turns at once keep their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from dispatch.orders import order as packet
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.underway import Underway, run_of
from navigator_kernel.errors import Busy
from navigator_kernel.values.chat import ChatMessage, ToolCall
from navigator_kernel.values.request import Session
from navigator_kernel.values.work import AgentState
from navigator_postgres.plugin import kernel_register_stores
from navigator_postgres.stores import PostgresStores


def opened(folder: Path, shared: PostgresStores | None = None) -> Underway:
    return Underway(folder, FolderWriter([folder]), SystemClock(), shared=shared)


def test_a_file_that_another_turn_has_just_made_is_not_work_that_was_left(tmp_path: Path) -> None:
    (tmp_path / "run-1.jsonl").touch()
    assert opened(tmp_path).left() == []
    with opened(tmp_path).kept("run-2", Session(id="s"), ()):
        pass
    assert (tmp_path / "run-1.jsonl").exists()


def test_half_a_first_line_is_not_work_that_was_left(tmp_path: Path) -> None:
    (tmp_path / "run-1.jsonl").write_bytes(b'{"v": 1, "session"')
    assert opened(tmp_path).left() == []


@pytest.mark.requirement("JIT-12", "SAF-5")
@pytest.mark.parametrize("has_acted", [False, True])
def test_what_a_killed_turn_used_up_is_not_agreed_to_when_it_continues(tmp_path: Path, has_acted: bool) -> None:
    call = ChatMessage(role="assistant", calls=(ToolCall(id="c", name="run"),))
    answer = ChatMessage(role="tool", call="c", text="exit code 0")
    held, order = opened(tmp_path), packet()
    with held.kept(order.context.run, Session(id="s"), ("tool:run#1", "skill:x@sha256:0")):
        held.start(order, 0)
        held.note(order.context.run, AgentState(messages=(call, answer) if has_acted else (call,)))
        (file,) = tmp_path.glob("*.jsonl")
        (tmp_path / "killed.jsonl").write_bytes(file.read_bytes())
        (left,) = [one for one in opened(tmp_path).left() if "killed" in one.order.subject]
    assert left.order.agreed == (("skill:x@sha256:0",) if has_acted else ("tool:run#1", "skill:x@sha256:0"))


class Cut(BaseException):
    """The end of a process in the middle of a turn."""


def other_host(folder: Path, shared: PostgresStores | None) -> Underway:
    """What another process sees: on Postgres from a host without these files."""
    if shared is None:
        return opened(folder)
    return opened(folder / "elsewhere", kernel_register_stores(None))  # type: ignore[arg-type]  # it reads nothing of the project


@pytest.mark.requirement("X-6", "SAF-5")
def test_a_message_whose_process_ended_is_continued_by_one_other(tmp_path: Path, shared: PostgresStores | None) -> None:
    first, message = opened(tmp_path, shared), "count the words \u2028 of\na\0b"
    keeping = first.kept("run-1", Session(id="s", turn=3), ("yes",), message=message)
    with suppress(Cut), keeping:
        assert other_host(tmp_path, shared).left() == []  # its process lives
        raise Cut
    second, third = other_host(tmp_path, shared), other_host(tmp_path, shared)
    (left,) = second.left()
    assert (left.session, left.turn, left.order.agreed) == ("s", 3, ("yes",))
    unreadable = list[Path]()
    assert second.left(unreadable) == third.left() == [left] and unreadable == []
    size = run_of(left.order.subject)[1]
    order = left.order.packets[0]
    with second.kept("run-1", Session(id="s", turn=3), ("yes",), size):
        second.start(order, 0)
        with third.kept("run-1", Session(id="s"), (), size), pytest.raises(Busy):
            third.start(order, 0)
    assert third.left() == first.left() == []
    with third.kept("run-1", Session(id="s"), (), size), pytest.raises(Busy, match="has continued this"):
        third.start(order, 0)


def test_what_an_ended_process_left_can_be_forgotten(tmp_path: Path, shared: PostgresStores | None) -> None:
    for run, session in (("run-1", "a"), ("run-2", "b")):
        keeping = opened(tmp_path, shared).kept(run, Session(id=session), (), message="hello")
        with suppress(Cut), keeping:
            raise Cut
    other_host(tmp_path, shared).forget("a")
    assert [left.session for left in opened(tmp_path, shared).left()] == ["b"]


def test_two_that_look_at_the_same_time_both_see_what_was_left(tmp_path: Path, shared: PostgresStores | None) -> None:
    with suppress(Cut), opened(tmp_path, shared).kept("run-1", Session(id="a"), (), message="hello"):
        raise Cut

    def look(host: Underway) -> list[int]:
        return [len(host.left()) for _ in range(100)]

    with ThreadPoolExecutor(2) as pool:
        looks = pool.map(look, [other_host(tmp_path, shared) for _ in range(2)])
        assert list(looks) == [[1] * 100] * 2
