"""Reads the Node packages of a script from the nearest `package.json` of its skill."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import NotLoadable, Refused
from navigator_kernel.text import lazy_compile, shorten, strip_url_credentials
from navigator_kernel.values.job import NPM

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

FILE = "package.json"
BYTES_LIMIT = 256 * 1024
COUNT_LIMIT = 200
_NAME = lazy_compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~-][a-z0-9._~-]{0,200}")
_VERSION = lazy_compile(r"[0-9A-Za-z.*^~<>=|+ -]{0,100}")  # a range, or a tag such as `latest`


def node_packages(skill: SkillDef, script: Path) -> list[str]:
    """`npm:NAME@VERSION` of each dependency, from the nearest `package.json` within the skill's folder.

    Refused, with a `reason`, for one that does not come from a registry; NotLoadable if the file cannot be read.
    """
    body = next((data for folder in _folders(skill, script) if (data := _read(folder / FILE))), b"")
    if not body:
        return []
    try:
        held = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise _unread(skill, "it is not JSON") from error
    named: Any = held.get("dependencies", {}) if isinstance(held, Mapping) else None
    if not isinstance(named, Mapping) or not all(isinstance(version, str) for version in named.values()):
        raise _unread(skill, "dependencies is not a table of names and versions")
    if len(named) > COUNT_LIMIT:
        raise Refused(
            f"skill {skill.name!r} declares {len(named)} packages", hint=f"at most {COUNT_LIMIT}", reason="too-many"
        )
    return sorted(_package(skill, name, version) for name, version in named.items())


def named_package(skill: SkillDef, word: str) -> str:
    """`npm:NAME@VERSION` of a package that a model names: `docx`, `npm:docx`, `docx@9` or `@scope/name@^1.0`."""
    name, _, version = word.removeprefix(NPM).strip()[1:].partition("@")
    return _package(skill, word.removeprefix(NPM).strip()[:1] + name, version)


def _folders(skill: SkillDef, script: Path) -> Iterator[Path]:
    """The folders from the script's up to the skill's own."""
    if skill.folder is None or not script.is_relative_to(skill.folder):
        return
    for folder in script.parents:
        yield folder
        if folder == skill.folder:
            return


def _package(skill: SkillDef, name: str, version: str) -> str:
    version = " ".join(version.split()) or "*"
    if not _NAME.fullmatch(name) or not _VERSION.fullmatch(version):
        shown = shorten(strip_url_credentials(f"{name}@{version}"), 80)
        hint = "only names and versions of packages in your registry are taken"
        raise Refused(f"skill {skill.name!r} declares {shown!r}", hint=hint, reason="package")
    return f"{NPM}{name}@{version}"


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, BYTES_LIMIT)
    except FileNotFoundError:
        return b""


def _unread(skill: SkillDef, why: str) -> NotLoadable:
    return NotLoadable(f"{FILE} of skill {skill.name!r} cannot be read: {why}", hint="fix it", reason="package-json")
