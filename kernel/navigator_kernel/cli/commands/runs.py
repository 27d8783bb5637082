"""`navigator why`, `usage`, `log`, `files`, `diff` and `undo`: what past runs chose, took, did and made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import asdict

from navigator_kernel.adapters.stores.run_log import usage_of
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls, numbered
from navigator_kernel.values.chat import Spent
from navigator_kernel.why import lines_of, missed, readable_lines, skill_named

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.changes import ChangeStore
    from navigator_kernel.bootstrap.results import RunResult
    from navigator_kernel.events import Event


@click.command("why")
@click.argument("run", required=False)
@click.option("--not", "skill", metavar="SKILL", help="Show where SKILL was dropped, and why.")
@click.option("-v", "--verbose", is_flag=True, help="Show every stage with its numbers.")
@json_option
@pass_app
def why(app: App, *, run: str | None, skill: str | None, verbose: bool, as_json: bool) -> None:
    """Show why RUN, or the newest run, chose what it chose."""
    log = app.bare.run_log
    known = log.runs()
    if run is None and not known:
        raise NotFound("nothing was run yet", hint='navigator ask "…" makes one')
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


# `navigator usage`: what models took in this project, and how much of it came from a provider's cache.


@click.command("usage")
@click.option("--session", help="Only runs of this session.")
@click.option("--last", type=click.IntRange(1, 5_000), default=5_000, show_default=True, help="Newest runs to count.")
@json_option
@pass_app
def usage(app: App, *, session: str | None, last: int, as_json: bool) -> None:
    """Sum up the use of models: requests, tokens, what a cache saved, and cost."""
    runs, models = usage_of(app.bare.run_log, lambda name: session in (None, name), last)
    if as_json:
        document({"runs": runs, "models": [{"model": name, **spent.to_dict()} for name, spent in models.items()]})
        return
    total = sum(models.values(), Spent())
    rows = [_row(name, spent) for name, spent in (*models.items(), *([("", total)] if len(models) > 1 else []))]
    table(("model", "requests", "tokens in", "from a cache", "tokens out", "cost"), rows)
    note(f"{numbered(runs, 'run')} counted")


def _row(model: str, spent: Spent) -> tuple[str, ...]:
    cached = f"{spent.cached / spent.input:.0%}" if spent.input else "-"
    cost = f"${spent.cost:.4f}" if spent.priced else "-"
    return (model or "all", f"{spent.requests:,}", f"{spent.input:,}", cached, f"{spent.output:,}", cost)


# `navigator log`: the audit log of this project.

_SHOWN = 12  # characters of a digest shown to a person


@click.command("log")
@click.option("--run", help="Only entries of this run.")
@click.option("--event", help="Only entries of this kind, such as refused.")
@click.option("--about", help="Only entries that contain this word.")
@click.option("--last", type=click.IntRange(1), default=50, show_default=True, help="How many are shown.")
@json_option
@pass_app
def log(app: App, *, run: str | None, event: str | None, about: str | None, last: int, as_json: bool) -> None:
    """Show what was allowed, refused, run and written; exit code 6 where the record was changed or cut off."""
    every = app.bare.audit.entries()
    found = [one for one in every if (run is None or one.facts.get("run") == run) and event in (None, one.event)]
    found = [one for one in found if about is None or about in str(one.facts)]
    shown = found[-last:]
    if as_json:
        document({"count": len(found), "whole": True, "entries": [one.to_dict() for one in shown]})
        return
    lines(
        f"{escape_controls(one.ts)}  {escape_controls(one.event):<10}  {'  '.join(_shown(one.facts))}" for one in shown
    )
    note(f"{len(found)} of {numbered(len(every), 'entry')}; none was changed or removed")


def _shown(facts: dict[str, Any]) -> Iterable[str]:
    for key, value in facts.items():
        if value in ("", [], {}, None):
            continue
        if isinstance(value, list):
            shown = ", ".join(_item(item) for item in value[:5])
            yield f"{escape_controls(key)}={shown}{' …' if len(value) > 5 else ''}"
        else:
            yield f"{escape_controls(key)}={_item(value)}"


def _item(item: Any) -> str:
    return " ".join(_short(value) for value in item.values() if value) if isinstance(item, dict) else _short(item)


def _short(value: Any) -> str:
    """Shortens digests; --json has them in full."""
    text = escape_controls(str(value))
    head, mark, digest = text.rpartition("sha256:")
    if mark and len(digest) == 64:
        return f"{head}{mark}{digest[:_SHOWN]}"
    return text[:_SHOWN] if len(text) == 64 and text.isalnum() else text


# `navigator files`: lists the files that runs made, and copies one to the project by the person's own hand.


@click.command("files")
@click.argument("run", required=False)
@click.argument("name", required=False)
@click.option("--to", metavar="PATH", help="Copy the file NAME of the run to this file or folder of the project.")
@click.option("--force", is_flag=True, help="Replace a file that is there already; navigator undo puts it back.")
@json_option
@pass_app
def files(app: App, *, run: str | None, name: str | None, to: str | None, force: bool, as_json: bool) -> None:
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


# `navigator diff` and `navigator undo`: show and revert the changes that tools made in the project.


@click.command("diff")
@click.argument("run", required=False)
@json_option
@pass_app
def diff(app: App, *, run: str | None, as_json: bool) -> None:
    """Show what the tools of a run changed in this project; without RUN of the newest run that was not undone."""
    from navigator_kernel.adapters.processes.line_diff import diff_of
    from navigator_kernel.tools.writing import shown

    changes = app.bare.changes
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
    changes = app.bare.changes
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


def _newest(changes: ChangeStore) -> str:
    runs = changes.runs()
    if not runs:
        raise NotFound("no run has changed a file of this project", hint="navigator log shows what runs did")
    return runs[0]
