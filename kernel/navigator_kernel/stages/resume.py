"""What a message is to a session that waits: a yes, a no, an answer, or something new (X-11)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from navigator_kernel.values.request import Message, PendingApproval, Session

ROUNDS = 2
FAILURES = 2  # SAF-5
EXPIRES = timedelta(days=1)

_YES = re.compile(
    r"^\s*(?:y|yes(?:,? please)?|ok|okay|go on|go ahead|do it|sure|是|是的|好|好的|行|可以|同意|确认|继续)\s*[。.!！]*\s*$",
    re.IGNORECASE,
)
_RETRY = re.compile(
    r"^\s*(?:please\s+)?(?:retry|try (?:it |that )?(?:again|once more)|again|once more)(?:,? please)?\s*[.!]*\s*$"
    r"|^\s*(?:请)?(?:再试(?:一次|一下|试)?|重试(?:一次|一下)?|再来一次|重来)\s*[。！!]*\s*$",
    re.IGNORECASE,
)
_NO = re.compile(r"^\s*(?:n|no|cancel|don't|否|不|不用|不要|取消|不同意)\s*[。.!！]*\s*$", re.IGNORECASE)
_EXPLICIT = re.compile(
    r"^\s*(?:(?:/|@@|#)[^\W_][\w-]*(?=\s|$)|!(?!\[)\s*\S)"
    r"|^\s*(?:停止|切换任务|我来处理|stop|switch task|i(?:'ll| will) handle (?:it|this))\s*[。.!！]*\s*$",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumed:
    """`message` is what to work on, `approved` what may now go on, `declined` that the person said no to `subject`, which
    may be of a `workflow`."""

    message: Message
    session: Session
    approved: PendingApproval | None = None
    declined: bool = False
    subject: str = ""
    workflow: str = ""
    rounds: int = 0


def resume(message: Message, session: Session, now: str = "") -> Resumed:
    """The waiting slots are used up either way: what is not an answer is a new message.

    A slot that was asked more than a day before `now` (ISO 8601) is no longer waiting.
    """
    session = _fresh(session, now)
    free = replace(session, approval=None, question=None, retry=())
    held = session.approval
    again = _RETRY.match(message.text) is not None
    if held is not None and (_YES.match(message.text) or (again and held.subject.startswith("retry:"))):
        return Resumed(message=message, session=free, approved=held)
    if again and session.retry and session.failures < FAILURES:  # SAF-7, bounded by SAF-5
        return Resumed(message=message, session=free, approved=PendingApproval(packets=session.retry, subject="retry"))
    if held is not None and _NO.match(message.text):
        return Resumed(message=message, session=free, declined=True, subject=held.subject, workflow=held.workflow)
    asked = session.question
    if asked is None or asked.rounds > ROUNDS or _EXPLICIT.match(message.text):
        return Resumed(message=message, session=free)
    said = message.text.strip()
    answers = (*asked.answers, said)
    merged = replace(message, text=f"{asked.original.rstrip()} {said}", answers=answers, target=asked.target)
    return Resumed(message=merged, session=free, rounds=asked.rounds)


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
