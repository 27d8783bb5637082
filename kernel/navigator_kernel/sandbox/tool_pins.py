"""Decides which MCP tools may be called: a tool is approved as it was shown, and blocked when it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from navigator_kernel.errors import Refused
from navigator_kernel.text import escape_controls, fold, shorten

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Policy
    from navigator_kernel.ports import Audit, Consents
    from navigator_kernel.values.mcp import OfferedTool, PinState

PREFIX = "mcp_tool:"
SHOWN = 400  # characters of a description that a question shows


class Standing(NamedTuple):
    """`why` says what is wrong with a tool that is neither new nor approved."""

    state: PinState
    why: str = ""


class ToolPins(Struct, frozen=True):
    """`scan` names, for each description, what it tries to do to its reader."""

    consents: Consents
    policy: Policy
    audit: Audit
    scan: Callable[[Sequence[str]], Sequence[Sequence[str]]]

    def standings(self, tools: Sequence[OfferedTool], only: str = "") -> Mapping[str, Standing]:
        """The standing by the tool's own name, for all tools of one server or for `only` one of them; of two tools with
        the same name neither can be called."""
        trusted = [subject for subject in self.consents.subjects() if subject.startswith(PREFIX)]
        held: dict[str, set[str]] = {}
        for subject in trusted:
            held.setdefault(subject.removeprefix(PREFIX).partition("@")[0], set()).add(subject)
        names = Counter(fold(tool.name) for tool in tools)
        twice = Standing("shadowing", "the server has two tools of this name")
        wanted = [tool for tool in tools if only in ("", tool.name)]
        found = {tool.name: twice if names[fold(tool.name)] > 1 else _standing(tool, held) for tool in wanted}
        new = [tool for tool in wanted if found[tool.name].state == "new"]
        for tool, seen in zip(new, self.scan([text_of(tool) for tool in new]) if new else (), strict=True):
            if seen:
                found[tool.name] = Standing("suspicious", seen[0])
        return found

    def require(self, run: str, name: str, tools: Sequence[OfferedTool]) -> None:
        """Raises Refused by policy or for an ambiguous name, ConsentNeeded if nobody agreed to the tool as it is now. A
        tool that changed, shadows another or is written suspiciously needs a consent of its own."""
        tool = next(one for one in tools if one.name == name)
        state, why = self.standings(tools, name)[name]
        for rule in self.policy.deny:
            if fnmatchcase(f"tool:{tool.full_name}", rule):
                self.audit.record("refused", run=run, subject=tool.subject, why=rule)
                raise Refused(f"{tool.full_name} may not be called", hint=f"policy: deny {rule}", reason="policy")
        if state == "shadowing" and sum(fold(one.name) == fold(name) for one in tools) > 1:
            raise Refused(f"{tool.full_name}: {why}", hint="it is not clear which of them would be called")
        if state == "approved":
            self.audit.record("authorised", run=run, subject=tool.subject, by="trust")
            return
        told = f" ({why})" if why else ""
        question = (
            f"call {tool.full_name}{told}: {escape_controls(shorten(tool.description, SHOWN)) or 'no description'}"
        )
        facts: dict[str, Any] = {"tool": tool.full_name, "standing": state}
        self.consents.require(run, tool.subject, question, by_name=state != "new", **facts)


def _standing(tool: OfferedTool, held: Mapping[str, Iterable[str]]) -> Standing:
    """The standing of a tool before its description is scanned."""
    mine = set(held.get(tool.full_name, ()))
    if tool.subject in mine:
        return Standing("approved")
    if mine:
        return Standing("changed", "it has changed since it was approved")
    own = fold(tool.full_name.partition("__")[2])
    for name in sorted(held):
        if fold(name.partition("__")[2]) == own:
            return Standing("shadowing", f"it has the name of {name}, which was approved")
    return Standing("new")


def text_of(tool: OfferedTool) -> str:
    """All text of the tool that a model would read."""
    return "\n".join((tool.name, tool.description, *_texts(tool.schema)))


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, held in value.items():
            yield str(name)
            yield from _texts(held)
    elif isinstance(value, list):
        for held in value:
            yield from _texts(held)
