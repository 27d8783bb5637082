"""`navigator why`: explains a past choice from its run log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec.structs import asdict

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound
from navigator_kernel.why import lines_of, missed, readable_lines, skill_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.events import Event


@click.command("why")
@click.argument("run", required=False)
@click.option("--not", "skill", metavar="SKILL", help="Show where SKILL was dropped, and why.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage with its numbers.")
@json_option
@pass_app
def command(app: App, *, run: str | None, skill: str | None, verbose: bool, as_json: bool) -> None:
    """Show why RUN, or the newest run, chose what it chose."""
    log = app.bare.run_log
    known = log.runs()
    if run is None and not known:
        raise NotFound("there is no run yet", hint='navigator ask "…" makes one')
    name = run or known[0]
    events = log.read(name)
    if skill is not None:
        _tell_missed(app, name, events, skill, as_json=as_json)
    elif as_json:
        document({"run": name, "events": [event.to_dict() for event in events]})
    elif verbose:
        lines([f"run {name}", *(line for event in events for line in lines_of(event))])
    else:
        lines([f"run {name}", *readable_lines(events, app.bare.catalogue, app.language)])


def _tell_missed(app: App, run: str, events: Sequence[Event], skill: str, *, as_json: bool) -> None:
    held = skill_named(app.bare.catalogue, skill)
    found = missed(events, held, held.name if held else skill)
    if as_json:
        document({"run": run, **asdict(found)})
        return
    lines([f"run {run}", *(f"  {stage:<12}yes" for stage in found.stages)])
    lines(f"  {found.fell_out:<12}no: {found.why}" if found.fell_out else f"  {found.why}")
    if found.confidence is not None and found.best is not None:
        lines(f"  confidence {found.confidence:.2f}; the first was {found.best[0]} with {found.best[1]:.2f}")
