"""The meaning of a message, and the decision about it (INT-2, RTE-7, X-8)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from navigator_kernel.values.chat import Spent, Tried

Mode = Literal["SKILL", "COMMAND", "AGENT", "PROMPT", "BACKEND"]
Complexity = Literal["simple", "medium", "complex"]
Tier = Literal["syntax", "exact", "retrieval", "model", "session", "none"]
Band = Literal["route", "ambiguous", "direct"]
Boldness = Literal["cautious", "balanced", "bold"]
Kind = Literal["skills", "direct", "clarify", "workflow", "command", "script", "mcp", "install"]
Operation = Literal[
    "info", "install", "list", "search", "uninstall", "enable", "disable", "update", "outdated", "verify"
]


Topic = Literal[
    "", "capabilities", "released", "declined", "open", "edit", "undo", "undone", "thanks", "complaint", "nothing",
    "failed_twice", "workflows", "stored", "last",
]  # fmt: skip


class Lifecycle(Struct, frozen=True, kw_only=True):
    """A skill command (LIF-7). `source` is a repository, `skills` the names, `query` the search words."""

    operation: Operation
    source: str = ""
    skills: tuple[str, ...] = ()
    query: str = ""


class Script(Struct, frozen=True, kw_only=True):
    """A script of `bin/`, by its name in `docs/commands.md`."""

    name: str
    args: tuple[str, ...] = ()


class Shell(Struct, frozen=True, kw_only=True):
    command: str


class Mcp(Struct, frozen=True, kw_only=True):
    """An MCP operation; an empty `server` or `uri` is missing information (PKT-9). `tool` is the prompt's name, too."""

    operation: Literal["list", "read", "tools", "call", "prompts", "prompt"]
    server: str = ""
    uri: str = ""
    tool: str = ""
    args: Mapping[str, Any] = field(default_factory=dict)


class Skills(Struct, frozen=True, kw_only=True):
    """One skill, or several to be run side by side with the rest as fallback candidates.

    `arguments` are the words for the skill; `direct_call` says that it was named by `/` or `@@`.
    """

    names: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    direct_call: bool = False


class Direct(Struct, frozen=True, kw_only=True):
    """No skill is needed; `topic` marks what the kernel answers itself."""

    topic: Topic = ""


class NeedClarification(Struct, frozen=True, kw_only=True):
    question: str
    missing: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    target: str = ""  # the skill that asks, if the decision's entity is another one
    rest: str = ""  # the part of the message with which a yes continues


class Workflow(Struct, frozen=True, kw_only=True):
    """A stored workflow that was called by `#name`, or steps that a message spells out (WFL-1)."""

    name: str


class Unknown(Struct, frozen=True, kw_only=True):
    """Something was named that does not exist (X-7, X-29): never guessed, never Direct. `refused` says that it exists
    but may not be used, `hint` what can be done. A `disabled` skill exists but is switched off."""

    what: Literal["skill", "disabled", "script", "workflow", "file"]
    name: str
    suggestions: tuple[str, ...] = ()
    hint: str = ""
    refused: bool = False


Action = Lifecycle | Script | Shell | Mcp | Skills | Direct | NeedClarification | Workflow | Unknown
RouteResult = Action  # the name in the documents


class Candidate(Struct, frozen=True, kw_only=True):
    """A resource that the message may mean. `confidence` is a probability, `parts` are the parts of the score."""

    name: str
    score: float
    confidence: float = 0.0
    parts: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        base = {"name": self.name, "score": round(self.score, 4), "confidence": round(self.confidence, 4)}
        return {**base, "parts": {key: round(value, 4) for key, value in self.parts.items()}}


class Retrieval(Struct, frozen=True, kw_only=True):
    """The result of tier 2, best first, and what follows: take the first (`route`), offer those in `offered`
    (`ambiguous`), where `more` is the number of others that are as near, or neither (`direct`). `wanted` is the
    probability that the message wants any skill; `lacks` names the MCP servers that a candidate needs and that are not
    set up."""

    candidates: tuple[Candidate, ...]
    band: Band
    reason: str
    offered: tuple[str, ...] = ()
    more: int = 0
    wanted: float = 1.0
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Judged(Struct, frozen=True, kw_only=True):
    """A model's judgement of a message (RTE-7): skills, a question, or neither, which means direct. `failure` is a word
    for why the model gave no usable answer, `model` its name; `used` are the models that had a cost, with their
    usage."""

    skills: tuple[str, ...] = ()
    question: str = ""
    failure: str = ""
    model: str = ""
    used: tuple[Tried, ...] = ()

    @property
    def spent(self) -> Spent:
        """The usage of all models in `used`."""
        return sum((one.spent for one in self.used), Spent())


class Intent(Struct, frozen=True, kw_only=True):
    """What a message means (INT-2, INT-6); `action` is set if syntax or an exact match decides."""

    mode: Mode = "BACKEND"
    task_type: str = "unknown"
    complexity: Complexity = "medium"
    confidence: float = 0.5
    entity: str | None = None
    candidates: tuple[str, ...] = ()
    reasoning: str | None = None
    tier: Tier = "none"
    action: Action | None = None
    retrieval: Retrieval | None = None
    judged: Judged | None = None

    def to_dict(self) -> dict[str, Any]:
        """The seven documented fields and the tier."""
        base: dict[str, Any] = {"mode": self.mode, "task_type": self.task_type, "complexity": self.complexity}
        base |= {"confidence": round(self.confidence, 4), "entity": self.entity, "candidates": list(self.candidates)}
        return {**base, "reasoning": self.reasoning, "tier": self.tier}


class RouteDecision(Struct, frozen=True, kw_only=True):
    """X-8: the one decision, of which the three enums of the documents are projections.

    `reason` is a code that `wording.because` puts into words; a plugin's router may give words of its own.
    """

    result: RouteResult
    entity: str | None = None
    candidates: tuple[str, ...] = ()
    confidence: float = 0.5
    tier: Tier = "none"
    reason: str = ""

    @property
    def options(self) -> tuple[str, ...]:
        """The names that a question lets the person choose from."""
        return self.result.options if isinstance(self.result, NeedClarification) else ()

    @property
    def kind(self) -> Kind:
        if isinstance(self.result, Lifecycle) and self.result.operation != "install":
            return "command"
        return _KINDS[type(self.result)]

    @property
    def agent(self) -> str | None:
        """The subagent of RTE-2; None if the kernel answers itself."""
        return {"skills": "skills", "workflow": "skills", "mcp": "mcp"}.get(self.kind) or (
            "worker" if self.kind in {"install", "script", "command"} else None
        )

    def phase_one(self) -> dict[str, Any]:
        """RTE-8: `{skills, direct, question?}`."""
        match self.result:
            case Skills(names=names):
                return {"skills": list(names), "direct": False}
            case NeedClarification(question=question):
                return {"skills": [], "direct": False, "question": question}
            case _:
                return {"skills": [], "direct": True}

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"kind": self.kind, "entity": self.entity, "candidates": list(self.candidates)}
        return {**base, "confidence": round(self.confidence, 4), "tier": self.tier, "reason": self.reason}


_KINDS: Mapping[type[Any], Kind] = {
    Lifecycle: "install",
    Script: "script",
    Shell: "command",
    Mcp: "mcp",
    Skills: "skills",
    Direct: "direct",
    NeedClarification: "clarify",
    Workflow: "workflow",
    Unknown: "clarify",
}
