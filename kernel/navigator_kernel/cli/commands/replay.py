"""`navigator replay`: runs a past turn again from its recording, and compares the events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any

import click

from navigator_kernel.bootstrap.tapes import load_tape, settings_of
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.text import shorten

SHOWN = 120  # characters of a value


@click.command("replay")
@click.argument("run", required=False, default="")
@json_option
@pass_app
def command(app: App, *, run: str, as_json: bool) -> int:
    """Take the turn RUN again, or the newest: as it was asked, with the answers of models, tools, agents and files that
    were recorded, and the skills and settings of now. Nothing is run, asked or changed.

    Exit code 1 where an event differs.
    """
    from navigator_kernel.bootstrap.parts import open_run_log

    log = open_run_log(app.root)
    newest = next(iter(log.runs()), "")
    if not (run or newest):
        raise NotFound("there is no run yet", hint='navigator ask "…"')
    run = run or newest
    count, found = replayed(app, run)
    if as_json:
        document({"exit_code": 1 if found else 0, "run": run, "events": count, "differences": found})
    else:
        lines(f"{one['event']} {one['type']} {one['field']}: {one['then']} then, {one['now']} now" for one in found)
        note(f"{run}: {count} events, {f'{len(found)} differ' if found else 'identical'}")
    return 1 if found else 0


def replayed(app: App, run: str) -> tuple[int, list[dict[str, Any]]]:
    """The number of events, and the events that differ from the recording."""
    from navigator_kernel.bootstrap.parts import open_run_log

    before = [event.to_dict() for event in open_run_log(app.root).read(run)]
    if sum(event["type"] == "RunStarted" for event in before) > 1:
        hint = f"navigator why {run}"
        raise Refused(
            "a run that went on after its process was killed is not taken again: its first part has no tape", hint=hint
        )
    return len(before), list(_differences(before, _again(app, run)))


def _again(app: App, run: str) -> list[dict[str, Any]]:
    """The events of the replayed turn."""
    from navigator_kernel.bootstrap.kernel import assemble
    from navigator_kernel.dispatch.stream import EventStream
    from navigator_kernel.errors import KernelError
    from navigator_kernel.replay.proxies import JOURNAL, InMemoryRunLog
    from navigator_kernel.replay.recording import Replayer
    from navigator_kernel.turn import run_turn

    held = load_tape(app.root, run)
    if any(line.get("door") == JOURNAL for line in held.lines):
        raise Refused("a workflow's turn is not taken again: its journal has moved on", hint=f"navigator why {run}")
    if held.redacted:
        note("a secret was taken out of what was recorded; what differs may come from that")
    player, log = Replayer(held.lines), InMemoryRunLog([])
    kernel = assemble(app.root, settings_of(held, app.settings), tape=player)
    stream = EventStream(run=run, turn=held.session.turn, log=log, clock=kernel.clock, redact=kernel.redact)
    try:
        asyncio.run(run_turn(held.message, held.session, kernel, stream))
    except (KernelError, asyncio.CancelledError) as error:
        note(f"the turn ended early: {error}")
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
    """As it stands in the log, byte for byte."""
    return json.dumps(event, ensure_ascii=False, separators=(",", ":"), default=str)


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), SHOWN)
