"""The record of a turn's calls, and how several turns at once keep their own."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatch.orders import order as packet
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.underway import Underway
from navigator_kernel.values.chat import ChatMessage, ToolCall
from navigator_kernel.values.request import Session
from navigator_kernel.values.work import AgentState


def opened(folder: Path) -> Underway:
    return Underway(folder, FolderWriter([folder]), SystemClock())


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
