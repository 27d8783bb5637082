"""Lines about the kernel's actions beside the answer; clients show them as a model's reasoning."""

from __future__ import annotations

import json

from navigator_kernel.events import (
    Body,
    Progress,
    SkillActivated,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
    UICommand,
)
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, shorten

ARGUMENTS, RESULT = 200, 300  # characters to show
_OWN = frozenset({"skills", "kernel"})  # agents whose work shows as skills and tools


def note_of(body: Body, language: Language) -> str:
    """The line for an event; empty if it has none."""
    match body:
        case SkillActivated(skill=skill):
            text = say("page.loading", language, skill=skill)
        case StepStarted(agent=agent) if agent not in _OWN:
            text = f"{agent}…"
        case ToolCallStarted(tool=tool, args=args) if not _is_own(tool):
            text = f"{tool} {shorten(json.dumps(dict(args), ensure_ascii=False), ARGUMENTS)}"
        case ToolCallCompleted(tool=tool, state=state, result=result) if not _is_own(tool):
            text = f"{tool}: {state} {shorten(result, RESULT)}"
        case Progress(text=said):
            text = said
        case UICommand(type="toast", payload=payload):
            text = str(payload.get("message", ""))
        case _:
            return ""
    return clean(text, lines=False).strip()


def _is_own(tool: str) -> bool:
    """Whether it is a call of the kernel's own; these have the name of an agent before a dot."""
    return "." in tool
