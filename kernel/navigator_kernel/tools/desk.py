"""The fence: a skill's model may call the tools that the skill declares and the person allows, no other (JIT-5)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from navigator_kernel.events import UICommand
from navigator_kernel.text import clean, shorten
from navigator_kernel.values.chat import ToolSpec
from navigator_kernel.values.wording import say
from navigator_kernel.values.work import Assignment, ToolAnswer

if TYPE_CHECKING:
    from navigator_kernel.model_ports import Tool, Tools
    from navigator_kernel.ports import Audit, Consents
    from navigator_kernel.settings import Policy
    from navigator_kernel.values.tool import Result

MOST = 16_000  # characters of a result that a model is given
SHOWN = 2_000  # characters of the arguments that a person is asked about
_FIELD = re.compile(r"\{(\w{1,40})\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """Implements `model_ports.Tools`. `always` are tools that every skill has; `tools` gives those that plugins bring,
    which is asked only for a skill that declares any."""

    tools: Callable[[], Mapping[str, Tool]]
    always: Tools
    consents: Consents
    audit: Audit
    policy: Policy

    def offered(self, work: Assignment) -> tuple[ToolSpec, ...]:
        """The same for the same skill and policy, in the order of its manifest (X-40)."""
        allowed = self._allowed(work)
        return (*self.always.offered(work), *(self.tools()[name].spec for name in allowed))

    async def call(self, work: Assignment, name: str, arguments: Mapping[str, Any]) -> ToolAnswer:
        """ConsentNeeded where the person has to agree first; whatever else happens is an answer."""
        if name in {spec.name for spec in self.always.offered(work)}:
            return await self.always.call(work, name, arguments)
        if name not in self._allowed(work):
            self.audit.record("refused", run=work.run, subject=f"tool:{name}", skill=work.skill, why="not declared")
            offered = ", ".join(spec.name for spec in self.offered(work))
            return ToolAnswer(text=say("tool.unknown", work.language, tool=name, offered=offered), failed=True)
        tool = self.tools()[name]
        subject = subject_of(name, arguments)
        if tool.confirm:
            self._ask(tool, subject, arguments, work)
        self.audit.record("started", run=work.run, actor="tool", subject=subject, skill=work.skill)
        result = await tool.run(arguments)
        self.audit.record("ended", run=work.run, subject=subject, how="error" if result.error else "done")
        return _answer(tool, result, work)

    def _ask(self, tool: Tool, subject: str, arguments: Mapping[str, Any], work: Assignment) -> None:
        """JIT-12: with the arguments, each time. A yes is to these arguments and to no others."""
        shown = shorten(json.dumps(dict(arguments), ensure_ascii=False, default=str), SHOWN)
        question = f"{filled(tool.confirm, arguments)} {tool.name} {shown}"
        self.consents.require(work.run, subject, clean(question), tool=tool.name, arguments=dict(arguments))

    def _allowed(self, work: Assignment) -> tuple[str, ...]:
        """What the manifest names and nothing denies; a name that no tool has is none."""
        if not work.tools:
            return ()
        known, denied = self.tools(), (*self.policy.deny, *self.policy.skills.get(work.skill, ()))
        return tuple(
            name
            for name in dict.fromkeys(work.tools)
            if name in known and not any(fnmatchcase(f"tool:{name}", one) for one in denied)
        )


def subject_of(name: str, arguments: Mapping[str, Any]) -> str:
    """A call of a tool with exactly these arguments."""
    body = json.dumps(dict(arguments), sort_keys=True, ensure_ascii=False, default=str)
    return f"tool:{name}#{hashlib.sha256(body.encode()).hexdigest()[:16]}"


def filled(text: str, values: Mapping[str, Any]) -> str:
    """`{name}` in `text` replaced once by what is called so; others stay."""
    return _FIELD.sub(lambda hit: str(values[hit[1]]) if hit[1] in values else hit.group(), text)


def _answer(tool: Tool, result: Result, work: Assignment) -> ToolAnswer:
    """TOL-4: one form for failures, and one for what has nothing to tell."""
    if result.error:
        return ToolAnswer(text=say("tool.failed", work.language, error=clean(result.error)), failed=True)
    text = result.value if isinstance(result.value, str) else json.dumps(result.value, ensure_ascii=False)
    done = say("tool.done", work.language)
    if not result.value and not isinstance(result.value, bool | int | float):
        text = done if result.value is None or result.value == "" else f"{done}: {text}"
    return ToolAnswer(text=shorten(clean(text), MOST), commands=tuple(_commands(tool, result.value, work)))


def _commands(tool: Tool, value: Any, work: Assignment) -> Iterator[UICommand]:
    """What a user interface is to do, by what the tool declares, and only because it succeeded (X-17)."""
    fields = value if isinstance(value, Mapping) else {}
    for effect in tool.effects:
        kind, _, what = effect.partition(":")
        told = filled(what, fields)
        match kind:
            case "toast":
                message = told or f"{tool.name}: {say('tool.done', work.language)}"
                yield UICommand(type="toast", payload={"message": message, "type": "success"})
            case "refresh" | "navigate" | "modal":
                yield UICommand(type=kind, payload={"target": told})
