"""Applies a person's next message to what the session has open: a consent, a choice, a value, or something new.

What the words mean is said by `language/answers.py`, for every surface. What is open stays open until it is answered,
withdrawn, or a day old.
"""

from __future__ import annotations

import shlex
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.language.answers import OpenState, Outcome, Reading, Situation, only_file, read, wants_text
from navigator_kernel.language.parameters import names_value
from navigator_kernel.language.signs import is_path, named_files
from navigator_kernel.routing.skill_orders import LIMIT, order_of_named, skill_order
from navigator_kernel.text import clean, has_words, language_of
from navigator_kernel.values.job import is_lasting, is_permanent
from navigator_kernel.values.request import (
    ASKED_BY_SERVER,
    INTERRUPTED,
    AbsentFile,
    Message,
    PendingApproval,
    PendingQuestion,
    Session,
)
from navigator_kernel.values.rights import right_of
from navigator_kernel.values.work import with_refusal, with_words
from navigator_kernel.values.workflow import PLAN, REPEAT

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.route import Topic

Lasting = Literal["once", "session", "always"]
Note = Literal["", "later", "unclear", "no_skill"]  # why what is open is asked again

ROUNDS = 2
FAILURES = 2  # SAF-5
EXPIRES = timedelta(days=1)
RECENT = timedelta(hours=6)  # how long a run can be repeated, taken back or continued without its name
UNDO = "undo:"  # subject prefix of an offer to put back what a run changed
_AROUND = ",.;:!?，。；：！？、“”\"'()（）"  # punctuation around a path
_DROPS = ("cancel", "no", "none")


class Resumed(Struct, frozen=True, kw_only=True):
    """`message` is what to work on, `approved` what may now continue and for how long (`lasting`), `declined` says that
    the person said no to `subject`, which may be of a `workflow`; with both, a model continues without the call that it
    asked for. `withdrawn` is what was open until the person refused it and said what they want instead, which is the
    message now. `topic` is what the kernel answers itself, `note` why it asks again what is open, `outcome` what the
    message means; empty for a session in which nothing is open."""

    message: Message
    session: Session
    outcome: Outcome = "other"
    value: str = ""
    approved: PendingApproval | None = None
    lasting: Lasting = "once"
    declined: bool = False
    withdrawn: str = ""
    subject: str = ""
    workflow: str = ""
    rounds: int = 0
    topic: Topic = ""
    note: Note = ""


def expiry_of(asked_at: str) -> str:
    """The time when a question asked at `asked_at` is withdrawn; both in ISO 8601 with a final Z."""
    end = datetime.fromisoformat(asked_at) + EXPIRES
    return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_open(approval: PendingApproval, now: str) -> bool:
    """Whether the approval has not expired at `now` (ISO 8601)."""
    return not approval.asked_at or not _is_over(approval.asked_at, now, EXPIRES)


def is_interrupted(approval: PendingApproval | None) -> bool:
    """Whether the approval comes from a killed process."""
    return approval is not None and approval.subject.startswith(INTERRUPTED)


def asks_for_model(approval: PendingApproval) -> bool:
    """Whether a model's call is waiting, which a person can also decline with a reason."""
    return bool(approval.packets) and not is_interrupted(approval) and with_refusal(approval.packets[0], "") is not None


def resume(message: Message, session: Session, now: str = "", catalogue: Catalogue | None = None) -> Resumed:
    """Reads the message. What was asked more than a day before `now` (ISO 8601) is no longer open. Only with the
    `catalogue`, a message can name the skill that a question asks for."""
    message = replace(message, text=message.text.encode("utf-8", "replace").decode("utf-8"))
    question, approval, last = session.question, session.approval, session.sticky
    earlier = question.original if question is not None else last.text if last is not None else ""
    if earlier and not (message.language or has_words(message.text)):  # a number has no language of its own
        message = replace(message, language=language_of(earlier))
    approval = approval if approval is not None and is_open(approval, now) else None
    question = (
        None if question is not None and question.asked_at and _is_over(question.asked_at, now, EXPIRES) else question
    )
    session = replace(session, question=question, approval=approval)
    killed = approval.packets[0].task_spec.intent if approval is not None and is_interrupted(approval) else None
    if killed is not None and message.text.strip() == killed.strip():  # a killed process was working on it
        return _sent_again(Resumed(message=message, session=_answered(session), outcome="yes", approved=approval))
    if question is not None and not question.aside:
        state = _open_question(question, message.text, catalogue)
        return _on_question(message, session, question, _read(message.text, state, catalogue), state)
    if approval is not None:
        reading = _read(message.text, _open_approval(approval), catalogue)
        resumed = _sent_again(_on_approval(message, session, approval, reading))
    elif message.skill:
        return Resumed(
            message=replace(message, text=f"/{message.skill} {message.text}"), session=replace(session, retry=())
        )
    elif session.absent is not None and (name := _right_name(message.text, session.absent)):
        text = session.absent.message.replace(session.absent.name, name)
        resumed = Resumed(message=replace(message, text=text), session=replace(session, retry=()))
    else:
        reading = _read(message.text, _nothing_open(session, now), catalogue)
        if last is not None and not session.retry and names_value(message.text, last.values):
            reading = Reading(outcome="follow_up")
        resumed = _on_nothing(message, session, reading)
    if question is None:
        return resumed
    return _aside(message, session, question, resumed, _open_question(question, message.text, catalogue))


def _read(text: str, state: OpenState, catalogue: Catalogue | None) -> Reading:
    """What the text means; an order or a question about an installed skill, as `uninstall pdf`, answers nothing."""
    may_be_order = len(text) <= LIMIT and state.situation != "free" and not wants_text(state)
    if may_be_order and catalogue and (order_of_named(text, catalogue) or skill_order(text, catalogue)):
        return Reading(outcome="other")
    return read(text, state)


def _right_name(text: str, absent: AbsentFile) -> str:
    """The name that the text gives for the file that does not exist, or the near one if it agrees; else empty."""
    if name := only_file(text):
        return name
    near = OpenState(situation="choice_one", question=absent.message, options=(absent.near,))
    return absent.near if absent.near and read(text, near).outcome == "yes" else ""


def _sent_again(resumed: Resumed) -> Resumed:
    """A yes to a message that was cut off before anybody got an order is this message."""
    packets = resumed.approved.packets if resumed.approved is not None else ()
    if not packets or packets[0].agent:
        return resumed
    return replace(resumed, message=replace(resumed.message, text=packets[0].task_spec.intent), approved=None)


def _open_question(question: PendingQuestion, text: str, catalogue: Catalogue | None) -> OpenState:
    takes_one = bool(question.options) or len(question.missing) == 1
    by_server = question.target.startswith(ASKED_BY_SERVER)
    if not by_server and question.missing == ("skill",) and not question.options:
        named = catalogue.named(text) if catalogue is not None else ()
        parts, names = tuple(part for part, _ in named), tuple(name for _, name in named)
        return OpenState(situation="skill", question=question.question, options=parts, names=names)
    if by_server or not takes_one:
        return OpenState(situation="free", question=question.question)
    if question.options:
        situation: Situation = "choice_one" if len(question.options) == 1 else "choice_many"
        return OpenState(situation=situation, question=question.question, options=question.options)
    return OpenState(situation="missing", question=question.question)


def _open_approval(approval: PendingApproval) -> OpenState:
    if approval.subject == PLAN:
        return OpenState(situation="plan", question=approval.question, options=approval.steps)
    if is_interrupted(approval) or approval.subject == REPEAT or approval.subject.startswith("retry:"):
        return OpenState(situation="interrupted", question=approval.question)
    return OpenState(situation="approval", question=approval.question or approval.subject)


def _nothing_open(session: Session, now: str) -> OpenState:
    last = session.sticky
    if session.retry or session.failures:
        failed = session.retry[0].task_spec.intent if session.retry else ""
        return OpenState(situation="after_error", question=failed)
    if last is None or (last.at and _is_over(last.at, now, RECENT)):
        return OpenState(situation="idle", asked=session.talks)
    answers_question = last.asks and not session.talks
    return OpenState(situation="after_run", question=last.text, asked=answers_question, works=last.by_model)


def _on_question(
    message: Message, session: Session, question: PendingQuestion, reading: Reading, state: OpenState
) -> Resumed:
    free = _answered(session)
    base = Resumed(message=message, session=free, outcome=reading.outcome, value=reading.value)
    answer = message.text.strip()
    same = replace(message, text=question.original, answers=question.answers)
    by_server = question.target.startswith(ASKED_BY_SERVER)
    if reading.wish and not by_server:
        base = replace(base, message=replace(message, text=reading.wish), withdrawn=question.question)
        return replace(base, outcome="other", session=replace(free, sticky=None))
    match reading.outcome:
        case "question" | "help" if not by_server:
            note = _note(reading, names_skill=state.situation == "skill")
            if note != "no_skill":
                return replace(base, session=session, topic="open", note=note)
            if question.rounds == 1:  # said once; the next such text is a message of its own
                again = replace(question, rounds=question.rounds + 1)
                return replace(base, session=replace(session, question=again), topic="open", note=note)
            return replace(base, outcome="other", session=replace(session, question=replace(question, aside=True)))
        case "other":
            return replace(base, session=replace(session, question=replace(question, aside=True), retry=()))
        case "cancel" if not by_server:
            return replace(base, topic="declined", session=replace(free, sticky=None))
        case "no" | "none":  # the message stays as it was, and no skill handles it
            return replace(base, message=replace(same, way="plain"), rounds=question.rounds)
        case "yes" | "yes_session" | "always" if question.rest:
            return replace(base, message=replace(message, text=question.rest))
        case "yes" | "pick":  # only the skill was in question: the message stays as it was
            place = int(reading.value or 1) - 1
            if question.options:
                return replace(
                    base, message=replace(same, target=question.options[place], way="chosen"), rounds=question.rounds
                )
    if state.situation == "skill":
        reading = replace(reading, value=" ".join(state.names))
    answers = (*question.answers, reading.value or answer)
    if by_server:  # the server gets the answer; the message stays as it was
        return replace(base, message=replace(same, answers=answers, target=question.target), rounds=question.rounds)
    if question.rounds > ROUNDS:
        return replace(base, outcome="other")
    value = reading.value or answer
    if reading.value and question.original.lstrip().startswith(("/", "@@")) and set(value) & set("\\\"'"):
        value = shlex.quote(value)  # it is read as a word of the command
    text = f"{question.original.rstrip()} {value}"
    return replace(
        base, message=replace(message, text=text, answers=answers, target=question.target), rounds=question.rounds
    )


def _note(reading: Reading, *, names_skill: bool = False) -> Note:
    """What is said before what is open is asked again, after a text that answers nothing."""
    if not reading.loose or reading.outcome != "question":
        return ""
    return "later" if reading.asks else "no_skill" if names_skill else "unclear"


def _on_approval(message: Message, session: Session, approval: PendingApproval, reading: Reading) -> Resumed:
    free = _answered(session)
    base = Resumed(message=message, session=free, outcome=reading.outcome, subject=approval.subject)
    outcome = reading.outcome
    goes_to_model = outcome == "no_with_reason" and asks_for_model(approval)
    if not goes_to_model and (wish := reading.wish or _corrected(approval, reading)):
        base = replace(base, message=replace(message, text=wish), declined=True, workflow=approval.workflow)
        question = approval.question or approval.subject
        return replace(base, outcome="other", session=replace(free, sticky=None), withdrawn=question)
    if outcome == "undo" and approval.subject.startswith(UNDO):
        outcome = "yes"
    match outcome:
        case "yes":
            return replace(base, approved=approval, subject="")
        case "yes_session" | "always":
            subject = approval.subject
            for_now = subject.startswith("shell:") or (right_of(subject) is not None and not is_permanent(subject))
            is_forever = outcome == "always" and not for_now
            lasting: Lasting = "always" if is_forever else "session"
            wider = (*approval.also, *((approval.wider,) if approval.wider else ()))
            if lasting == "session":  # consent to a plan or a repetition is for that alone
                granted = (*free.grants, *filter(is_lasting, (approval.subject, *wider)))
                free = replace(free, grants=tuple(dict.fromkeys(granted)))
            return replace(base, session=free, approved=approval, lasting=lasting, subject="")
        case "no" | "no_with_reason" if (without := _without(message, approval, reading)) is not None:
            return replace(base, approved=without, declined=True)
        case "no" | "no_with_reason" | "stop" | "undo":
            return replace(base, session=replace(free, sticky=None), declined=True, workflow=approval.workflow)
        case "question" | "help" | "edit":
            return replace(
                base,
                session=session,
                subject="",
                topic="edit" if outcome == "edit" else "open",
                value=reading.reason,
                note=_note(reading),
            )
        case _:
            return replace(base, session=replace(session, retry=()), subject="")


def _on_nothing(message: Message, session: Session, reading: Reading) -> Resumed:
    free, last = replace(session, retry=()), session.sticky
    message = replace(message, text=reading.wish) if reading.wish else message
    base = Resumed(message=message, session=free, outcome=reading.outcome)
    match reading.outcome:
        case "retry" | "retry_with" if (further := _going_on(message, session, reading)) is not None:
            return replace(base, approved=further)
        case "retry" if session.retry and session.failures < FAILURES:  # SAF-7, bounded by SAF-5
            return replace(base, approved=PendingApproval(packets=session.retry, subject="retry"))
        case "retry" if session.failures:
            return replace(base, topic="failed_twice")
        case "retry_with" if session.retry and session.retry[0].agent == "skills" and session.failures < FAILURES:
            failed = session.retry[0]
            text = _with_fix(failed.task_spec.intent, message.text.strip())
            kind, _, name = failed.task_spec.target.partition(":")
            target = name if kind == "skill" else ""
            return replace(base, message=replace(message, text=text, answers=(message.text.strip(),), target=target))
        case "retry" if last is not None and last.text:
            chosen = last.agent == "skills" and not last.text.lstrip().startswith(("/", "@@", "#"))
            message = replace(message, text=last.text)
            return replace(base, message=replace(message, target=last.target, way="again") if chosen else message)
        case "follow_up" if last is not None and last.text.startswith("#") and len(named_files(message.text)) == 1:
            name, (file,) = last.text.split()[0], named_files(message.text)
            return replace(base, message=replace(message, text=f"{name} {file}"))  # the whole plan, not its last step
        case "follow_up" if last is not None and last.agent in {"skills", "mcp"}:
            return replace(base, message=replace(message, way="follow_up"))
        case "stop":
            return replace(base, session=replace(free, sticky=None, failures=0), topic="released")
        case "undo" | "thanks" | "complaint" | "nothing" if not session.talks or reading.outcome == "undo":
            return replace(base, session=session, topic=reading.outcome)
        case "question" if reading.recalls or (session.retry and not reading.asks and not reading.loose):
            return replace(base, session=session, message=replace(message, way="about"), topic="last")
        case "question" if session.retry or (last is not None and not session.talks):
            target = (
                session.retry[0].task_spec.target.partition(":")[2] if session.retry else last.target if last else ""
            )
            return replace(base, session=session, message=replace(message, way="about", target=target))
        case _:
            return replace(base, outcome="other")


def _going_on(message: Message, session: Session, reading: Reading) -> PendingApproval | None:
    """The packets whose first continues the work of a model that stopped, with the person's words; None without one."""
    if not session.retry:
        return None
    first = with_words(session.retry[0], message.text.strip(), only_again=reading.outcome == "retry")
    return PendingApproval(packets=(first, *session.retry[1:]), subject="retry") if first else None


def _with_fix(request: str, fix: str) -> str:
    """The request that failed, with the fix in it: a path in place of its only one, anything else behind it."""
    words = request.split()[request.startswith(("/", "@@")) :]  # without the name of a skill
    old = [word for word in words if is_path(word.strip(_AROUND))]
    new = [word for word in fix.split() if is_path(word.strip(_AROUND))]
    if len(old) != 1 or len(new) != 1:
        return f"{request.rstrip()} {fix}"
    before, after = old[0].strip(_AROUND), new[0].strip(_AROUND)
    mark = "@" if before.startswith("@") and not after.startswith("@") else ""
    return request.replace(before, f"{mark}{after}")


def _aside(
    message: Message, session: Session, question: PendingQuestion, resumed: Resumed, state: OpenState
) -> Resumed:
    """The message, where a question stands behind another matter: it is answered only by a place, a name, a value, or
    a yes to the other steps, and dropped by a refusal of nothing else."""
    if resumed.outcome not in {"other", "stop", "nothing", "thanks"}:
        return resumed
    reading = read(message.text, state)
    named = reading.outcome == "value" and state.situation in {"missing", "skill"} and not wants_text(state)
    agreed = reading.outcome == "yes" and bool(question.rest) and resumed.outcome in {"nothing", "thanks"}
    if reading.outcome == "pick" or named or agreed:  # any message could be a text, so none is taken for it
        front = replace(question, aside=False)
        return _on_question(message, replace(session, question=front), front, reading, state)
    if reading.outcome in _DROPS and resumed.outcome != "other":
        return replace(resumed, session=replace(resumed.session, question=None))
    return resumed


def _corrected(approval: PendingApproval, reading: Reading) -> str:
    """The request that waits, about another file that the refusal names in place of its only one; else empty."""
    if reading.outcome != "no_with_reason" or not approval.packets:
        return ""
    request = approval.packets[0].task_spec.intent
    corrected = _with_fix(request, reading.reason)
    return "" if corrected.startswith(request.rstrip()) else corrected


def _without(message: Message, approval: PendingApproval, reading: Reading) -> PendingApproval | None:
    """The packets with a no to the waiting call, which the model is shown. None if no model waits, or for a plain no
    that nobody typed at a terminal: that one ends the work."""
    plain = reading.outcome == "no"
    if (plain and not message.attended) or not asks_for_model(approval):
        return None
    first = with_refusal(approval.packets[0], clean(reading.reason, lines=False).strip())
    return replace(approval, packets=(first, *approval.packets[1:])) if first else None


def _answered(session: Session) -> Session:
    """The session without what the message answered: the question if one is in front, else the approval."""
    is_open = session.question is not None and not session.question.aside
    return replace(session, question=None, retry=()) if is_open else replace(session, approval=None, retry=())


def _is_over(since: str, now: str, limit: timedelta) -> bool:
    return bool(now) and datetime.fromisoformat(now) - datetime.fromisoformat(since) > limit
