"""Skills as MCP resources: entries with the digest of every file, files by their addresses, folders (SEP-2640)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from math import isfinite
from mimetypes import guess_type
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote, unquote

import yaml
from msgspec import Struct

from navigator_kernel.adapters.files.project_files import holds_secrets
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.skills.catalog.executor import SkillExecutor
from navigator_kernel.skills.catalog.receipts import folder_files
from navigator_kernel.skills.formats.frontmatter import split
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.ports import Catalogue
    from navigator_kernel.values.receipt import InstalledFile
    from navigator_kernel.values.resource import SkillDef

SCHEME, MANIFEST = "skill://", "SKILL.md"
FILES, BYTES = 512, 16 * 1024 * 1024  # sizes that every host of the extension accepts
PAGE = 50  # entries on a page
_NAME = lazy_compile(r"(?!-)(?!.*--)[a-z0-9-]{1,64}(?<!-)")
_TEXTS = {"license": 10_000, "compatibility": 500, "allowed-tools": 10_000}  # characters


class File(NamedTuple):
    """One file as a resource; `text` is None if the file is not text."""

    uri: str
    media: str
    data: bytes
    text: str | None


class SkillResources(Struct, frozen=True):
    """The skills that follow the open specification, that the person installed or trusts as they are now, and that a
    model may call."""

    catalogue: Catalogue

    def served(self) -> list[str]:
        """The names of the served skills, sorted; every file of them is read."""
        return [name for name, skill in sorted(self._candidates().items()) if self._entry(skill) is not None]

    def page(self, after: str) -> tuple[list[dict[str, Any]], str]:
        """The entries after the name `after`, and the name after which the next page begins; empty at the end."""
        candidates = self._candidates()
        names = sorted(name for name in candidates if name > after)
        shown = names[:PAGE]
        entries = [entry for name in shown if (entry := self._entry(candidates[name])) is not None]
        return entries, shown[-1] if len(names) > PAGE else ""

    def entry(self, uri: str) -> dict[str, Any]:
        """The entry of the skill whose SKILL.md is at `uri`; NotFound if it is not served."""
        skill = self._named(uri)
        entry = self._entry(skill) if skill is not None else None
        if entry is None or entry["uri"] != uri:
            raise NotFound(f"no skill is served at {uri[:200]}", hint="skills/list names those that are")
        return entry

    def read(self, uri: str) -> File:
        """The file at `uri`; NotFound if it is not a file of a served skill."""
        skill = self._named(uri)
        files = {address: path for address, path in self._files(skill) if address == uri}
        if skill is None or skill.folder is None or not files:
            raise NotFound(f"no file of a skill is served at {uri[:200]}", hint="skills/get names its files")
        data = read_bounded(skill.folder / files[uri], BYTES)
        try:
            text: str | None = data.decode()
        except UnicodeDecodeError:
            text = None
        return File(uri, _media(files[uri]), data, text)

    def folder(self, uri: str) -> list[dict[str, str]]:
        """The entries directly in the folder at `uri`, which has no `/` at its end; NotFound if it is not a folder."""
        prefix, children = f"{uri}/", dict[str, dict[str, str]]()
        for address, path in self._files(self._named(uri)):
            if address.startswith(prefix):
                child, _, rest = address.removeprefix(prefix).partition("/")
                media = "inode/directory" if rest else _media(path)
                children[child] = {"uri": f"{prefix}{child}", "name": unquote(child), "mimeType": media}
        if not children:
            raise NotFound(f"{uri[:200]} is not a folder that is served", hint="a skill's own is skill://NAME")
        return [children[child] for child in sorted(children)]

    def _candidates(self) -> dict[str, SkillDef]:
        """The skills that may be served, by name; only their files show whether they are. The catalogue is called once,
        because it checks every skill at each call."""
        resources = self.catalogue.list_resources()
        return {
            skill.name: skill for skill in resources if skill.type == "skill" and skill.implicit and _is_folder(skill)
        }

    def _named(self, uri: str) -> SkillDef | None:
        name = uri.removeprefix(SCHEME).partition("/")[0]
        skill = self.catalogue.find(name) if uri.startswith(SCHEME) else None
        is_it = skill is not None and skill.name == name and skill.implicit and _is_folder(skill)
        return skill if is_it else None

    def _entry(self, skill: SkillDef) -> dict[str, Any] | None:
        """The entry of the skill, or None if it is not served."""
        return None if self.catalogue.standing(skill) == "unknown" else _entry(skill)

    def _files(self, skill: SkillDef | None) -> list[tuple[str, str]]:
        """Address and path of each file of a skill, empty if it is not served."""
        if skill is None or self._entry(skill) is None:
            return []
        return [(_address(skill.name, file.path), file.path) for file in _files(skill)]


def _entry(skill: SkillDef) -> dict[str, Any] | None:
    """The entry, or None if the skill is too large, changed since its installation, or not as the specification
    wants."""
    files, name = _files(skill), skill.name
    small = len(files) <= FILES and sum(file.size for file in files) <= BYTES
    if not small or all(file.path != MANIFEST for file in files) or SkillExecutor(skill=skill).is_changed:
        return None
    frontmatter = _frontmatter(skill)
    if frontmatter is None or not conforms(frontmatter, name):
        return None
    resources = [
        {"uri": _address(name, file.path), "digest": f"sha256:{file.sha256}", "size": file.size} for file in files
    ]
    return {"uri": _address(name, MANIFEST), "frontmatter": frontmatter, "resources": resources}


def conforms(frontmatter: Mapping[str, Any], folder: str) -> bool:
    """Whether the fields that the Agent Skills specification names are valid in a folder called `folder`."""
    name, description = frontmatter.get("name"), frontmatter.get("description")
    if name != folder or not isinstance(name, str) or not _NAME.fullmatch(name):
        return False
    if not isinstance(description, str) or not description.strip() or len(description) > 1024:
        return False
    for key, most in _TEXTS.items():
        value = frontmatter.get(key, "-")
        if not isinstance(value, str) or not 1 <= len(value) <= most:
            return False
    metadata = frontmatter.get("metadata", {})
    return isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())


def _is_folder(skill: SkillDef) -> bool:
    return skill.folder is not None and skill.folder.name == skill.name and skill.path.name == MANIFEST


def _files(skill: SkillDef) -> tuple[InstalledFile, ...]:
    """The files of a skill without files of secrets; empty if the folder has a link in it or is gone."""
    if skill.folder is None:
        return ()
    try:
        files = folder_files(skill.folder)
    except (KernelError, OSError):
        return ()
    parts = {file.path: file.path.split("/") for file in files}
    return tuple(
        file for file in files if "__pycache__" not in parts[file.path] and not holds_secrets(parts[file.path])
    )


def _frontmatter(skill: SkillDef) -> dict[str, Any] | None:
    """The frontmatter as written; None if JSON cannot express it or it can only be read leniently."""
    try:
        parts = split(read_bounded(skill.path, BYTES), MANIFEST)  # refuses hostile frontmatter
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        frontmatter = _plain(yaml.load(parts.source, Loader=loader))  # noqa: S506 - one of two safe loaders
    except (KernelError, OSError, ValueError, yaml.YAMLError):
        return None
    return frontmatter if parts.form == "frontmatter" and isinstance(frontmatter, dict) else None


def _plain(value: Any) -> Any:
    """`value` as JSON values, a date as text. ValueError for other values."""
    match value:
        case dict():
            if not all(isinstance(key, str) for key in value):
                raise ValueError("a key that is not text")
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return list(map(_plain, value))
        case datetime():
            raise ValueError("a time")
        case date():
            return value.isoformat()
        case float() if not isfinite(value):
            raise ValueError("no number of JSON")
        case None | str() | bool() | int() | float():
            return value
    raise ValueError("no value of JSON")


def _address(name: str, path: str) -> str:
    return f"{SCHEME}{name}/{quote(path, errors='surrogateescape')}"


def _media(path: str) -> str:
    return "text/markdown" if path.endswith(".md") else guess_type(path)[0] or "text/plain"
