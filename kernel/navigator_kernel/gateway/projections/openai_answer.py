"""Adds to a model's streamed text the rest of an answer: an output, a question and how to answer it, a reason."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean

if TYPE_CHECKING:
    from navigator_kernel.values.redact import Redact
    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.report import Report

GAP = "\n\n"


def rest_of(reply: Reply, language: Language, redact: Redact, *, has_text: bool, may_approve: bool) -> str:
    """The text to add to the streamed text; empty if a model's answer is complete. `has_text` says whether any text was
    streamed, `may_approve` whether the token that sent the message may approve."""
    report, waits = reply.report, reply.session.approval is not None
    if report.by_model and has_text:
        parts = [] if report.state == "success" else [report.summary]
    else:
        parts = [(reply.question if waits else "") or _whole(report), _steps(report)]
    if waits:
        parts.append(say("openai.answer" if may_approve else "openai.may_not", language))
    return clean(str(redact(GAP.join(filter(None, parts)))))


def failure_of(report: Report, redact: Redact) -> str:
    """The reason why a turn failed, with the hint."""
    parts = report.summary, str(report.data.get("hint", ""))
    return clean(str(redact(" - ".join(filter(None, parts)))))


def _whole(report: Report) -> str:
    """The output, after the summary if it is a JSON object, or what can be done where there is none."""
    raw = (report.raw or "").strip()
    if not raw:
        return "\n".join([report.summary, *(f"- {way}" for way in report.data.get("ways", ()))])
    if report.by_model or not _is_object(raw):
        return raw
    return f"{report.summary}{GAP}```json\n{raw}\n```"


def _is_object(text: str) -> bool:
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _steps(report: Report) -> str:
    """The numbered steps of a plan that waits for approval."""
    held = report.data.get("steps", ()) if report.data.get("reason") == "plan" else ()
    return "\n".join(f"{at}. {step}" for at, step in enumerate(held, 1))
