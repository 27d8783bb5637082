"""Workflows: stored plans, their runs, and how a run continues."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from navigator_kernel.errors import KernelError, NotFound, NotLoadable, Refused
from navigator_kernel.gateway.api.chat import StartedRun
from navigator_kernel.turn.workflow_file import (
    check_text,
    load_stored,
    named_in,
    remove_stored,
    store_text,
    stored_names,
    stored_text,
)
from navigator_kernel.values.http.conditions import (
    IF_MATCH,
    IF_NONE_MATCH,
    another_state,
    refuse_another,
    tag_of,
    tagged,
)
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint, HttpProblem, SessionName
from navigator_kernel.values.request import Message
from navigator_kernel.values.workflow import WorkflowRun, plan_to_dict

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

OPEN = frozenset({"proposed", "running", "waiting", "stopped"})


class StoredWorkflow(Struct, frozen=True, kw_only=True):
    """`problem` says why a file cannot be used, or is empty."""

    name: str
    description: str
    steps: int
    problem: str


class WorkflowRunState(Struct, frozen=True, kw_only=True):
    token: str
    session: str
    name: str
    state: str
    done: int
    steps: int
    created: str
    updated: str


class Workflows(Struct, frozen=True, kw_only=True):
    workflows: list[StoredWorkflow]
    runs: list[WorkflowRunState]


class Started(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`arguments` stand for $ARGUMENTS in its steps; `session` is the conversation that the run belongs to."""

    session: SessionName
    arguments: Annotated[str, Meta(max_length=20_000)] = ""


class Resumed(Struct, frozen=True, forbid_unknown_fields=True):
    """With `repeat`, the step that was under way when a process was killed is run again."""

    repeat: bool = False


def list_workflows(gateway: Gateway, call: Call) -> Workflows:
    files = []
    for name in stored_names(gateway.project):
        try:
            plan = load_stored(name, gateway.project)
            file = StoredWorkflow(name=name, description=plan.description, steps=len(plan.steps), problem="")
        except KernelError as error:
            file = StoredWorkflow(name=name, description="", steps=0, problem=error.message)
        files.append(file)
    runs = []
    for run in gateway.project.journal.listed():
        session = gateway.session_name(call.caller, run.session)
        is_declined = run.state == "aborted" and not run.has_begun
        if session is not None and not is_declined:
            runs.append(
                WorkflowRunState(
                    token=run.token,
                    session=session,
                    name=run.plan.name,
                    state=run.state,
                    done=run.done,
                    steps=len(run.plan.steps),
                    created=run.created,
                    updated=run.updated,
                )
            )
    return Workflows(workflows=files, runs=runs)


def read_workflow_run(gateway: Gateway, call: Call) -> dict[str, Any]:
    """The plan of a run, and each step's tries."""
    held = _mine(gateway, call)
    tries = [
        {"step": one.step, "attempt": one.attempt, "started": one.started, "ended": one.ended}
        | {"state": one.report.state if one.report else "running", "summary": one.report.summary if one.report else ""}
        | {"files": list(one.report.files) if one.report else []}
        for one in held.records
    ]
    name = gateway.session_name(call.caller, held.session) or ""
    state: dict[str, Any] = {"token": held.token, "session": name, "state": held.state}
    return {**state, "plan": gateway.project.redact(plan_to_dict(held.plan)), "tries": gateway.project.redact(tries)}


async def start_workflow(gateway: Gateway, call: Call) -> StartedRun:
    """Begins a run of a stored workflow. A step that needs an approval asks for it."""
    session = gateway.session_id(call.caller, call.body.session)
    text = f"#{call.path['name']} {call.body.arguments}".strip()
    run = gateway.runs.start(session, lambda turns: (Message(text=text, attended=False), turns.session(session)))
    await run.begun()
    return StartedRun(run=run.id, session=call.body.session)


async def resume_workflow(gateway: Gateway, call: Call) -> StartedRun:
    """Continues a run from the first step that has not succeeded. 403 if its plan was not approved, 409 if the run has
    ended or is under way."""
    workflow = await asyncio.to_thread(_resumable, gateway, call)
    subject = "repeat" if call.body.repeat else ""
    run = gateway.runs.start(workflow.session, lambda turns: turns.workflow_answer(workflow, subject))
    await run.begun()
    return StartedRun(run=run.id, session=gateway.session_name(call.caller, workflow.session) or "")


def abort_workflow(gateway: Gateway, call: Call) -> Answer:
    """Ends a run; the effects of its steps stay."""
    gateway.project.journal.abort(_mine(gateway, call).token, gateway.sessions.queue)
    return Answer(status=204)


def _resumable(gateway: Gateway, call: Call) -> WorkflowRun:
    """The run of the token; raises an error if it has ended or is under way in any process."""
    held = _mine(gateway, call)
    if held.state == "proposed":
        raise Refused(f"the plan of {held.token!r} was not approved", hint="GET /api/approvals names its approval")
    journal = gateway.project.journal
    with journal.hold(held.token):
        held = journal.load(held.token)
    if held.state not in OPEN:
        what = f"workflow run {held.token!r} has ended: {held.state}"
        raise HttpProblem(409, "ended", what, hint="run the workflow again")
    return held


def _mine(gateway: Gateway, call: Call) -> WorkflowRun:
    """The run that the path names; NotFound also for a run of another caller."""
    token = call.path["token"]
    held = gateway.project.journal.load(token)
    if gateway.session_name(call.caller, held.session) is None:
        raise NotFound(f"no run of a workflow is called {token!r}", hint="GET /api/workflows lists yours")
    return held


_of = partial(Endpoint, tag="workflows", role="chat")
_RUN: dict[str, Any] = {"answer": StartedRun, "status": 202, "errors": (404, 409)}
_APPROVED: dict[str, Any] = {**_RUN, "role": "approve"}
_ONE_RUN = "/api/workflow-runs/{token}"

ENDPOINTS = (
    _of("GET", "/api/workflows", "List stored workflows and their runs", list_workflows, answer=Workflows),
    _of("POST", "/api/workflows/{name}/runs", "Run a workflow", start_workflow, body=Started, **_RUN),
    _of("GET", _ONE_RUN, "Read a run of a workflow", read_workflow_run, errors=(404,)),
    _of("POST", f"{_ONE_RUN}/resume", "Continue a run of a workflow", resume_workflow, body=Resumed, **_APPROVED),
    _of("DELETE", _ONE_RUN, "End a run of a workflow", abort_workflow, status=204, errors=(404, 409)),
)


# Reads, checks, writes and removes stored workflows as text. A file is data: its plan needs an approval as before.

Text = Annotated[str, Meta(max_length=100_000)]


class WorkflowText(Struct, frozen=True, kw_only=True):
    """The file of a stored workflow. `redacted` is true if secrets in it are not shown: such a text must not be written
    back."""

    name: str
    text: str
    redacted: bool


class GivenText(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Text


class TextToCheck(GivenText, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without a `name`, the name in the text is used."""

    name: Annotated[str, Meta(max_length=200)] = ""


class TextProblem(Struct, frozen=True, kw_only=True):
    """`line` is 1 for a problem of the whole text."""

    line: int
    message: str


class CheckedStep(Struct, frozen=True, kw_only=True):
    text: str
    skill: str
    agent: str


class CheckedText(Struct, frozen=True, kw_only=True):
    """The result of a check; `steps` are those of the plan, empty if there are problems."""

    name: str
    problems: list[TextProblem]
    steps: list[CheckedStep]


def read_workflow(gateway: Gateway, call: Call) -> Answer:
    """Reads the text of a workflow's file, even if it cannot be used."""
    text = stored_text(call.path["name"], gateway.project)
    return tagged(_shown(call.path["name"], text, gateway), call.headers)


def check_workflow(gateway: Gateway, call: Call) -> CheckedText:
    """Finds the problems of a text, each with its line; nothing is written."""
    body: TextToCheck = call.body
    name = body.name or named_in(body.text)
    try:
        plan = check_text(body.text, name, gateway.project)
    except NotLoadable as error:
        problems = error.data.get("problems") or [{"line": 1, "message": error.message}]
        return CheckedText(name=name, problems=[TextProblem(**problem) for problem in problems], steps=[])
    except KernelError as error:
        message = f"{error.message} ({error.hint})" if error.hint else error.message
        return CheckedText(name=name, problems=[TextProblem(line=1, message=message)], steps=[])
    steps = [CheckedStep(text=step.text, skill=step.skill, agent=step.agent) for step in plan.steps]
    return CheckedText(name=name, problems=[], steps=steps)


def write_workflow(gateway: Gateway, call: Call) -> Answer:
    """Writes a text that is a valid plan; 409 with all problems for an invalid one. With `If-None-Match: *` only if no
    workflow has that name."""
    name = call.path["name"]
    with gateway.workflow_files:
        try:
            stored = _shown(name, stored_text(name, gateway.project), gateway)
        except NotFound:
            if IF_MATCH in call.headers:
                raise another_state() from None
        else:
            if call.headers.get(IF_NONE_MATCH, "").strip() == "*":
                raise another_state()
            refuse_another(stored, call.headers)
        store_text(name, call.body.text, gateway.project)
    value = _shown(name, call.body.text, gateway)
    return Answer(value=value, headers={"etag": tag_of(value)})


def delete_workflow(gateway: Gateway, call: Call) -> Answer:
    """Removes the file. Runs that it began are kept, with their plan."""
    name = call.path["name"]
    with gateway.workflow_files:
        refuse_another(_shown(name, stored_text(name, gateway.project), gateway), call.headers)
        remove_stored(name, gateway.project)
    return Answer(status=204)


def _shown(name: str, text: str, gateway: Gateway) -> WorkflowText:
    redacted: str = gateway.project.redact(text)
    return WorkflowText(name=name, text=redacted, redacted=redacted != text)


_file = partial(_of, sends=("ETag",), answer=WorkflowText)
_write: Any = {"role": "admin", "body": GivenText, "headers": (IF_MATCH, IF_NONE_MATCH), "errors": (409, 412)}
_remove: Any = {"role": "admin", "headers": (IF_MATCH,), "status": 204, "errors": (404, 412)}
_check: Any = {"body": TextToCheck, "answer": CheckedText}
_read: Any = {"headers": (IF_NONE_MATCH,), "errors": (404,)}

FILE_ENDPOINTS = (
    _of("POST", "/api/workflows/check", "Check the text of a workflow", check_workflow, **_check),
    _file("GET", "/api/workflows/{name}", "Read the text of a workflow", read_workflow, **_read),
    _file("PUT", "/api/workflows/{name}", "Write the text of a workflow", write_workflow, **_write),
    _of("DELETE", "/api/workflows/{name}", "Remove a workflow", delete_workflow, **_remove),
)
