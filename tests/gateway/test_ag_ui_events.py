"""AG-UI events of a run whose log is not that of a successful turn."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from gateway.ag_ui import Event as Sent
from gateway.ag_ui import in_order, kinds, of_kind
from navigator_ag_ui.events import AgUiRun, Thread
from navigator_kernel.events import (
    Body,
    Event,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
    StepCompleted,
    StepStarted,
    ToolCallStarted,
    Usage,
)

pytestmark = pytest.mark.wide

BEGUN = RunStarted(session="s", message="hello", language="en")
STEP = StepStarted(agent="skills", packet={"task_spec": {"target": "skill:pdf"}})
CALL = ToolCallStarted(call="c", tool="look", args={"at": "sea"})


def sent(*bodies: Body | tuple[Body, int], speaks: str = "1.0") -> list[Sent]:
    """What a client gets for these events; a number is the event's parent. The last ones come from the log's end."""
    run, numbers = AgUiRun(Thread(id="thread", run="mine", speaks=speaks)), count()
    held: list[Sent] = []
    for one in bodies:
        body, parent = one if isinstance(one, tuple) else (one, None)
        head: dict[str, Any] = {"run": "r", "turn": 0, "step": None, "ts": "2026-11-26T01:02:03.004Z"}
        held += run.of(Event(seq=next(numbers), parent=parent, body=body, **head))
    return [*held, *run.cut()]


def test_a_run_that_is_stopped_closes_what_is_open_and_is_cancelled() -> None:
    held = sent(BEGUN, STEP, RunContent(text="one "), CALL, RunCancelled(reason="stopped"))
    in_order(held)
    assert held[-1]["outcome"] == {"type": "cancelled"}
    assert kinds(held)[-3:] == ["SUBAGENT_ERROR", "STEP_FINISHED", "RUN_FINISHED"]


def test_a_client_before_1_0_gets_a_cancelled_run_as_an_error() -> None:
    held = sent(BEGUN, STEP, RunCancelled(reason="stopped"), speaks="")
    in_order(held)
    assert (held[-1]["type"], held[-1]["code"]) == ("RUN_ERROR", "cancelled")


def test_a_log_without_an_end_ends_with_an_error_once() -> None:
    held = sent(BEGUN, STEP, RunContent(text="one "))
    in_order(held)
    assert (held[-1]["type"], held[-1]["code"]) == ("RUN_ERROR", "unfinished")


def test_a_run_that_continues_after_a_crash_starts_once() -> None:
    ended = RunCompleted(state="success", summary="done")
    held = sent(BEGUN, STEP, BEGUN, STEP, (StepCompleted(agent="skills", report={"state": "success"}), 3), ended)
    in_order(held)
    assert len({step["stepName"] for step in of_kind(held, "STEP_STARTED")}) == 2


def test_a_run_error_has_its_type_its_message_and_the_total_usage() -> None:
    spent = [Usage(model="there:worker", input_tokens=3, output_tokens=2, cached_tokens=1)] * 2
    held = sent(BEGUN, *spent, RunError(error={"type": "Oops", "msg": "it broke"}))
    in_order(held)
    assert (held[-1]["message"], held[-1]["code"]) == ("it broke", "Oops")
    total = {"inputTokens": 6, "outputTokens": 4, "totalTokens": 10, "cachedInputTokens": 2}
    assert held[-1]["usage"] == [{"provider": "there", "model": "worker", **total}]


def test_nothing_comes_after_the_end() -> None:
    held = sent(BEGUN, RunCompleted(state="success", summary="done"), RunContent(text="more"), RunCancelled(reason=""))
    in_order(held)
    assert kinds(held) == ["RUN_STARTED", "RUN_FINISHED"]


def test_times_are_milliseconds() -> None:
    assert sent(BEGUN)[0]["timestamp"] == 1_795_654_923_004
