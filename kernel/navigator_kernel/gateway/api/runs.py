"""Runs: list, look at, stop, explain and replay."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct

from navigator_kernel.errors import KernelError
from navigator_kernel.events import Event, RunCancelled, RunCompleted, RunError, RunStarted, SkillActivated, Usage
from navigator_kernel.gateway.endpoints import Answer, Call, Endpoint
from navigator_kernel.gateway.page_events import whole
from navigator_kernel.gateway.pages import Page, page_of, place_of
from navigator_kernel.why import told

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.gateway.tokens import Caller

LOOKED_AT = 2_000  # runs that a page is sought in


class LoggedRun(Struct, frozen=True, kw_only=True):
    """`state` is that of its report, or `running`, `failed`, `cancelled`, `unfinished`. `cost` is in US dollars, None
    where a price is not known; `elapsed` in seconds."""

    run: str
    session: str
    turn: int
    message: str
    started: str
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


class OfSession(Page, frozen=True, forbid_unknown_fields=True):
    """Those of one `session` only."""

    session: Annotated[str, Meta(max_length=64)] = ""


class RunEvents(Struct, frozen=True, kw_only=True):
    """All events so far, in the form of the stream with `events=all`."""

    run: str
    session: str
    events: list[Mapping[str, Any]]


class Explanation(Struct, frozen=True, kw_only=True):
    """As `navigator why` prints it."""

    run: str
    lines: list[str]


class Replay(Struct, frozen=True, kw_only=True):
    """`differences` are the fields of events that are another now than when the run was recorded."""

    run: str
    events: int
    differences: list[dict[str, Any]]
    notes: list[str]


async def list_runs(gateway: Gateway, call: Call) -> LoggedRuns:
    """Newest first."""
    held = await asyncio.to_thread(_listed, gateway, call.caller, call.query)
    page, following = page_of(held, call.query, lambda one: one.run)
    return LoggedRuns(runs=page, next=following)


async def read_run(gateway: Gateway, call: Call) -> LoggedRun:
    run = call.path["run"]
    session = gateway.session_of_run(call.caller, run)
    return _logged(gateway, run, session, await asyncio.to_thread(gateway.log.read, run))


async def read_run_log(gateway: Gateway, call: Call) -> RunEvents:
    """What has been written of a run so far, at once and not as a stream."""
    run = call.path["run"]
    session = gateway.session_of_run(call.caller, run)
    events = await asyncio.to_thread(gateway.log.read, run)
    return RunEvents(run=run, session=session, events=[whole(event, session).data for event in events])


async def stop_run(gateway: Gateway, call: Call) -> Answer:
    """Ends the run and its processes. 404 where it is not under way."""
    gateway.session_of_run(call.caller, call.path["run"])
    gateway.runs.stop(call.path["run"])
    return Answer(status=204)


async def explain_run(gateway: Gateway, call: Call) -> Explanation:
    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    events = await asyncio.to_thread(gateway.log.read, run)
    return Explanation(run=run, lines=[line.strip() for event in events for line in told(event)])


async def replay_run(gateway: Gateway, call: Call) -> Replay:
    """Takes the turn again from its recording. Nothing is run, asked or changed."""
    from navigator_kernel.bootstrap.replays import replayed

    run = call.path["run"]
    gateway.session_of_run(call.caller, run)
    found = await asyncio.to_thread(replayed, gateway.root, gateway.settings, run)
    return Replay(run=run, events=found.events, differences=found.differences, notes=found.notes)


def _listed(gateway: Gateway, caller: Caller, query: OfSession) -> list[LoggedRun]:
    """The page that `query` asks for, and one more: no other log is read."""
    wanted, after = gateway.session_id(caller, query.session) if query.session else "", place_of(query.cursor)
    found: list[LoggedRun] = []
    for run in gateway.log.runs()[:LOOKED_AT]:
        if len(found) > query.limit:
            break
        if after and run >= after:
            continue
        if wanted and gateway.session_by_run.get(run, wanted) != wanted:
            continue
        try:
            events = gateway.log.read(run)
        except KernelError:
            continue  # damaged: `navigator doctor` says so
        first = events[0].body if events else None
        if not isinstance(first, RunStarted):
            continue
        gateway.session_by_run[run] = first.session
        if wanted and first.session != wanted:
            continue
        name = gateway.session_name(caller, first.session)
        if name is not None:
            found.append(_logged(gateway, run, name, events))
    return found


def _logged(gateway: Gateway, run: str, session: str, events: Sequence[Event]) -> LoggedRun:
    bodies: list[Any] = [event.body for event in events]
    first = next(body for body in bodies if isinstance(body, RunStarted))
    ended = next((body for body in reversed(bodies) if isinstance(body, RunCompleted)), None)
    spent = [body for body in bodies if isinstance(body, Usage)]
    costs = [body.cost for body in spent]
    return LoggedRun(
        run=run,
        session=session,
        turn=events[0].turn,
        message=first.message,
        started=events[0].ts,
        state=ended.state if ended else _state(gateway, run, bodies),
        summary=ended.summary if ended else "",
        skills=list(dict.fromkeys(body.skill for body in bodies if isinstance(body, SkillActivated))),
        requests=sum(body.requests for body in spent),
        input_tokens=sum(body.input_tokens for body in spent),
        output_tokens=sum(body.output_tokens for body in spent),
        cost=None if None in costs else sum(cost for cost in costs if cost is not None),
    )


def _state(gateway: Gateway, run: str, bodies: Sequence[Any]) -> str:
    if any(isinstance(body, RunError) for body in bodies):
        return "failed"
    if any(isinstance(body, RunCancelled) for body in bodies):
        return "cancelled"
    return "running" if gateway.runs.feeds.find(run) is not None else "unfinished"


ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/api/runs",
        role="chat",
        summary="List runs, newest first",
        handler=list_runs,
        tag="runs",
        query=OfSession,
        answer=LoggedRuns,
    ),
    Endpoint(
        method="GET",
        path="/api/runs/{run}",
        role="chat",
        summary="Look at a run",
        handler=read_run,
        tag="runs",
        answer=LoggedRun,
        errors=(404,),
    ),
    Endpoint(
        method="GET",
        path="/api/runs/{run}/log",
        role="chat",
        summary="Read the events of a run",
        handler=read_run_log,
        tag="runs",
        answer=RunEvents,
        errors=(404,),
    ),
    Endpoint(
        method="DELETE",
        path="/api/runs/{run}",
        role="chat",
        summary="Stop a run",
        handler=stop_run,
        tag="runs",
        status=204,
        errors=(404,),
    ),
    Endpoint(
        method="GET",
        path="/api/runs/{run}/why",
        role="chat",
        summary="Explain how a run chose its skill",
        handler=explain_run,
        tag="runs",
        answer=Explanation,
        errors=(404,),
    ),
    Endpoint(
        method="POST",
        path="/api/runs/{run}/replay",
        role="chat",
        summary="Take a run again from its recording, and compare",
        handler=replay_run,
        tag="runs",
        answer=Replay,
        errors=(404,),
    ),
)
