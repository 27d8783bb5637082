"""Manifests read from text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.values.resource import SkillDef


def read(text: str | bytes, name: str = "x", **given_: Any) -> SkillDef:
    data = text if isinstance(text, bytes) else text.encode()
    folder = Path("/skills") / name
    return read_manifest(data, path=folder / "SKILL.md", folder=folder, **given_)


def meta(lines: str, body: str = "Do it.") -> SkillDef:
    return read(f"---\nname: x\ndescription: d\n{lines}\n---\n{body}\n")


def codes(skill: SkillDef) -> list[str]:
    return [note.code for note in skill.diagnostics]
