"""Sessions, their history, and the approvals that wait for a person."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.errors import Busy, KernelError, NotFound, Refused
from navigator_kernel.events import ApprovalRequested, StepCompleted
from navigator_kernel.gateway.api.chat import StartedRun
from navigator_kernel.turn.answers import expiry_of
from navigator_kernel.values.approval import waiting_approval
from navigator_kernel.values.http.cursors import Page, page_of
from navigator_kernel.values.http.endpoint import Answer, Call, Caller, Endpoint
from navigator_kernel.values.packet import yaml_of
from navigator_kernel.values.request import Session
from navigator_kernel.values.workflow import PLAN, outline

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.gateway.runs import Run

REASON = 1_000  # characters of the reason for a refusal
_ANSWERS: Mapping[str, str] = {"yes": "yes", "session": "for this session", "no": "no", "cancel": "cancel"}
_HERE = "navigator skill trust NAME, or approve it once"


class KeptSession(Struct, frozen=True, kw_only=True):
    """`waiting` is `approval`, `question` or empty; `run` is the turn in progress, or empty; `title` is the beginning
    of the first message."""

    id: str
    title: str
    created: str
    updated: str
    turns: int
    waiting: str
    run: str


class Sessions(Struct, frozen=True, kw_only=True):
    sessions: list[KeptSession]
    next: str


class Entry(Struct, frozen=True, kw_only=True):
    """One message of a session; `role` is `user` or `assistant`."""

    role: str
    text: str
    run: str
    ts: str


class History(Struct, frozen=True, kw_only=True):
    session: str
    turns: int
    waiting: str
    history: list[Entry]


class Last(Struct, frozen=True, forbid_unknown_fields=True):
    """Limits a history to the `last` entries."""

    last: Annotated[int, Meta(ge=1, le=1_000)] = 100


class WaitingApproval(Struct, frozen=True, kw_only=True):
    """`subject` is what the approval covers, with the digest of its bytes or arguments; `packets` are the work that
    waits, and `orders` the same as YAML. `facts` come from the report that asks: for a tool its name, its path, and the
    change of a file as a diff."""

    id: str
    session: str
    subject: str
    question: str
    asked: str
    expires: str
    packets: list[dict[str, Any]]
    orders: list[str]
    facts: dict[str, Any]


class Approvals(Struct, frozen=True, kw_only=True):
    approvals: list[WaitingApproval]


class ApprovalAnswer(Struct, frozen=True, forbid_unknown_fields=True):
    """`yes` for once, `session` for the whole session, `no` with a `reason` for the model, `cancel` to end the turn."""

    answer: Literal["yes", "session", "always", "no", "cancel"]
    reason: Annotated[str, Meta(max_length=REASON)] = ""


def list_sessions(gateway: Gateway, call: Call) -> Sessions:
    """Lists sessions, newest first."""
    titles = gateway.sessions.titles()
    busy = {run.session: run.id for run in gateway.runs.under_way()}
    mine = [
        KeptSession(**{**one, "id": name}, title=titles.get(one["id"], ""), run=busy.get(one["id"], ""))
        for one in gateway.sessions.listed()
        if (name := gateway.session_name(call.caller, one["id"])) is not None
    ]
    mine.sort(key=lambda one: f"{one.updated} {one.id}", reverse=True)
    page, following = page_of(mine, call.query, lambda one: f"{one.updated} {one.id}")
    return Sessions(sessions=page, next=following)


def read_session(gateway: Gateway, call: Call) -> History:
    name = gateway.session_id(call.caller, call.path["session"])
    session = gateway.sessions.load(name)
    said = gateway.sessions.history(name, call.query.last)
    waiting = "approval" if session.approval else "question" if session.question else ""
    entries = [Entry(role=one.role, text=one.text, run=one.run, ts=one.ts) for one in said]
    return History(session=call.path["session"], turns=session.turn, waiting=waiting, history=entries)


def delete_session(gateway: Gateway, call: Call) -> Answer:
    name = gateway.session_id(call.caller, call.path["session"])
    if any(run.session == name for run in gateway.runs.under_way()):
        raise Busy("a run of this session is under way", hint="stop it first")
    gateway.sessions.delete(name)
    return Answer(status=204)


def list_approvals(gateway: Gateway, call: Call) -> Approvals:
    """Lists all waiting approvals, newest session first, including those of the terminal and of other agents."""
    approvals = []
    for session in gateway.sessions.listed():
        name = gateway.session_name(call.caller, session["id"])
        if name is None or session["waiting"] != "approval":
            continue
        try:
            approvals.append(_approval(gateway, gateway.sessions.load(session["id"]), name))
        except KernelError:
            continue  # the approval was answered meanwhile, or cannot be read
    return Approvals(approvals=approvals)


async def answer_approval(gateway: Gateway, call: Call) -> StartedRun:
    """Begins the run that continues after the answer. NotFound if the approval was answered, has expired, or belongs to
    another token; Refused for a lasting one."""
    wanted = call.path["approval"]
    if call.body.answer == "always":
        raise Refused("a lasting approval is given at the terminal", hint=_HERE)
    run = await begin_answer(gateway, call.caller, wanted, call.body.answer, call.body.reason)
    return StartedRun(run=run.id, session=gateway.session_name(call.caller, run.session) or "")


async def begin_answer(gateway: Gateway, caller: Caller, approval: str, answer: str, reason: str = "") -> Run:
    """Begins the run that continues with the answer, and returns it after its first event. NotFound as above."""
    name = approval.rpartition(":")[0]
    if gateway.session_name(caller, name) is None:
        raise _gone(approval)
    text = f"e {reason}" if answer == "no" and reason else _ANSWERS[answer]
    run = gateway.runs.start(name, lambda turns: turns.answered(approval, text))
    await run.begun()
    return run


def waiting_in(gateway: Gateway, caller: Caller, session: str) -> WaitingApproval | None:
    """The approval that the caller's `session` waits for; None if there is none, or if it has expired."""
    try:
        stored = gateway.sessions.load(gateway.session_id(caller, session))
        approval = _approval(gateway, stored, session)
    except NotFound:
        return None
    return approval if approval.expires > SystemClock().now() else None


def _approval(gateway: Gateway, session: Session, name: str) -> WaitingApproval:
    pending, waits = session.approval, waiting_approval(session)
    if pending is None or waits is None:
        raise _gone(name)
    packets = [_redacted(gateway, packet.to_dict()) for packet in pending.packets]
    bodies: list[Any] = []  # of the run that asks
    with suppress(KernelError):  # they cannot be read
        run = pending.packets[0].context.run if pending.packets else ""
        bodies = [event.body for event in gateway.log.read(run)] if run else []
    reports = [body.report.get("data", {}) for body in reversed(bodies) if isinstance(body, StepCompleted)]
    questions = (body.detail for body in bodies if isinstance(body, ApprovalRequested) and body.id == waits.id)
    return WaitingApproval(
        id=waits.id,
        session=name,
        subject=waits.subject,
        question=next(questions, "") or _asked_by_workflow(gateway, pending.workflow, waits.subject),
        asked=pending.asked_at,
        expires=expiry_of(pending.asked_at),
        packets=packets,
        orders=[yaml_of(packet) for packet in packets],
        facts=_redacted(gateway, next((data for data in reports if data.get("subject") == waits.subject), {})),
    )


def _redacted(gateway: Gateway, value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(msgspec.to_builtins(gateway.project.redact(dict(value)), enc_hook=str))


def _asked_by_workflow(gateway: Gateway, token: str, subject: str) -> str:
    """The question of a workflow run about `subject`: its plan, or the summary of the step that waits."""
    try:
        run = gateway.project.journal.load(token) if token else None
    except KernelError:
        run = None
    if run is None:
        return ""
    if subject == PLAN:
        text = "\n".join(outline(run.plan, "en"))
    else:
        reports = [record.report for record in reversed(run.records) if record.report is not None]
        text = next((report.summary for report in reports if report.subject == subject), "")
    return str(gateway.project.redact(text))


def _gone(name: str) -> NotFound:
    return NotFound(f"nothing waits under {name!r}", hint="it was answered or withdrawn, or was asked over a day ago")


_endpoint = partial(Endpoint, tag="sessions", role="chat")
_SESSION = "/api/sessions/{session}"
_approvals = partial(_endpoint, tag="approvals")
_answered: Any = {"role": "approve", "body": ApprovalAnswer, "answer": StartedRun, "status": 202, "errors": (404, 409)}

ENDPOINTS = (
    _endpoint("GET", "/api/sessions", "List sessions, newest first", list_sessions, query=Page, answer=Sessions),
    _endpoint("GET", _SESSION, "Read a session's history", read_session, query=Last, answer=History, errors=(404,)),
    _endpoint("DELETE", _SESSION, "Delete a session and its history", delete_session, status=204, errors=(404, 409)),
    _approvals("GET", "/api/approvals", "List what waits for an approval", list_approvals, answer=Approvals),
    _approvals("POST", "/api/approvals/{approval}", "Approve or decline, once", answer_approval, **_answered),
)
