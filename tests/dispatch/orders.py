"""Packets, a clock and an event stream for tests, each with the values that a test names and defaults for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.run_log import RunLog
from navigator_kernel.dispatch import EventStream
from navigator_kernel.text import Language
from navigator_kernel.values.packet import Constraints, Context, Format, Packet, Params, ReturnSpec, TaskSpec

NOW = "2026-01-31T09:30:00.000Z"


class StillClock:
    """A clock that stands still."""

    def now(self) -> str:
        return NOW

    def monotonic(self) -> float:
        return 0.0


def order(
    agent: str = "skills",
    target: str = "skill:x",
    *,
    operation: str = "run",
    step: int = 1,
    run: str = "run-1",
    key: str = "",
    timeout: float = 60,
    validation: str | Mapping[str, Any] = "",
    fields: Sequence[str] = (),
    format: Format = "detail",
    language: Language = "en",
    optional: Mapping[str, Any] | None = None,
    **required: Any,
) -> Packet:
    """A packet; every other keyword argument is a required parameter."""
    return Packet(
        agent=agent,
        task_spec=TaskSpec(intent="a test", operation=operation, target=target),
        params=Params(required=required, optional=optional or {}),
        constraints=Constraints(timeout=timeout, validation=validation),
        return_spec=ReturnSpec(format=format, fields=tuple(fields)),
        context=Context(run=run, step=step, idempotency_key=key or f"{run}/{step}/{agent}/{target}", language=language),
    )


def stream(folder: Path, run: str = "run-1") -> EventStream:
    """An event stream that is written to a real run log below `folder`."""
    return EventStream(run=run, turn=0, log=RunLog(folder, FolderWriter([folder])), clock=StillClock())
