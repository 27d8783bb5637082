"""Runs one turn from synchronous code; Ctrl-C ends the turn, not the program."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.stores.underway import ENDED
from navigator_kernel.bootstrap.turns import Keep
from navigator_kernel.cli.output import note
from navigator_kernel.errors import Busy, Interrupted
from navigator_kernel.language.wording import say
from navigator_kernel.stages.answers import is_interrupted, resume
from navigator_kernel.text import escape_controls, shorten

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.events import Listener
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.request import Message, Session


SHOWN = 200  # characters of a message


def open_session(app: App, name: str | None, text: str = "") -> Session:
    """Like `Turns.session`, and shows the person the interrupted work of a killed process."""
    session = app.turns.session(name, text)
    if is_interrupted(session.approval) and session.approval is not None:
        asked = shorten(escape_controls(session.approval.packets[0].task_spec.intent), SHOWN)
        note(say("notice.interrupted", app.spoken, asked=asked))
    return session


def take_turn(app: App, message: Message, session: Session, listeners: Sequence[Listener], *, keep: bool) -> Reply:
    """Runs a turn and returns the reply; the session is saved with `keep`, or if it waits for an answer.

    Interrupted if the person stopped it; its processes have ended by then.
    """
    ended_by: list[signal.Signals] = []
    when: Keep = "always" if keep else "waiting"
    turn = app.turns.take(replace(message, allow=app.allow), session, listeners, keep=when, missed=_missed)
    try:
        return asyncio.run(_stoppable(turn, ended_by))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        stopped = Interrupted("stopped", hint="nothing is half-written")
        if ended_by:
            stopped.data, stopped.exit_code = {"signal": ended_by[0].name}, 128 + ended_by[0]
        raise stopped from error


def is_answer(message: Message, session: Session) -> bool:
    """Whether the message says yes or no to what `session` waits for."""
    resumed = resume(message, session)
    return resumed.approved is not None or resumed.declined


def _missed(error: Busy) -> None:
    note(f"note: {error.message}; this turn is not in its history")


async def _stoppable(turn: Coroutine[Any, Any, Reply], ended_by: list[signal.Signals]) -> Reply:
    """Ends the turn with its processes at SIGTERM and SIGHUP, like at Ctrl-C, unless the process ignores the signal, as
    under `nohup`."""
    task = asyncio.ensure_future(turn)
    loop = asyncio.get_running_loop()

    def stop(number: signal.Signals) -> None:
        ended_by.append(number)
        task.cancel(ENDED)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            loop.add_signal_handler(number, stop, number)
    return await task
