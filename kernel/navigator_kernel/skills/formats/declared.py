"""The data that a skill's manifest declares: its description, licence, command, tools and permissions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import KernelError
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef


def declared(manifest: SkillDef | KernelError) -> dict[str, Any]:
    """The data of a manifest, or why it cannot be used."""
    if isinstance(manifest, KernelError):
        return {"description": "", "kind": "", "license": "", "tools": [], "problems": [_clean(manifest.message)]}
    return {
        "name": _clean(manifest.name),
        "description": _clean(manifest.description),
        "kind": manifest.kind,
        "license": _clean(manifest.license),
        "command": _clean(manifest.command),
        "tools": [_clean(tool) for tool in (*manifest.allowed_tools, *(manifest.tools or ()))],
        "permissions": permissions(manifest),
        "problems": [_clean(note.message) for note in manifest.diagnostics],
    }


def permissions(manifest: SkillDef) -> dict[str, Any]:
    """`{effects, reads, network, dynamic}`: what the skill declares that it changes and reads, whether it reaches the
    network, and whether its text contains commands to run."""
    return {
        "effects": [_clean(one) for one in manifest.effects],
        "reads": [_clean(one) for one in manifest.reads],
        "network": manifest.network,
        "dynamic": manifest.dynamic,
    }


def _clean(text: str) -> str:
    return clean(text, lines=False)
