"""What an answer says beside the text that a model streamed: an output, a question with how to answer it, a reason."""

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
    """What follows the text that was streamed, if there `has_text`; empty for a model's answer that is whole.
    `may_approve` is of the token that sent the message."""
    report, waits = reply.report, reply.session.approval is not None
    if report.by_model and has_text:
        parts = [] if report.state == "success" else [report.summary]
    else:
        parts = [(reply.question if waits else "") or _whole(report, language), _steps(report)]
    if waits:
        parts.append(say("openai.answer" if may_approve else "openai.may_not", language))
    return clean(str(redact(GAP.join(filter(None, parts)))))


def failure_of(report: Report, redact: Redact) -> str:
    """Why a turn failed, and what can be done."""
    parts = report.summary, str(report.data.get("hint", ""))
    return clean(str(redact(" - ".join(filter(None, parts)))))


def _whole(report: Report, language: Language) -> str:
    """The output; where it is a JSON object, a sentence before it. A prompt that no model can work on is not one."""
    if "prompt" in report.data and not report.by_model and report.state == "success":
        return say("prompt.unworked", language, skill=str(report.data.get("skill", "")))
    raw = (report.raw or "").strip()
    if not raw or report.by_model or not _is_object(raw):
        return raw or report.summary
    return f"{report.summary}{GAP}```json\n{raw}\n```"


def _is_object(text: str) -> bool:
    try:
        return text.startswith("{") and isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _steps(report: Report) -> str:
    """Those of a plan that waits for a yes."""
    held = report.data.get("steps", ()) if report.data.get("reason") == "plan" else ()
    return "\n".join(f"{at}. {step}" for at, step in enumerate(held, 1))
