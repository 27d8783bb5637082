"""`navigator diff` and `navigator undo`: show and revert the changes that tools made in the project."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls, numbered

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.changes import ChangeStore


@click.command("diff")
@click.argument("run", required=False)
@json_option
@pass_app
def diff(app: App, *, run: str | None, as_json: bool) -> None:
    """Show what the tools of a run changed in this project; without RUN of the newest run that was not undone."""
    from navigator_kernel.adapters.processes.line_diff import diff_of
    from navigator_kernel.tools.writing import shown

    changes = _changes(app)
    run = run or next((one for one in changes.runs() if not changes.is_undone(one)), None) or _newest(changes)
    made = changes.of(run)
    if as_json:
        changed = [{"path": one.path, "new": one.before is None, "diff": diff_of(one)} for one in made]
        document({"run": run, "changes": changed, "exit_code": 0})
        return
    lines(line for one in made for line in shown(diff_of(one)).removesuffix("\n").split("\n"))
    then = "undone since" if changes.is_undone(run) else f"navigator undo {run} puts them back"
    note(f"run {run}: {numbered(len(made), 'change')}; {then}")


@click.command("undo")
@click.argument("run", required=False)
@click.option("--force", is_flag=True, help="Also undo files that were changed after the run.")
@json_option
@pass_app
def undo(app: App, *, run: str | None, force: bool, as_json: bool) -> int:
    """Put back every file of this project that the tools of a run changed; without RUN of the newest such run."""
    changes = _changes(app)
    run = run or _newest(changes)
    done = changes.undo(run, force=force)
    code = 1 if any(how == "changed since" for _, how in done) else 0
    if as_json:
        document({"run": run, "files": [{"path": path, "state": how} for path, how in done], "exit_code": code})
    else:
        words = (say(f"undo.{how.replace(' ', '_')}", app.spoken, path=escape_controls(path)) for path, how in done)
        lines(words)
        if code:
            note("--force restores what was changed after the run, too")
    return code


def _changes(app: App) -> ChangeStore:
    return app.bare.changes


def _newest(changes: ChangeStore) -> str:
    runs = changes.runs()
    if not runs:
        raise NotFound("no run has changed a file of this project", hint="navigator log shows what runs did")
    return runs[0]
