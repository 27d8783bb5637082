"""Builds the first messages for a model: its role, the history, the skill and the request, in that order (X-14)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.agent_loop.window import past
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, escape_controls, lazy_compile
from navigator_kernel.values.allowed import DELIVER, allowed_tools
from navigator_kernel.values.chat import ChatMessage

if TYPE_CHECKING:
    from navigator_kernel.values.work import AgentTask

_MARK = lazy_compile(r"<(/?)skill", re.IGNORECASE)
NAMED = 20  # files of earlier turns listed for a model
SHOWN = 12  # digits of the digest that marks the end of a skill's text


def opening(work: AgentTask) -> tuple[ChatMessage, ...]:
    """Identity and safety are the same bytes for every skill, so that a provider can cache them (JIT-3, X-40); text
    that changes from turn to turn comes after the conversation."""
    guide = suffix(work)
    return (
        ChatMessage(role="system", text=identity(work.language)),
        *past(work.history),
        *((ChatMessage(role="user", text=guide),) if guide else ()),
        ChatMessage(role="user", text=work.request),
    )


def suffix(work: AgentTask) -> str:
    """The skill's text between marks that it cannot contain itself, since they have its digest; then memories, then the
    time (RTE-24, RTE-25)."""
    blocks: list[str] = []
    if work.guide:
        mark = work.digest.removeprefix("sha256:")[:SHOWN]
        head = f'<skill name="{work.skill}" digest="{mark}">'
        title = say("prompt.guide", work.language)
        guide = _MARK.sub(r"< \1skill", work.guide)  # foreign text, which must not close its own block
        blocks.append(f"{title}\n\n---\n## Skill: {work.skill}\n{head}\n{guide}\n</skill {mark}>")
    if work.memories:
        blocks.append("\n".join([say("prompt.memory", work.language), *(f"- {one}" for one in work.memories)]))
    if work.likely and not work.guide:
        lines = (_MARK.sub(r"< \1skill", line) for line in work.likely)
        blocks.append("\n".join([say("prompt.skills", work.language), *(f"- {line}" for line in lines)]))
    if known := environment(work):
        blocks.append(known)
    return "\n\n".join(blocks)


def environment(work: AgentTask) -> str:
    """What the model is told about its folders and files; empty if there is nothing to tell."""
    known = [f"- {one}" for one in _environment(work)]
    return "\n".join([say("prompt.environment", work.language), *known]) if known else ""


def _environment(work: AgentTask) -> Iterator[str]:
    """The time, and the folders and files of the tools."""
    if work.now:
        yield say("prompt.time", work.language, now=work.now)
    if work.folder:
        yield say("prompt.folder", work.language, path=escape_controls(work.folder))
    if work.workspace:
        yield say("prompt.workspace", work.language, path=escape_controls(work.workspace))
        if DELIVER in allowed_tools(work.allowed).tools:
            yield say("prompt.deliver", work.language)
    if work.project:
        yield say("prompt.project", work.language, path=escape_controls(work.project))
    if work.named:
        yield say("prompt.named", work.language, paths=", ".join(map(escape_controls, work.named)))
    if work.earlier:
        yield say("prompt.earlier", work.language, paths=", ".join(map(escape_controls, work.earlier[:NAMED])))


@cache
def identity(language: Language) -> str:
    return (Path(__file__).parent / "prompts" / f"identity.{language}.md").read_text(encoding="utf-8")
