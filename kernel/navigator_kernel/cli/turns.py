"""Takes one turn from synchronous code, and lets Ctrl-C end the turn and not the program."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from navigator_kernel.cli.app import App
from navigator_kernel.dispatch.stream import EventStream
from navigator_kernel.errors import Interrupted
from navigator_kernel.events import Listener
from navigator_kernel.turn import run_turn
from navigator_kernel.values.reply import Reply
from navigator_kernel.values.request import Message, Session


def new_session(app: App) -> Session:
    return Session(id=app.kernel.ids.new())


def take_turn(app: App, message: Message, session: Session, listeners: Sequence[Listener]) -> Reply:
    """The reply. Interrupted where the person stopped it; its processes are dead by then."""
    kernel = app.kernel
    stream = EventStream(
        run=kernel.ids.new(), turn=session.turn, log=kernel.run_log, clock=kernel.clock, listeners=listeners
    )
    try:
        return asyncio.run(run_turn(message, session, kernel, stream))
    except KeyboardInterrupt as error:
        raise Interrupted("stopped", hint="nothing is half-written") from error
