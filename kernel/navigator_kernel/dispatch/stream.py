"""Numbers a run's events, appends each to the run log, then passes it to every listener (EVT-7)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.events import Body, Event, Listener, RunContent
from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, RunLog

BEFORE = 200  # characters of the text before a piece that are read together with it


class EventStream(Struct):
    """Implements `events.Emit` for one run. What `redact` removes reaches neither the log nor a listener."""

    run: str
    turn: int
    log: RunLog
    clock: Clock
    listeners: Sequence[Listener] = ()
    seq: int = 0
    redact: Redact = same
    said: dict[int | None, str] = field(default_factory=dict)  # the end of each step's text so far

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        """Makes the event; it is durable in the log before any listener gets it."""
        body = self._redacted(body, step)
        event = Event(
            run=self.run, turn=self.turn, step=step, seq=self.seq, ts=self.clock.now(), parent=parent, body=body
        )
        self.log.append(event)
        self.seq += 1
        for listener in self.listeners:
            listener(event)
        return event

    def _redacted(self, body: Body, step: int | None) -> Body:
        if isinstance(body, RunContent):  # a secret may be known only by the words of the piece before
            before = self.said.get(step, "")
            text = self.redact([before, body.text])[1]
            self.said[step] = (before + text)[-BEFORE:]
            return RunContent(text=text)
        return type(body)(**self.redact({name: getattr(body, name) for name in body.__struct_fields__}))
