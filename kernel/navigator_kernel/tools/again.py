"""Asks before repeating a call that was under way when a process was killed: it may have acted."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.language.wording import say
from navigator_kernel.text import cut_text, escape_controls
from navigator_kernel.values.standing import AGAIN

if TYPE_CHECKING:
    from navigator_kernel.ports import Consents
    from navigator_kernel.values.chat import ToolCall
    from navigator_kernel.values.work import AgentTask

SHOWN = 3_000  # characters of the arguments


def ask_again(consents: Consents, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> None:
    """ConsentNeeded unless the person agreed to repeat exactly this call."""
    body = json.dumps([call.id, call.name, work.skill, work.digest, dict(arguments)], sort_keys=True, default=str)
    subject = f"{AGAIN}{call.name}#{hashlib.sha256(body.encode()).hexdigest()}"
    shown = cut_text(escape_controls(json.dumps(dict(arguments), ensure_ascii=False, default=str)), SHOWN)
    question = say("ask.again", work.language, tool=escape_controls(call.name), arguments=shown)
    facts: dict[str, Any] = {"tool": call.name, "arguments": dict(arguments)}
    consents.require(work.run, subject, question, by_name=True, **facts)
