"""`navigator replay`: runs a past turn again from its recording, and compares the events."""

from __future__ import annotations

from typing import Any

import click

from navigator_kernel.bootstrap.parts import open_run_log
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound


@click.command("replay")
@click.argument("run", required=False, default="")
@json_option
@pass_app
def command(app: App, *, run: str, as_json: bool) -> int:
    """Take the turn RUN again, or the newest: as it was asked, with the answers of models, tools, agents and files that
    were recorded, and the skills and settings of now. Nothing is run, asked or changed.

    Exit code 1 where an event differs.
    """
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
    from navigator_kernel.bootstrap.replays import replayed as again

    count, found, notes = again(app.root, app.settings, run)
    for text in notes:
        note(text)
    return count, found
