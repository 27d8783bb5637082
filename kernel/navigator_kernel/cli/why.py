"""`navigator why`: tells a past choice from its run log."""

from __future__ import annotations

import click

from navigator_kernel.assembly.parts import open_run_log
from navigator_kernel.cli.app import App, json_option, pass_app
from navigator_kernel.cli.output import document, lines
from navigator_kernel.errors import NotFound
from navigator_kernel.why import told


@click.command("why")
@click.argument("run", required=False)
@json_option
@pass_app
def command(app: App, *, run: str | None, as_json: bool) -> None:
    """Tell why RUN, or the newest run, chose what it chose."""
    log = open_run_log(app.root)
    known = log.runs()
    if run is None and not known:
        raise NotFound("there is no run yet", hint='navigator ask "…" makes one')
    name = run or known[0]
    events = log.read(name)
    if as_json:
        document({"run": name, "events": [event.to_dict() for event in events]})
    else:
        lines([f"run {name}", *(line for event in events for line in told(event))])
