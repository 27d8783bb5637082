"""Lists, shows and stops runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import replace

from navigator_kernel.adapters.processes.line_diff import diff_of
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import (
    Event,
    RunCancelled,
    RunCompleted,
    RunError,
    RunStarted,
    SkillActivated,
    StepCompleted,
    StepStarted,
    Usage,
)
from navigator_kernel.gateway.streams.page_events import LAST, whole
from navigator_kernel.values.http.cursors import Page, cursor_of, place_of
from navigator_kernel.values.http.endpoint import SESSION, Answer, Call, Caller, Endpoint
from navigator_kernel.values.packet import yaml_of

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

LOOKED_AT = 2_000  # runs that are read for one page of the list


class LoggedRun(Struct, frozen=True, kw_only=True):
    """`state` is the state of its report, or `running`, `failed`, `cancelled`, `unfinished`. `cost` is in US dollars,
    None if a price is not known; `elapsed` is in seconds, None for a run without an end."""

    run: str
    session: str
    turn: int
    message: str
    started: str
    elapsed: float | None
    state: str
    summary: str
    skills: list[str]
    requests: int
    input_tokens: int
    output_tokens: int
    cost: float | None


class LoggedRuns(Struct, frozen=True, kw_only=True):
    runs: list[LoggedRun]
    next: str


class OfRuns(Page, frozen=True, forbid_unknown_fields=True):
    """Runs of one `session`, with this `state`, that used this `skill`, with the words of `q` in the message."""

    session: Annotated[str, Meta(pattern=f"^(?:{SESSION})?$")] = ""
    state: Annotated[str, Meta(max_length=20)] = ""
    skill: Annotated[str, Meta(max_length=200)] = ""
    q: Annotated[str, Meta(max_length=200)] = ""


class RunEvents(Struct, frozen=True, kw_only=True):
    """All events so far, in the form of the stream with `events=all`."""

    run: str
    session: str
    events: list[Mapping[str, Any]]


def list_runs(gateway: Gateway, call: Call) -> LoggedRuns:
    """Lists runs, newest first. If few runs match, a page may have fewer than `limit` entries and still a `next`."""
    query: OfRuns = call.query
    session, after = gateway.session_id(call.caller, query.session) if query.session else "", place_of(query.cursor)
    names = [run for run in gateway.log.runs() if not after or run < after]
    runs: list[LoggedRun] = []
    for name in names[:LOOKED_AT]:
        if len(runs) == query.limit:
            return LoggedRuns(runs=runs, next=cursor_of(runs[-1].run))
        run = _visible(gateway, call.caller, name, session)
        if (
            run is not None
            and query.state in {"", run.state}
            and (not query.skill or query.skill in run.skills)
            and all(word in run.message.casefold() for word in query.q.casefold().split())
        ):
            runs.append(run)
    return LoggedRuns(runs=runs, next=cursor_of(names[LOOKED_AT - 1]) if len(names) > LOOKED_AT else "")


def read_run(gateway: Gateway, call: Call) -> LoggedRun:
    run = call.path["run"]
    session = gateway.session_of_run(call.caller, run)
    return _logged(gateway, run, session, gateway.log.read(run))


def read_run_log(gateway: Gateway, call: Call) -> RunEvents:
    """Returns the events of a run so far, at once and not as a stream."""
    run = call.path["run"]
    session = gateway.session_of_run(call.caller, run)
    events = [whole(event, session).data for event in gateway.log.read(run)]
    return RunEvents(run=run, session=session, events=events)


async def stop_run(gateway: Gateway, call: Call) -> Answer:
    """Stops the run and its processes, at whichever gateway or host of the project they are; there it may take a
    second. 404 if it is not under way."""
    gateway.session_of_run(call.caller, call.path["run"])
    await asyncio.to_thread(gateway.runs.stop, call.path["run"])
    return Answer(status=204)


def _visible(gateway: Gateway, caller: Caller, run: str, session: str) -> LoggedRun | None:
    """The run; None if it is of another token or session, or its log is damaged: `navigator doctor` names it."""
    if session and gateway.session_by_run.get(run, session) != session:
        return None
    try:
        events = gateway.log.read(run)
    except KernelError:
        return None
    first = events[0].body if events else None
    if not isinstance(first, RunStarted):
        return None
    gateway.session_by_run[run] = first.session
    if session and first.session != session:
        return None
    name = gateway.session_name(caller, first.session)
    return None if name is None else _logged(gateway, run, name, events)


def _logged(gateway: Gateway, run: str, session: str, events: Sequence[Event]) -> LoggedRun:
    bodies: list[Any] = [event.body for event in events]
    first = next(body for body in bodies if isinstance(body, RunStarted))
    ended = next((body for body in reversed(bodies) if isinstance(body, RunCompleted)), None)
    spent = [body for body in bodies if isinstance(body, Usage)]
    costs = [body.cost for body in spent]
    elapsed = None
    if isinstance(bodies[-1], LAST):
        elapsed = (datetime.fromisoformat(events[-1].ts) - datetime.fromisoformat(events[0].ts)).total_seconds()
    if ended is not None:
        state = ended.state
    elif any(isinstance(body, RunError) for body in bodies):
        state = "failed"
    elif any(isinstance(body, RunCancelled) for body in bodies):
        state = "cancelled"
    else:
        state = "running" if gateway.runs.feeds.find(run) is not None else "unfinished"
    return LoggedRun(
        run=run,
        session=session,
        turn=events[0].turn,
        message=first.message,
        started=events[0].ts,
        elapsed=None if elapsed is None else round(elapsed, 3),
        state=state,
        summary=ended.summary if ended else "",
        skills=list(dict.fromkeys(body.skill for body in bodies if isinstance(body, SkillActivated))),
        requests=sum(body.requests for body in spent),
        input_tokens=sum(body.input_tokens for body in spent),
        output_tokens=sum(body.output_tokens for body in spent),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


_endpoint = partial(Endpoint, tag="runs", role="chat")

ENDPOINTS = (
    _endpoint("GET", "/api/runs", "List runs, newest first", list_runs, query=OfRuns, answer=LoggedRuns),
    _endpoint("GET", "/api/runs/{run}", "Look at a run", read_run, answer=LoggedRun, errors=(404,)),
    _endpoint("GET", "/api/runs/{run}/log", "Read the events of a run", read_run_log, answer=RunEvents, errors=(404,)),
    _endpoint("DELETE", "/api/runs/{run}", "Stop a run", stop_run, status=204, errors=(404,)),
)


# The work of a run: its steps with packet and report, and the files of the project that its tools changed.


class RunStep(Struct, frozen=True, kw_only=True):
    """`packet` and `report` are YAML; `ended`, `state` and `report` are empty for a step that has not ended. `seq` is
    the number of the event that began the step."""

    seq: int
    step: int | None
    agent: str
    target: str
    started: str
    ended: str
    state: str
    packet: str
    report: str


class RunSteps(Struct, frozen=True, kw_only=True):
    run: str
    steps: list[RunStep]


class ChangedFile(Struct, frozen=True, kw_only=True):
    """A changed file; `new` is true if the run created it. `diff` is unified and whole."""

    path: str
    new: bool
    diff: str


class RunChanges(Struct, frozen=True, kw_only=True):
    """The changes as in `navigator diff`; empty for a run that changed no file of the project."""

    run: str
    changes: list[ChangedFile]


class ToUndo(Struct, frozen=True, forbid_unknown_fields=True):
    """With `force`, also restores files that were changed after the run."""

    force: bool = False


class UndoneFile(Struct, frozen=True, kw_only=True):
    """`state` is `undone`, `as before` or `changed since`."""

    path: str
    state: str


class Undone(Struct, frozen=True, kw_only=True):
    run: str
    files: list[UndoneFile]


def read_run_steps(gateway: Gateway, call: Call) -> RunSteps:
    """The packet and the report of each step, as YAML."""
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    steps: list[RunStep] = []
    for event in gateway.log.read(run):
        body = event.body
        if isinstance(body, StepStarted):
            step = RunStep(
                seq=event.seq,
                step=event.step,
                agent=body.agent,
                target=body.packet.get("task_spec", {}).get("target", ""),
                started=event.ts,
                ended="",
                state="",
                packet=_yaml(gateway, body.packet),
                report="",
            )
            steps.append(step)
        elif isinstance(body, StepCompleted):
            at = next((at for at, step in enumerate(steps) if step.step == event.step and not step.ended), None)
            if at is not None:
                state, report = str(body.report.get("state", "")), _yaml(gateway, body.report)
                steps[at] = replace(steps[at], ended=event.ts, state=state, report=report)
    return RunSteps(run=run, steps=steps)


def read_run_changes(gateway: Gateway, call: Call) -> RunChanges:
    run, redact = call.path["run"], gateway.project.redact
    gateway.session_of_run(call.caller, run)
    try:
        changes = gateway.project.changes.of(run)
    except NotFound:
        changes = ()
    files = [ChangedFile(path=one.path, new=one.before is None, diff=redact(diff_of(one))) for one in changes]
    return RunChanges(run=run, changes=files)


def undo_run(gateway: Gateway, call: Call) -> Undone:
    """Restores the files of the project that the run changed, like `navigator undo`. 404 if it changed none."""
    run, force = call.path["run"], call.body.force
    gateway.session_of_run(call.caller, run)
    done = gateway.project.changes.undo(run, force=force)
    return Undone(run=run, files=[UndoneFile(path=path, state=how) for path, how in done])


def _yaml(gateway: Gateway, record: Mapping[str, Any]) -> str:
    return yaml_of(gateway.project.redact(dict(record)))


_of_run = partial(_endpoint, errors=(404,))
_STEPS, _CHANGES = "Read the packet and the report of each step", "Show what a run changed in the project"
_UNDO = "Restore the files that a run changed"

WORK_ENDPOINTS = (
    _of_run("GET", "/api/runs/{run}/steps", _STEPS, read_run_steps, answer=RunSteps),
    _of_run("GET", "/api/runs/{run}/changes", _CHANGES, read_run_changes, answer=RunChanges),
    _of_run("POST", "/api/runs/{run}/undo", _UNDO, undo_run, role="admin", body=ToUndo, answer=Undone),
)
