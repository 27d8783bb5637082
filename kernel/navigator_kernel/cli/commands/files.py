"""`navigator files`: lists the files that runs made, and copies one to the project by the person's own hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.results import RunResult


@click.command("files")
@click.argument("run", required=False)
@click.argument("name", required=False)
@click.option("--to", metavar="PATH", help="Copy the file NAME of the run to this file or folder of the project.")
@click.option("--force", is_flag=True, help="Replace a file that is there already; navigator undo puts it back.")
@json_option
@pass_app
def command(app: App, *, run: str | None, name: str | None, to: str | None, force: bool, as_json: bool) -> None:
    """List the files that a run made; without RUN those of the newest runs. With NAME and --to, copy one.

    navigator files 20260101-120000-ab12 report.pdf --to docs/
    """
    from navigator_kernel.bootstrap.results import copy_result, results_of, runs_with_results

    if (name is None) != (to is None):
        hint = "navigator files RUN NAME --to PATH copies one file"
        raise UsageProblem("NAME and --to belong together", hint=hint)
    if run and name and to is not None:
        path = copy_result(app.bare, run, name, to, force=force)
        if as_json:
            copied = [one for one in results_of(app.bare, run) if one.path == name]
            document({"files": [_fields(one) for one in copied], "exit_code": 0})
        else:
            note(say("files.copied", app.spoken, path=escape_controls(path), run=run))
        return
    runs = (run,) if run else runs_with_results(app.bare)
    if not runs and not as_json:
        raise NotFound("no run of this project made files", hint="navigator log shows what runs did")
    found = [one for each in runs for one in results_of(app.bare, each)]
    if as_json:
        document({"files": [_fields(one) for one in found], "exit_code": 0})
        return
    table(
        ("run", "file", "bytes", "type", "when", "state"),
        [
            (one.run, one.path, f"{one.size:,}" if one.size >= 0 else "", one.kind, one.at, _state(app, one))
            for one in found
        ],
        spare=("when", "type"),
    )
    note(say("files.hint", app.spoken, run=runs[0]))


def _state(app: App, one: RunResult) -> str:
    if not one.is_there:
        return say("files.gone_to" if one.delivered else "files.gone", app.spoken, path=one.delivered)
    if one.delivered:
        return say("files.delivered", app.spoken, path=one.delivered)
    return say("files.disarmed" if one.is_disarmed else "files.here", app.spoken)


def _fields(one: RunResult) -> dict[str, str | int | bool]:
    return {
        "run": one.run,
        "path": one.path,
        "size": one.size,
        "type": one.kind,
        "when": one.at,
        "delivered": one.delivered,
        "there": one.is_there,
        "disarmed": one.is_disarmed,
    }
