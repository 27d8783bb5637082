"""The text of a reply that an editor shows besides the events: results, failures with their hints, and files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.language.rendering import EMOJI, file_lines, result_lines
from navigator_kernel.language.wording import say
from navigator_kernel.text import clean, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.errors import KernelError
    from navigator_kernel.values.reply import Reply

_TICKS = lazy_compile(r"`+")
LONGEST = 100_000  # characters of a result


def rest_of(reply: Reply, *, streamed: bool) -> str:
    """Markdown paragraphs that follow the summary or, with `streamed`, the streamed text of a model; empty if nothing
    is left to show. Only a model's text counts as Markdown: a program's output is put between fences."""
    report, language, parts = reply.report, reply.language, list[str]()
    has_failed = report.state in {"error", "timeout"}
    if report.by_model:
        if not streamed and report.raw:
            parts.append(clean(report.raw))
        parts.extend(file_lines(report, language))
        if report.data.get("incomplete"):
            parts.append(say("model.incomplete", language))
        if report.state != "success":
            parts.append(f"{EMOJI[report.state]} {clean(report.summary)}")
    elif has_failed:
        message = clean(str(report.data.get("msg", "")))
        if message and message not in clean(report.summary):
            parts.append(fenced(message))
    elif lines := result_lines(report):
        parts.append("\n".join(lines) if report.state == "pending" else fenced("\n".join(lines)))
    hint = clean(str(report.data.get("hint", "")))
    if hint and (has_failed or report.by_model):
        parts.append(hint)
    view = reply.workflow
    if view is not None and view.left:
        parts.append(say("workflow.left", language, limit=len(view.plan.steps), steps="; ".join(view.left)))
    if view is not None and view.result:
        parts.append(say("workflow.result", language, path=view.result))
    return "".join(f"\n\n{part}" for part in parts)


def failure_text(error: KernelError) -> str:
    """An error that ended the turn, with its hint."""
    return "\n\n".join(filter(None, (f"{EMOJI['error']} {clean(error.message)}", clean(error.hint))))


def fenced(text: str, *, whole: bool = False) -> str:
    """`text` as a fenced block, which no fence inside it can end; cut to `LONGEST` unless it is wanted `whole`."""
    body = clean(text).strip("\n")
    body = body if whole or len(body) <= LONGEST else f"{body[:LONGEST]} …"
    marks = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(body)), 3)
    return f"{marks}\n{body}\n{marks}"
