"""Stage 5: composes the reply from the final report, the three sections and the next session (OUT-1..6, X-24)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import KernelError, NotFound, Refused, SkillNotFound
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.clauses import greets
from navigator_kernel.language.parameters import is_there
from navigator_kernel.language.wording import COLON, because, between, say
from navigator_kernel.text import cut_text, escape_controls, shorten
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.packet import Meta, Packet, Report, State
from navigator_kernel.values.reply import Notice, Reply, Sections
from navigator_kernel.values.request import (
    ASKED_BY_SERVER,
    AbsentFile,
    PendingApproval,
    PendingQuestion,
    PreprocessingResult,
    Said,
    Session,
    Sticky,
    mark,
)
from navigator_kernel.values.route import Direct, NeedClarification, RouteDecision, Unknown, Workflow
from navigator_kernel.values.work import is_unfinished, with_progress
from navigator_kernel.values.workflow import PLAN, WorkflowView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.language.answers import Outcome
    from navigator_kernel.ports import Clock
    from navigator_kernel.values.plan import DispatchPlan

FAILURES = 2  # SAF-5
MOST_FILES = 100  # files of a session that later turns can read
SUBJECT_LIMIT = 600  # characters of a subject in the list of waiting approvals
NOTHING_WANTED = ("unwanted", "no_skill")  # reasons for which no skill is suggested
DIRECT = "direct"  # the target of an answer without a skill


class TurnSummary(Struct, frozen=True, kw_only=True):
    """The data for a reply. `asked` is the message that started the work, not a later yes; `elapsed` the turn's time so
    far in seconds; `waits_for` the subject for which `workflow` needs a yes, `question` the text of that question;
    `agreed` the subjects of these orders whose yes is not used up; `stated` the parameters whose values were read from
    the words of a message, with which the next one can continue. `outcome` and `answer` say what the message meant,
    `withdrawn` what it refused, to ask for something else; `own` is the kernel's own answer to it, `offer` what that
    answer offers to do.
    """

    run: str
    request: PreprocessingResult
    asked: str
    session: Session
    notice: Notice | None
    elapsed: float
    rounds: int = 0
    workflow: WorkflowView | None = None
    waits_for: str = ""
    question: str = ""
    agreed: tuple[str, ...] = ()
    stated: frozenset[str] = frozenset()
    outcome: Outcome = "other"
    answer: str = ""
    withdrawn: str = ""
    own: str = ""
    offer: PendingApproval | None = None


def compose(
    decision: RouteDecision, plan: DispatchPlan, reports: Sequence[Report], turn: TurnSummary, clock: Clock
) -> Reply:
    """Composes the reply. If no agent ran, the kernel's own report says why."""
    report = reports[-1] if reports else own_report(decision, turn, clock)
    session = _following(decision, plan, reports, report, turn, clock.now())
    user = Said(role="user", text=turn.asked, run=turn.run, ts=clock.now())
    answer = (report.raw if report.by_model else None) or report.summary
    # Whether the turn ended in a question, a new one or one that is asked again
    before, asks = turn.session, isinstance(decision.result, Direct) and decision.result.topic in {"open", "edit"}
    slots = ((session.approval, before.approval), (session.question, before.question))
    asks = asks or any(slot is not None and slot is not earlier for slot, earlier in slots)
    return Reply(
        run=turn.run,
        decision=decision,
        report=report,
        reports=tuple(reports) or (report,),
        sections=Sections() if _is_answer(reports) else _sections(decision, plan, reports, session, turn),
        session=session,
        language=turn.request.language,
        said=() if asks else (user, replace(user, role="assistant", text=answer)),
        notice=turn.notice,
        workflow=turn.workflow,
        question=turn.question,
        open=_still_open(turn, session, report),
        answer={"outcome": turn.outcome, **({"value": turn.answer} if turn.answer else {})},
    )


def _still_open(turn: TurnSummary, session: Session, report: Report) -> str:
    """What the person can still answer, though this turn was about something else; empty if there is nothing."""
    language, before = turn.request.language, turn.session
    if turn.withdrawn:
        return say("open.withdrawn", language, what=_first_line(turn.withdrawn))
    if before.approval is not None and session.approval is not before.approval:
        return say("open.withdrawn", language, what=_head(before.approval))
    asks = (
        session.approval is before.approval
        and session.approval is not None
        and not report.summary.endswith(session.approval.question)
    )
    if asks and session.approval is not None:
        return say("open.approval", language, what=_head(session.approval))
    question = session.question
    if before.question is not None and question is not before.question:
        return say("open.withdrawn", language, what=_first_line(before.question.question))
    if question is not None and question.aside:
        return say("open.question", language, what=_first_line(question.question))
    return ""


def _head(approval: PendingApproval) -> str:
    """The beginning of what was asked, on one line."""
    return _first_line(approval.question or approval.subject)


def _first_line(text: str) -> str:
    return shorten(escape_controls(text.partition("\n")[0]), SUBJECT_LIMIT)


def _is_answer(reports: Sequence[Report]) -> bool:
    """Whether the turn only answered a question (X-24)."""
    return all(report.target == DIRECT for report in reports)


def own_report(decision: RouteDecision, turn: TurnSummary, clock: Clock) -> Report:
    """The kernel's own answer: a question, an unknown name, its abilities, or the lack of a model (X-33)."""
    language = turn.request.language
    match decision.result:
        case NeedClarification() as asked:
            data: dict[str, Any] = {"required": list(asked.missing), "optional": list(asked.optional)}
            data |= {"options": list(asked.options)} if asked.options else {}
            return _own("pending", asked.question, {**data, "reason": "clarify"}, turn, clock)
        case Unknown() as unknown:
            return _unknown(unknown, turn, clock)
        case Workflow() if turn.workflow is not None:
            return _planned(turn.workflow, turn, clock)
        case Workflow(name=name):
            return _unknown(Unknown(what="workflow", name=name), turn, clock)
        case Direct(topic="capabilities"):
            return _abilities(turn, clock)
        case Direct(topic="declined"):
            return _own("success", say("declined", language), {}, turn, clock)
        case Direct(topic="workflows" | "stored"):
            names = between([f"#{name}" for name in decision.candidates], language)
            text = say(f"own.{decision.result.topic}" if names else "own.no_workflows", language, names=names)
            return _own("success", text, {}, turn, clock)
        case Direct(topic="released"):
            return _own("success", say("ask.release", language), {}, turn, clock)
        case Direct(topic="open" | "edit"):
            return _asked_again(turn, clock)
        case Direct(topic="undo") if turn.offer is not None:
            return _own(
                "pending", turn.own, {"reason": "consent", "required": ["consent"], "optional": []}, turn, clock
            )
        case Direct(topic="last") if turn.session.sticky is not None and not turn.session.retry:
            return _own("success", turn.own, {"hint": say("own.last_hint", language)}, turn, clock)
        case Direct(topic="undo" | "undone" | "thanks" | "complaint" | "nothing" | "last"):
            return _own("success", turn.own, {}, turn, clock)
        case _ if greets(turn.request.need):
            return _abilities(turn, clock)
        case _ if turn.outcome in {"no", "none"}:  # no skill for the message, and no model that could answer it
            return _own("success", say("declined", language), {}, turn, clock)
        case _:
            near = () if decision.reason in NOTHING_WANTED else decision.candidates
            data = {"required": ["model"], "optional": [], "reason": "no_model", "nearest": list(near)}
            text = say("direct.near", language, skills=", ".join(near)) if near else say("direct.no_model", language)
            return _own("pending", text, data, turn, clock)


def _abilities(turn: TurnSummary, clock: Clock) -> Report:
    language = turn.request.language
    text = say("capabilities", language)
    data = {"capabilities": text.split("\n")}
    return _own("success", say("capabilities.summary", language), data, turn, clock, raw=text)


def _asked_again(turn: TurnSummary, clock: Clock) -> Report:
    """The question that is open, asked once more: nothing was done."""
    question, approval = turn.session.question, turn.session.approval
    if question is not None and not question.aside:
        data: dict[str, Any] = {"required": list(question.missing), "optional": [], "reason": "clarify"}
        data |= {"options": list(question.options)} if question.options else {}
        return _own("pending", f"{turn.own}\n{question.question}".lstrip(), data, turn, clock)
    plan = approval is not None and bool(approval.steps)
    data = {"reason": "plan" if plan else "consent", "required": ["approval" if plan else "consent"], "optional": []}
    text = approval.question if approval else ""
    text = say("workflow.ask", turn.request.language, count=len(approval.steps)) if approval and plan else text
    return _own("pending", f"{turn.own}\n{text}" if turn.own else text, data, turn, clock)


def _planned(view: WorkflowView, turn: TurnSummary, clock: Clock) -> Report:
    """The report that shows the plan and asks for approval (WFL-5, WFL-10)."""
    language = turn.request.language
    steps = [f"{step.text} → {step.skill} → {step.agent}_agent" for step in view.plan.steps]
    data: dict[str, Any] = {"reason": "plan", "required": ["approval"], "optional": [], "token": view.token}
    data |= {"file": view.plan.file, "steps": steps, "scope": say("workflow.scope", language)}
    data |= {"left": list(view.left)} if view.left else {}
    text = say("workflow.ask", language, count=len(steps))
    if view.idle:
        data, skills = {**data, "idle": list(view.idle)}, between(view.idle, language)
        text = f"{say('workflow.no_model', language, skills=skills)} {text}"
    return _own("pending", text, data, turn, clock)


def _unknown(unknown: Unknown, turn: TurnSummary, clock: Clock) -> Report:
    language = turn.request.language
    hint = in_language(unknown.hint, language)
    if unknown.what == "file":
        text = in_language(unknown.name, language)
    else:
        text = say(f"unknown.{unknown.what}", language, name=repr(unknown.name))
    if unknown.suggestions:
        text = say("unknown.suggest", language, text=text, names=between(unknown.suggestions, language))
    if unknown.what == "disabled":
        text = f"{text}{COLON[language]}{hint}"
    skill = unknown.what in {"skill", "disabled"}
    kind: type[KernelError] = SkillNotFound if skill else Refused if unknown.refused else NotFound
    data: dict[str, Any] = {"type": kind.__name__, "code": "refused" if unknown.refused else "not_found"}
    data |= {"exit_code": kind.exit_code, "msg": text, "suggestions": list(unknown.suggestions)}
    data |= {"hint": hint} if hint else {}
    return _own("error", text, data, turn, clock)


def _own(
    state: State, summary: str, data: dict[str, Any], turn: TurnSummary, clock: Clock, raw: str | None = None
) -> Report:
    meta = Meta(agent="kernel", time=round(turn.elapsed, 3), ts=clock.now())
    return Report(state=state, summary=summary, meta=meta, data=data, raw=raw)


def _following(
    decision: RouteDecision, plan: DispatchPlan, reports: Sequence[Report], report: Report, turn: TurnSummary, now: str
) -> Session:
    before = turn.session
    session = replace(before, turn=before.turn + 1, notice_shown=before.notice_shown or turn.notice is not None)
    # A waiting packet has done nothing yet, unless a model had started on it
    is_private = any(report.private and (report.state != "pending" or report.progress) for report in reports)
    session = replace(session, private=before.private or is_private)
    # The files that models wrote to their workspaces, newest first, without those of skills with a command
    files = [str(file["path"]) for report in reports if report.by_model for file in report.data.get("written", ())]
    session = replace(session, written=tuple(dict.fromkeys((*files, *before.written)))[:MOST_FILES])
    approval = _approval(plan, reports, report, turn, now) if turn.workflow is None else _workflow(report, turn, now)
    if approval is not None:
        approval = replace(approval, question=turn.question or report.summary)
    question = _question(decision, report, turn, now) or before.question
    session = replace(session, approval=approval or turn.offer or before.approval, question=question)
    unknown = decision.result if isinstance(decision.result, Unknown) else None
    session = replace(session, absent=_absent(unknown, turn.request) if unknown is not None else None)
    session = replace(session, talks=bool(reports) and _is_answer(reports))
    if isinstance(decision.result, Direct) and decision.result.topic == "released":
        return replace(session, sticky=None, failures=0)
    if not reports:
        return replace(session, failures=0) if decision.reason == "failed_twice" else session
    failed = report.state in {"error", "timeout"} or (report.state == "partial" and bool(report.progress))
    sticky = session.sticky
    if not failed and session.approval is None and plan.steps:
        sticky = _sticky(_packet_of(plan, reports), report, turn, now) or sticky
    failures = session.failures + (not report.unanswered) if failed else 0  # SAF-5: an outage is not the order's fault
    retry = before.retry  # a question about what stopped does not drop it; anything else did, before this turn
    if failed:
        retry = _undone(plan, reports) if failures < FAILURES and turn.workflow is None else ()
    last = session.failed if failed and report.unanswered else mark(turn.asked) if failed else ""
    return replace(session, sticky=sticky, failures=failures, failed=last, retry=retry)


def _absent(unknown: Unknown, request: PreprocessingResult) -> AbsentFile | None:
    """What the next message can put right: the only file that the message names and that does not exist."""
    if unknown.what != "file" or unknown.refused:
        return None
    names = [file.written for file in (*request.files, *request.targets) if file.problem]
    if len(names) != 1 or request.original.count(names[0]) != 1:
        return None
    near = unknown.suggestions[0] if len(unknown.suggestions) == 1 else ""
    return AbsentFile(message=request.original, name=names[0], near=near)


def _undone(plan: DispatchPlan, reports: Sequence[Report]) -> tuple[Packet, ...]:
    """The packet that failed, with its report, and the packets after it (SAF-7)."""
    failed = _packet_of(plan, reports)
    optional = {**failed.params.optional, "error": reports[-1].summary}
    again = replace(failed, params=replace(failed.params, optional=optional))
    return (with_progress(again, reports[-1]), *(step.packets[0] for step in plan.steps[len(reports) :]))


def _approval(
    plan: DispatchPlan, reports: Sequence[Report], report: Report, turn: TurnSummary, now: str
) -> PendingApproval | None:
    """The approval that is needed; after it, packets that stopped for lack of consent continue where they stopped, with
    the consents that are not used up."""
    if report.state != "pending" or not report.subject:
        return None
    rest = (step.packets[0] for step in plan.steps[len(reports) :])
    packets = (with_progress(_packet_of(plan, reports), report), *rest)
    approval = PendingApproval(packets=packets, subject=report.subject, asked_at=now, agreed=turn.agreed)
    return replace(approval, also=report.also, wider=report.wider)


def _workflow(report: Report, turn: TurnSummary, now: str) -> PendingApproval | None:
    """The approval that a workflow needs; it continues from its journal, so no packets are stored here."""
    if turn.workflow is None or not turn.waits_for:
        return None
    view = turn.workflow
    approval = PendingApproval(packets=(), subject=turn.waits_for, asked_at=now, workflow=view.token, also=report.also)
    steps = tuple(step.skill for step in view.plan.steps) if turn.waits_for == PLAN else ()
    return replace(approval, agreed=turn.agreed, steps=steps)


def _question(decision: RouteDecision, report: Report, turn: TurnSummary, now: str) -> PendingQuestion | None:
    if report.state == "pending" and report.data.get("reason") == "input":
        before = turn.request.answers if turn.request.target.startswith(ASKED_BY_SERVER) else ()
        return PendingQuestion(
            original=turn.request.original,
            question=report.summary,
            target=f"{ASKED_BY_SERVER}{report.target}",
            missing=tuple(map(str, report.data.get("required", ()))),
            rounds=1,  # the server decides how many questions it asks
            asked_at=now,
            answers=before,
        )
    question = decision.result
    # What names nothing else than the last run did waits for no answer: the next message continues that run, too
    if not isinstance(question, NeedClarification) or (decision.reason == "follow_up" and not question.missing):
        return None
    original = turn.request.original
    return PendingQuestion(
        original=original,
        question=question.question,
        target=question.target or ((decision.entity or "") if question.missing else ""),
        missing=question.missing,
        rounds=turn.rounds + 1,
        asked_at=now,
        answers=turn.request.answers,
        options=question.options if decision.tier == "retrieval" else (),
        rest=question.rest,
    )


def _sticky(ran: Packet, report: Report, turn: TurnSummary, now: str) -> Sticky | None:
    """The run that the next message may be about: of a skill or an MCP server, by name, which follow-ups go to (STK-1,
    STK-3), or of the worker. None for an answer without a skill."""
    targets = {
        "skills": ran.task_spec.target.partition(":")[2],
        "mcp": str(ran.params.value("server", "")),
        "worker": ran.task_spec.target,
    }
    if ran.agent not in targets:
        return None
    given = ran.params.required if ran.agent == "skills" else {}
    # The next message can continue with a path and what limits the work; a text may be a secret
    texts = {name: str(value) for name, value in given.items()}
    values = {n: t for n, t in texts.items() if n in turn.stated or (t.startswith("/") and is_there(Path(t)))}
    text = turn.asked if turn.workflow is None else turn.workflow.again
    sticky = Sticky(agent=ran.agent, target=targets[ran.agent], text=text, run=turn.run, at=now, values=values)
    asks = report.by_model and (report.raw or "").rstrip().endswith(("?", "？"))
    return replace(sticky, by_model=report.by_model, asks=asks)


def _packet_of(plan: DispatchPlan, reports: Sequence[Report]) -> Packet:
    """The packet of the last report: the first one of its step, or the candidate that replaced it."""
    packets = plan.steps[min(len(reports), len(plan.steps)) - 1].packets  # steps done earlier have no packets
    return next((packet for packet in packets if packet.task_spec.target == reports[-1].target), packets[0])


def _sections(
    decision: RouteDecision, plan: DispatchPlan, reports: Sequence[Report], session: Session, turn: TurnSummary
) -> Sections:
    language = turn.request.language
    trace = [
        f"{decision.kind}: {decision.entity or decision.agent or '-'}",
        say("trace.tier", language, tier=decision.tier, reason=because(decision, language)),
    ]
    if decision.candidates:
        trace.append(escape_controls(", ".join(decision.candidates)))
    actions = []
    for packet in (step.packets[0] for step in plan.steps[: len(reports)]):  # in the form of PKT-1 and PKT-7
        prompt = packet.params.value("prompt") or f"{packet.task_spec.operation} {packet.task_spec.target}"
        actions.append(f'Task(subagent_type="{packet.agent}", prompt="{prompt}")')
    effects = [effect for report in reports for effect in report.effects]
    lines = [
        say("state.effect", language, what=escape_controls(", ".join(effects)))
        if effects
        else say("state.unchanged", language)
    ]
    if session.approval is not None:
        lines.append(
            say("state.waiting", language, what=cut_text(escape_controls(session.approval.subject), SUBJECT_LIMIT))
        )
        lines += [say("state.lasting", language)] if is_lasting(session.approval.subject) else []
    if session.sticky is not None and session.sticky.agent != "worker":
        lines.append(
            say("state.sticky", language, agent=session.sticky.agent, target=escape_controls(session.sticky.target))
        )
    if session.retry and not (reports and reports[-1].progress):  # the hint of unfinished work says how it goes on
        lines.append(say("hint.go_on" if is_unfinished(session) else "state.retry", language))
    if session.failures >= FAILURES:
        lines.append(say("ask.failed_twice", language))
    return Sections(logic_trace=tuple(trace), action_vector=tuple(actions), state_update=tuple(lines))
