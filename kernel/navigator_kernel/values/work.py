"""What a model is to work on in phase 2, and how far it has come (JIT-6)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from navigator_kernel.text import Language
from navigator_kernel.values.chat import ChatMessage, Finish, Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """`guide` is the text of the skill, `digest` that of its folder, `tools` are the names that it declares; `history`
    is what was said before, `memories` what is recalled, `model` an alias or `provider:model`, `now` ISO 8601. `step`
    numbers it within its run."""

    run: str
    step: int
    request: str
    language: Language
    now: str = ""
    skill: str = ""
    digest: str = ""
    guide: str = ""
    tools: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    history: tuple[ChatMessage, ...] = ()
    model: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """`messages` are what came after the opening: answers, calls and what tools said. `failures` counts those in a row
    (SAF-5)."""

    messages: tuple[ChatMessage, ...] = ()
    rounds: int = 0
    continuations: int = 0
    failures: int = 0
    spent: Spent = field(default_factory=Spent)
    model: str = ""
    finish: Finish = "stop"

    def to_dict(self) -> dict[str, Any]:
        """What a report says of it."""
        told: dict[str, Any] = {"model": self.model, "rounds": self.rounds, "continuations": self.continuations}
        return {**told, "usage": self.spent.to_dict()}

    @property
    def text(self) -> str:
        """All that the model said to the person."""
        return "".join(message.text for message in self.messages if message.role == "assistant")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
    """What a call came to: text for the model, and whether it failed."""

    text: str
    failed: bool = False
    facts: Mapping[str, Any] = field(default_factory=dict)
