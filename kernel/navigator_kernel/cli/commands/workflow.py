"""`navigator workflow`: stored workflows and their runs."""

from __future__ import annotations

from typing import Any

import click

from navigator_kernel.cli.app import json_option, pass_app, unsafe_option
from navigator_kernel.cli.output import document, is_attended, lines, note, say_lines, style_of, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import KernelError, NotFound, Refused, unknown_name
from navigator_kernel.text import suggestions
from navigator_kernel.values.packet import FORMATS
from navigator_kernel.values.request import Message
from navigator_kernel.values.workflow import WorkflowRun, outline, plan_to_dict


def _readable(_ctx: click.Context, _param: click.Parameter, value: Any) -> Any:
    """Decodes the arguments of a shell."""
    if isinstance(value, tuple):
        return tuple(_readable(_ctx, _param, word) for word in value)
    return value.encode("utf-8", "replace").decode("utf-8")


@click.group("workflow")
def command() -> None:
    """Stored workflows and their runs."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> int:
    """List stored workflows and runs that have begun, newest first; exit code 1 where a file cannot be used."""
    from navigator_kernel.language.wording import worded
    from navigator_kernel.turn.workflow_file import load_stored, stored_names

    files: list[dict[str, Any]] = []
    for name in stored_names(app.project):
        try:
            plan = load_stored(name, app.project)
            files.append({"name": name, "description": plan.description, "steps": len(plan.steps), "problem": ""})
        except KernelError as error:
            files.append({"name": name, "description": "", "steps": 0, "problem": error.message})
    runs = [_short(run) for run in app.bare.journal.listed() if run.has_begun]
    code = 1 if any(one["problem"] for one in files) else 0
    if as_json:
        document({"workflows": files, "runs": runs, "exit_code": code})
        return code
    if files:
        rows = [(f"#{one['name']}", str(one["steps"]), one["problem"] or one["description"]) for one in files]
        table(("workflow", "steps", "what it does"), rows)
    if runs:
        states = [worded("outcome", one["state"], app.spoken) for one in runs]
        done = [f"{one['done']}/{one['steps']}" for one in runs]
        rows = [(one["token"], *both, one["name"]) for one, *both in zip(runs, states, done, strict=True)]
        table(("run", "state", "done", "workflow"), rows)
    return code


@command.command("show")
@click.argument("name", callback=_readable)
@json_option
@pass_app
def show(app: App, *, name: str, as_json: bool) -> None:
    """Print the stored workflow NAME, or the run of that token with each step's output, files and tries."""
    from navigator_kernel.language.rendering import step_lines
    from navigator_kernel.language.wording import say, worded
    from navigator_kernel.turn.workflow_file import load_stored, stored_names

    if name.removeprefix("#") in stored_names(app.project):
        plan = load_stored(name.removeprefix("#"), app.project)
        document({"workflow": plan_to_dict(plan)}) if as_json else lines(outline(plan, app.spoken))
        return
    run = app.bare.journal.load(name)
    if as_json:
        document({"run": {**_short(run), "plan": plan_to_dict(run.plan), "tries": _tries(run)}})
        return
    head, *steps = outline(run.plan, app.spoken)
    state = worded("outcome", run.state, app.spoken)
    lines([say("workflow.run_head", app.spoken, token=run.token, state=state), head])
    for number, step in enumerate(steps, 1):
        last = run.last(number)
        report = None if last is None else last.report
        found = [] if report is None else step_lines(report, style_of(app.settings.style), whole=True)
        lines([step, *(f"    {line}" for line in found)])
    columns = ("step", "attempt", "started", "ended", "state")
    rows = [
        (
            *(worded("outcome", str(one[name]), app.spoken) for name in columns),
            "" if one["state"] == "success" else one["summary"],
        )
        for one in _tries(run)
    ]
    table(("step", "try", "started", "ended", "state", "why"), rows)
    if key := _GOES_ON.get(run.state):
        note(say(f"workflow.{key}", app.spoken, token=run.token))


@command.command("run")
@click.argument("name", callback=_readable)
@click.argument("words", nargs=-1, callback=_readable)
@click.option("-y", "--yes", is_flag=True, help="Agree to everything that the steps need.")
@unsafe_option
@json_option
@pass_app
def run(app: App, *, name: str, words: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Run the stored workflow NAME; WORDS stand for $ARGUMENTS and $1, $2 … in its steps."""
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.turn.workflow import start_run
    from navigator_kernel.turn.workflow_file import stored_names

    name, known = name.removeprefix("#"), stored_names(app.project)
    if name not in known:
        message, near = f"no workflow is called {name!r}", suggestions(name, known)
        raise unknown_name(NotFound, message, near, hint="navigator workflow list shows them")
    rest, token = " ".join(words), app.project.ids.new()
    files = preprocess(Message(text=rest), app.project.files).files
    start_run(name, rest, words, files, app.project, token, app.project.ids.new())
    return _agreed(app, app.bare.journal.load(token), "", yes=yes, as_json=as_json)


@command.command("resume")
@click.argument("token", callback=_readable)
@click.option("--repeat", is_flag=True, help="Run the interrupted step again.")
@click.option("-y", "--yes", is_flag=True, help="Agree to everything that the steps need.")
@unsafe_option
@json_option
@pass_app
def resume(app: App, *, token: str, repeat: bool, yes: bool, as_json: bool) -> int:
    """Continue the run TOKEN from the first step that has not succeeded."""
    held = app.bare.journal.load(token)
    if held.state == "proposed":
        raise Refused(f"the plan of {token!r} was not approved", hint=f"navigator workflow approve {token}")
    return _agreed(app, held, "repeat" if repeat else "", yes=yes, as_json=as_json)


@command.command("approve")
@click.argument("token", callback=_readable)
@unsafe_option
@json_option
@pass_app
def approve(app: App, *, token: str, as_json: bool) -> int:
    """Approve what the run TOKEN waits for (its plan, or an effect of a step), and continue it."""
    held = app.bare.journal.load(token)
    last = next((record.report for record in reversed(held.records) if record.report is not None), None)
    waiting = "" if last is None or held.state != "waiting" else last.subject
    return _agreed(app, held, "plan" if held.state == "proposed" else waiting, yes=False, as_json=as_json)


@command.command("abort")
@click.argument("token", callback=_readable)
@json_option
@pass_app
def abort(app: App, *, token: str, as_json: bool) -> None:
    """End the run TOKEN; the effects of its steps stay."""
    app.bare.journal.abort(token, app.bare.sessions.queue)
    document({"aborted": token, "exit_code": 0}) if as_json else say_lines(f"aborted {token}")


def _agreed(app: App, held: WorkflowRun, subject: str, *, yes: bool, as_json: bool) -> int:
    """Approves `subject` of a run from its session. Busy while another process follows the run: a turn would wait for
    the session first."""
    from navigator_kernel.cli.chat.ask import Dialogue

    with app.bare.journal.hold(held.token):
        pass
    answer, session = app.turns.workflow_answer(held, subject)
    text = "yes" if app.language == "en" else answer.text
    form, attended = app.settings.format, is_attended() and not as_json
    asked = FORMATS.get(form, "detail")
    message = Message(text=text, consent=yes, format=asked, language=app.language, attended=attended)
    return Dialogue(app=app, form=form, as_json=as_json, kept=session.turn > 0).send(message, session)


# How to continue a run, by its state
_GOES_ON = {"proposed": "token", "waiting": "resume", "stopped": "resume", "running": "resume"}


def _short(run: WorkflowRun) -> dict[str, Any]:
    base: dict[str, Any] = {"token": run.token, "name": run.plan.name, "state": run.state, "done": run.done}
    return {**base, "steps": len(run.plan.steps), "created": run.created, "updated": run.updated}


def _tries(run: WorkflowRun) -> list[dict[str, Any]]:
    return [
        {
            "step": record.step,
            "attempt": record.attempt,
            "digest": record.digest,
            "started": record.started,
            "ended": record.ended,
            "state": "under way" if record.report is None else record.report.state,
            "summary": "" if record.report is None else record.report.summary,
            "data": {} if record.report is None else dict(record.report.data),
            "files": [] if record.report is None else list(record.report.files),
        }
        for record in run.records
    ]
