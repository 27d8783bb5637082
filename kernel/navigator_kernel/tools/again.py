"""Asks before repeating a call that was under way when a process was killed: it may have acted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls, shown_line
from navigator_kernel.values.standing import AGAIN, Need

if TYPE_CHECKING:
    from navigator_kernel.values.chat import ToolCall
    from navigator_kernel.values.work import AgentTask

LONGEST = 100_000  # characters of a question to the person, which is whole or not asked


def needs_again(work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> tuple[Need, ...]:
    """The consent to repeat exactly this call, if it was under way when a process was killed."""
    if not work.begun:
        return ()
    body = json.dumps([call.id, call.name, work.skill, work.digest, dict(arguments)], sort_keys=True, default=str)
    subject = f"{AGAIN}{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"
    tool, shown = escape_controls(call.name), shown_arguments(arguments)
    return (Need(subject, say("ask.again", work.language, tool=tool, arguments=shown)),)


def shown_arguments(arguments: Mapping[str, Any]) -> str:
    """The arguments as the person is shown them, whole; UsageProblem if they are too long for that."""
    shown = shown_line(json.dumps(dict(arguments), ensure_ascii=False, default=str))
    if len(shown) > LONGEST:
        hint = "make several calls with shorter arguments"
        raise UsageProblem("the arguments are too long to show to the person", hint=hint)
    return shown
