"""Replays a past turn from its recording, and compares the events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.bootstrap.kernel import assemble
from navigator_kernel.bootstrap.parts import open_run_log
from navigator_kernel.bootstrap.tapes import load_tape, settings_of
from navigator_kernel.dispatch import EventStream
from navigator_kernel.errors import KernelError, Refused
from navigator_kernel.replay.proxies import JOURNAL, InMemoryRunLog
from navigator_kernel.replay.recording import Replayer
from navigator_kernel.text import shorten
from navigator_kernel.turn import run_turn

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.config.settings import Settings

SHOWN = 120  # characters of a value


class Replayed(NamedTuple):
    """The number of recorded events, the fields that differ, and notes for the reader."""

    events: int
    differences: list[dict[str, Any]]
    notes: list[str]


def replayed(root: Path, settings: Settings, run: str) -> Replayed:
    """Replays a turn from its recording, and compares the events. NotFound without a recording, Refused for a turn that
    cannot be replayed. It runs an event loop of its own."""
    before = [event.to_dict() for event in open_run_log(root).read(run)]
    if sum(event["type"] == "RunStarted" for event in before) > 1:
        hint = f"navigator why {run}"
        raise Refused(
            "a run that continued after its process was killed cannot be replayed: its first part was not recorded",
            hint=hint,
        )
    notes: list[str] = []
    return Replayed(len(before), list(_differences(before, _again(root, settings, run, notes))), notes)


def _again(root: Path, settings: Settings, run: str, notes: list[str]) -> list[dict[str, Any]]:
    """The events of the replayed turn."""
    held = load_tape(root, run)
    if any(line.get("door") == JOURNAL for line in held.lines):
        raise Refused(
            "a workflow's turn cannot be replayed: its journal has changed since", hint=f"navigator why {run}"
        )
    if held.redacted:
        notes.append("a secret was removed from the recording; a difference may come from that")
    player, log = Replayer(held.lines), InMemoryRunLog([])
    kernel = assemble(root, settings_of(held, settings), tape=player)
    stream = EventStream(run=run, turn=held.session.turn, log=log, clock=kernel.clock, redact=kernel.redact)
    try:
        asyncio.run(run_turn(held.message, held.session, kernel, stream))
    except (KernelError, asyncio.CancelledError) as error:
        notes.append(f"the turn ended early: {error}")
    return [event.to_dict() for event in log.held]


def _differences(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Compares events field by field; a missing event is one difference."""
    for at, (then, now) in enumerate(zip_longest(before, after)):
        if then is None or now is None:
            held = now if then is None else then
            missing = (
                {"then": "nothing", "now": held["type"]} if then is None else {"then": held["type"], "now": "nothing"}
            )
            yield {"event": at, "type": held["type"], "field": "", **missing}
            continue
        if _line(then) != _line(now):
            for field, one, other in _fields("", then, now):
                yield {"event": at, "type": then["type"], "field": field, "then": _shown(one), "now": _shown(other)}


def _fields(path: str, one: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for name in dict.fromkeys((*one, *other)):
            yield from _fields(f"{path}.{name}" if path else str(name), one.get(name), other.get(name))
    elif one != other:
        yield path, one, other


def _line(event: Mapping[str, Any]) -> str:
    """The event as it is in the log, byte for byte."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), SHOWN)
