"""Numbers a run's events, appends each to the run log, then passes it to every listener (EVT-7)."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from navigator_kernel.events import Body, Event, Listener
from navigator_kernel.ports import Clock, RunLog
from navigator_kernel.values.redact import Redact, same


class EventStream(Struct):
    """Implements `events.Emit` for one run. What `redact` removes reaches neither the log nor a listener."""

    run: str
    turn: int
    log: RunLog
    clock: Clock
    listeners: Sequence[Listener] = ()
    seq: int = 0
    redact: Redact = same

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        """Makes the event; it is durable in the log before any listener gets it."""
        body = type(body)(**{name: self.redact(getattr(body, name)) for name in body.__struct_fields__})
        event = Event(
            run=self.run, turn=self.turn, step=step, seq=self.seq, ts=self.clock.now(), parent=parent, body=body
        )
        self.log.append(event)
        self.seq += 1
        for listener in self.listeners:
            listener(event)
        return event
