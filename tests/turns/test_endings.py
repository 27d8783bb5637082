"""Every way out of a turn is an event, and no process outlives it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from processes import filled_below, working_in

pytestmark = pytest.mark.sample(1)


def pid_in(root: Path) -> int | None:
    """The process of the dozing skill, or None before it has begun."""
    found = filled_below(root, "pid")
    return max(working_in(found[0].parent)) if found else None  # in a sandbox, `pid` may be of another namespace


def pid_alive(pid: int) -> bool:
    try:
        return b"\nState:\tZ" not in Path(f"/proc/{pid}/status").read_bytes()[:300]
    except OSError:
        return False


@pytest.mark.wide
def test_a_time_limit_is_a_state_and_keeps_what_was_printed(talk: Any) -> None:
    reply = talk.say("/sleep-long now", consent=True)
    assert (reply.report.state, reply.report.exit_code, reply.report.raw) == ("timeout", 124, "begun")
    assert talk.types()[-1] == "RunCompleted"


@pytest.mark.requirement("EVT-1")
def test_a_surprise_ends_in_run_error_and_is_raised(talker: Any) -> None:
    class Broken:
        def recognise(self, text: str) -> None:
            raise RuntimeError("the router broke")

        def retrieve(self, text: str, k: int = 12, files: object = ()) -> None:
            raise RuntimeError("the router broke")

    talk = talker(router=Broken())
    with pytest.raises(RuntimeError):
        talk.say("hello")
    assert talk.types()[-1] == "RunError"
    assert talk.events[-1].to_dict()["data"]["error"] == {"type": "RuntimeError", "msg": "the router broke"}


@pytest.mark.timeout(30)
def test_a_cancelled_turn_ends_in_run_cancelled_with_its_process_dead(talk: Any, root: Path) -> None:
    async def cancelled() -> int:
        task = asyncio.create_task(talk.turn("/doze-long now", consent=True))
        async with asyncio.timeout(15):
            while (pid := pid_in(root)) is None:  # noqa: ASYNC110 - another process starts it
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return pid

    pid = asyncio.run(cancelled())
    assert talk.types()[-1] == "RunCancelled"
    deadline = time.monotonic() + 5
    while pid_alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not pid_alive(pid)


def test_a_session_that_was_cancelled_continues(talk: Any, root: Path) -> None:
    async def both() -> str:
        task = asyncio.create_task(talk.turn("/doze-long now", consent=True))
        async with asyncio.timeout(15):
            while pid_in(root) is None:  # noqa: ASYNC110 - another process starts it
                await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        reply = await talk.turn("/code-review @a.py")
        state: str = reply.report.state
        return state

    assert asyncio.run(both()) == "pending"  # no model
