"""Decides what a message means to a waiting session: a yes, a no, an answer, or something new (X-11)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.text import clean, fold, lazy_compile
from navigator_kernel.values.job import is_lasting
from navigator_kernel.values.request import (
    ASKED_BY_SERVER,
    INTERRUPTED,
    Message,
    PendingApproval,
    PendingQuestion,
    Session,
    is_retry,
)
from navigator_kernel.values.work import with_refusal

Lasting = Literal["once", "session", "always"]

ROUNDS = 2
FAILURES = 2  # SAF-5
EXPIRES = timedelta(days=1)
REASON = 1_000  # characters of a person's reason against a call
SAID = 120  # characters over which an answer is not a mere choice

_YES = lazy_compile(
    r"^\s*(?:y|yes(?:,? please)?|ok|okay|go on|go ahead|do it|sure|是|是的|好|好的|行|可以|同意|确认|继续)\s*[。.!！]*\s*$",
    re.IGNORECASE,
)
_SESSION = lazy_compile(
    r"^\s*(?:(?:yes|y|ok(?:ay)?)\s*,?\s*)?(?:for|in|during) (?:this|the(?: whole)?) (?:session|conversation)\s*[.!]*\s*$"
    r"|^\s*(?:(?:是的?|好的?|可以|同意)\s*[，,]?\s*)?(?:在)?(?:本次|这次|这个|整个)(?:会话|对话)(?:里|中|内)?(?:都?(?:可以|同意|允许|行))?\s*[。！!]*\s*$",
    re.IGNORECASE,
)
_ALWAYS = lazy_compile(
    r"^\s*(?:(?:yes|y|ok(?:ay)?)\s*,?\s*)?(?:always|from now on)\s*[.!]*\s*$"
    r"|^\s*(?:(?:是的?|好的?|可以|同意)\s*[，,]?\s*)?(?:总是|一直|以后都?)(?:可以|同意|允许|行)?\s*[。！!]*\s*$",
    re.IGNORECASE,
)
_NO = lazy_compile(r"^\s*(?:n|no|cancel|don't|否|不|不用|不要|取消|不同意)\s*[。.!！]*\s*$", re.IGNORECASE)
_CANCEL = lazy_compile(r"^\s*(?:cancel|取消)\s*[。.!！]*\s*$", re.IGNORECASE)
_WHY = lazy_compile(r"^\s*e(?:\s*[:：,，]|\s|$)\s*(?P<why>.*)$", re.IGNORECASE | re.DOTALL)
_ALL = lazy_compile(r"^\s*a\s*[.!]*\s*$", re.IGNORECASE)
_EXPLICIT = lazy_compile(
    r"^\s*(?:(?:/|@@|#)[^\W_][\w-]*(?=\s|$)|!(?!\[)\s*\S)"
    r"|^\s*(?:停止|切换任务|我来处理|stop|switch task|i(?:'ll| will) handle (?:it|this))\s*[。.!！]*\s*$",
    re.IGNORECASE,
)

_PICK = lazy_compile(
    r"^\s*(?:(?:please|use|run|take|choose|the|with)\s+|(?:请|就|用|选择?|使用|要)\s*)*(?P<what>\S.*?)"
    r"(?:\s+(?:please|one|skill)|\s*(?:吧|技能))*\s*[。.!！]*\s*$",
    re.IGNORECASE,
)
_PLACES = (
    frozenset({"1", "first", "第一个", "第一"}),
    frozenset({"2", "second", "第二个", "第二"}),
    frozenset({"3", "third", "第三个", "第三"}),
)


def expiry_of(asked_at: str) -> str:
    """The time when a question asked at `asked_at` is withdrawn; both in ISO 8601 with a final Z."""
    end = datetime.fromisoformat(asked_at) + EXPIRES
    return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Resumed(Struct, frozen=True, kw_only=True):
    """`message` is what to work on, `approved` what may now continue and for how long (`lasting`), `declined` says that
    the person said no to `subject`, which may be of a `workflow`; with both, a model continues without the call that it
    asked for."""

    message: Message
    session: Session
    approved: PendingApproval | None = None
    lasting: Lasting = "once"
    declined: bool = False
    subject: str = ""
    workflow: str = ""
    rounds: int = 0


def resume(message: Message, session: Session, now: str = "") -> Resumed:
    """Interprets the message. The waiting slots are used up in any case: a message that is not an answer is a new one.

    A slot that was asked more than a day before `now` (ISO 8601) is no longer waiting.
    """
    session = _fresh(session, now)
    free = replace(session, approval=None, question=None, retry=())
    held = session.approval
    again = is_retry(message.text)
    if held is not None and (
        is_yes(message.text) or (again and held.subject.startswith("retry:")) or _is_same(message, held)
    ):
        return Resumed(message=message, session=free, approved=held)
    if held is not None and (lasting := _lasting(message, held)):
        wider = (*held.also, *((held.wider,) if held.wider and message.attended else ()))
        session = free if lasting == "always" else replace(free, grants=_with(free.grants, held.subject, *wider))
        return Resumed(message=message, session=session, approved=held, lasting=lasting)
    if again and session.retry and session.failures < FAILURES:  # SAF-7, bounded by SAF-5
        return Resumed(message=message, session=free, approved=PendingApproval(packets=session.retry, subject="retry"))
    if held is not None and (without := _without(message, held)) is not None:
        return Resumed(message=message, session=free, approved=without, declined=True, subject=held.subject)
    if held is not None and _NO.match(message.text):
        return Resumed(message=message, session=free, declined=True, subject=held.subject, workflow=held.workflow)
    asked = session.question
    if asked is None or asked.rounds > ROUNDS or _EXPLICIT.match(message.text):
        return Resumed(message=message, session=free)
    return _answered(message, asked, free)


def _answered(message: Message, asked: PendingQuestion, free: Session) -> Resumed:
    """The message that the question was about, with this answer added."""
    if asked.options and _NO.match(message.text):  # the message stays as it was, and no skill handles it
        plain = replace(message, text=asked.original, answers=asked.answers, plain=True)
        return Resumed(message=plain, session=free, rounds=asked.rounds)
    if asked.rest and is_yes(message.text):
        return Resumed(message=replace(message, text=asked.rest), session=free)
    only = asked.options[0] if len(asked.options) == 1 and is_yes(message.text) else ""
    chosen = only or _choice(message.text, asked.options)
    if chosen:  # only the skill was in question: the message stays as it was
        same = replace(message, text=asked.original, answers=asked.answers, target=chosen, chosen=True)
        return Resumed(message=same, session=free, rounds=asked.rounds)
    said = message.text.strip()
    answers = (*asked.answers, said)
    if asked.target.startswith(ASKED_BY_SERVER):  # the server gets the answer; the message stays as it was
        same = replace(message, text=asked.original, answers=answers, target=asked.target)
        return Resumed(message=same, session=free, rounds=asked.rounds)
    merged = replace(message, text=f"{asked.original.rstrip()} {said}", answers=answers, target=asked.target)
    return Resumed(message=merged, session=free, rounds=asked.rounds)


def is_interrupted(held: PendingApproval | None) -> bool:
    """Whether the approval comes from a killed process."""
    return held is not None and held.subject.startswith(INTERRUPTED)


def _is_same(message: Message, held: PendingApproval) -> bool:
    """Whether the message is the one that a killed process was working on."""
    return is_interrupted(held) and message.text.strip() == held.packets[0].task_spec.intent.strip()


def is_yes(text: str) -> bool:
    return _YES.match(text) is not None


def asks_for_model(held: PendingApproval) -> bool:
    """Whether a model's call is waiting, which a person can also decline with a reason."""
    return bool(held.packets) and not is_interrupted(held) and with_refusal(held.packets[0], "") is not None


def _without(message: Message, held: PendingApproval) -> PendingApproval | None:
    """The packets with a no to the waiting call, which the model is shown; None if the answer is not such a no, or if
    nobody types at a terminal."""
    text = message.text
    hit = _WHY.match(text)
    if not message.attended or not asks_for_model(held) or not (hit or _NO.match(text)) or _CANCEL.match(text):
        return None
    why = clean(hit["why"], lines=False).strip()[:REASON] if hit else ""
    first = with_refusal(held.packets[0], why)
    return replace(held, packets=(first, *held.packets[1:])) if first else None


def _lasting(message: Message, held: PendingApproval) -> Lasting | None:
    """How long a yes lasts, if the message says so; a command that a person typed needs a yes in each session."""
    if _SESSION.match(message.text):
        return "session"
    if message.attended and _ALL.match(message.text) and asks_for_model(held):
        return "session"
    shell = held.subject.startswith("shell:")
    return ("session" if shell else "always") if _ALWAYS.match(message.text) else None


def _with(grants: tuple[str, ...], *subjects: str) -> tuple[str, ...]:
    """Adds consents that can last; consent to a plan or a repetition is for that alone."""
    return tuple(dict.fromkeys((*grants, *filter(is_lasting, subjects))))


def _choice(text: str, options: Sequence[str]) -> str:
    """The option that the answer means: by name, by number, or by a unique part of its name."""
    if not options or len(text) > SAID:
        return ""
    hit = _PICK.match(text)
    said = {fold(text), fold(hit["what"])} if hit else {fold(text)}
    named = [option for option in options if fold(option) in said]
    placed = [option for places, option in zip(_PLACES, options, strict=False) if places & said]
    partly = [option for option in options if any(f"-{part}-" in f"-{fold(option)}-" for part in said)]
    return next((found[0] for found in (named, placed, partly) if len(found) == 1), "")


def _fresh(session: Session, now: str) -> Session:
    approval, question = session.approval, session.question
    if approval is not None and _expired(approval.asked_at, now):
        session = replace(session, approval=None)
    if question is not None and _expired(question.asked_at, now):
        session = replace(session, question=None)
    return session


def _expired(asked_at: str, now: str) -> bool:
    if not asked_at or not now:
        return False
    return datetime.fromisoformat(now) - datetime.fromisoformat(asked_at) > EXPIRES
