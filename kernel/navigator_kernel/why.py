"""A run's events, told in lines that a person reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.text import shorten
from navigator_kernel.values.wording import because_of

if TYPE_CHECKING:
    from navigator_kernel.events import Event


def told(event: Event) -> list[str]:
    """What one event says, in a line or a few; nothing for those that only help others."""
    data = event.to_dict()["data"]
    if event.type == "SkillsShortlisted":
        return _shortlist(data)
    if event.type == "RouteDecided":
        held = data["decision"]
        why = because_of(held["reason"], "en", name=held["entity"] or "", confidence=f"{held['confidence']:.2f}")
        return [f"  decided    {held['kind']} {held['entity'] or ''} by {held['tier']}: {why}"]
    form = _FORMS.get(event.type)
    return [] if form is None else [_shortened(form.format(**data))]


_FORMS: Mapping[str, str] = {
    "RunStarted": "  message    {message}",
    "SkillsOffered": "  offered    {count} skills",
    "SkillChosen": "  chosen     {skill}",
    "SkillLoaded": "  loaded     {skill}",
    "SkillUsed": "  used       {skill}: {state}",
    "ToolCallCompleted": "  called     {tool}: {state}",
    "ApprovalRequested": "  asked      {detail}",
    "ClarificationAsked": "  asked      {question}",
    "RunCompleted": "  ended      {state}: {summary}",
    "RunError": "  ended      with an error: {error}",
    "RunCancelled": "  ended      cancelled: {reason}",
}


def _shortened(line: str, limit: int = 160) -> str:
    """One line, its indent kept."""
    return "  " + shorten(line, limit) if "\n" in line or len(line) > limit else line


def _shortlist(data: Mapping[str, Any]) -> list[str]:
    found = data["candidates"][:5]
    names = [f"             {c['name']}  confidence {c['confidence']:.2f}  {_parts(c['parts'])}" for c in found]
    return [f"  shortlist  {data['band']}", *names]


def _parts(parts: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in parts.items())
