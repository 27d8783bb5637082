"""Takes one turn from synchronous code, and lets Ctrl-C end the turn and not the program."""

from __future__ import annotations

import asyncio
import re
import signal
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.cli.output import note
from navigator_kernel.cli.tapes import keep_tape
from navigator_kernel.dispatch.stream import EventStream
from navigator_kernel.errors import Busy, Interrupted, NotFound, UsageProblem
from navigator_kernel.text import pattern
from navigator_kernel.turn import run_turn
from navigator_kernel.values.request import Message, Session
from navigator_kernel.values.tool import EDITS

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.events import Listener
    from navigator_kernel.values.reply import Reply


RECALLED = 200  # entries of a history that a model may be shown


def open_session(app: App, name: str | None) -> Session:
    """The session called `name`, new where there is none yet; without a name one that is kept only if it waits."""
    if name is None:
        return Session(id=app.kernel.ids.new())
    if not _NAME.fullmatch(name):
        raise UsageProblem(f"{name!r} is no name of a session", hint="letters, digits, '.', '_' and '-', 1 to 80")
    try:
        return app.sessions.load(name)
    except NotFound:
        return Session(id=name)


def take_turn(app: App, message: Message, session: Session, listeners: Sequence[Listener], *, keep: bool) -> Reply:
    """The reply; its session is saved with `keep`, and where it waits for an answer.

    Interrupted where the person stopped it; its processes are dead by then.
    """
    kernel = app.kernel
    stream = EventStream(
        run=kernel.ids.new(),
        turn=session.turn,
        log=kernel.run_log,
        clock=kernel.clock,
        listeners=listeners,
        redact=kernel.redact,
    )
    if app.allow_edits:
        kernel.consents.allow(stream.run, EDITS)
    ended_by: list[str] = []
    app.tape.begin()
    if kernel.models is not None and session.turn:
        session = replace(session, history=tuple(app.sessions.history(session.id, RECALLED)))
    try:
        reply = asyncio.run(_stoppable(run_turn(message, session, kernel, stream), ended_by))
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted("stopped", hint="nothing is half-written", signal="".join(ended_by)) from error
    finally:
        keep_tape(app, stream.run, message, session)
    if keep or reply.session.approval is not None or reply.session.question is not None:
        _save(app, reply)
    return reply


def _save(app: App, reply: Reply) -> None:
    """What a workflow has done is told even where its session went on elsewhere meanwhile."""
    try:
        app.sessions.save(reply.session, reply.said)
    except Busy as error:
        if reply.workflow is None:
            raise
        note(f"note: {error.message}; this turn is not in its history")


async def _stoppable(turn: Coroutine[Any, Any, Reply], ended_by: list[str]) -> Reply:
    """Being asked to end, or losing the terminal, is Ctrl-C: the processes end and the log says so."""
    task = asyncio.ensure_future(turn)
    loop = asyncio.get_running_loop()

    def stop(name: str) -> None:
        ended_by.append(name)
        task.cancel()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number.name)
    return await task


_NAME = pattern(r"[A-Za-z0-9][\w.-]{0,79}", re.ASCII)
