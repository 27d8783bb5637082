"""Reads which plugin each skill of a repository belongs to, and which folders plugins declare as skills."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct, field

from navigator_kernel.text import clean, lazy_compile
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.git import TreeEntry

FILE_LIMIT = 1024 * 1024  # bytes of one manifest
COUNT_LIMIT = 1_000  # manifests, and plugins or paths in one of them
WORDS_LIMIT, WORD_LIMIT = 16, 64  # words about a plugin, and characters of one

_NAME = lazy_compile(r"[^\W_](?:[\w .-]{0,62}[\w])?")
_SKILL_FILE = lazy_compile(r"/skill\.md$", re.IGNORECASE)
_FOLDERS = frozenset({".claude-plugin", ".codex-plugin"})
_AGENT_PLUGINS = "https://agent-plugins.org/schemas/"  # their skills lie in `skills/`, and no manifest names them
_REGULAR = frozenset({"100644", "100755"})


class Elsewhere(NamedTuple):
    """Where a marketplace says that a plugin lies: in another repository, at `ref` and `subpath` if they are named."""

    address: str
    ref: str = ""
    subpath: str = ""


class Plugins(NamedTuple):
    """`owners` maps folders to the plugin that everything below them belongs to, `declared` are folders that are named
    as skills, or as folders of skills, `diagnostics` report what could not be used. `about` has the words about each
    plugin, `elsewhere` the places of those that are not in the repository, `roots` the folder and the manifest of those
    that are."""

    owners: Mapping[str, str] = MappingProxyType({})
    declared: frozenset[str] = frozenset()
    diagnostics: tuple[Diagnostic, ...] = ()
    about: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    elsewhere: Mapping[str, Elsewhere] = MappingProxyType({})
    roots: Mapping[str, tuple[str, Mapping[str, Any]]] = MappingProxyType({})

    def owner(self, folder: str) -> str:
        """The plugin of the skill in `folder`: that of the nearest folder that has one; empty if none has."""
        return next((self.owners[path] for path in _upwards(folder) if path in self.owners), "")

    def declares(self, folder: str) -> bool:
        return folder in self.declared or (folder != "" and folder.rpartition("/")[0] in self.declared)


class _Gathered(Struct):
    defaults: dict[str, str] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    notes: list[Diagnostic] = field(default_factory=list)
    about: dict[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    roots: dict[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)

    def note(self, code: str, path: str, message: str, line: int | None = None) -> None:
        shown = clean(path, lines=False)

        self.notes.append(Diagnostic(code=code, level="warning", path=shown, message=message, line=line))


def plugin_files(entries: Iterable[TreeEntry]) -> tuple[TreeEntry, ...]:
    """The entries that may be plugin or marketplace manifests, the outermost first."""
    manifests = []
    for entry in entries:
        folder, _, name = entry.path.rpartition("/")
        is_marketplace = name == "marketplace.json" and folder.rpartition("/")[2] in _FOLDERS
        if entry.mode in _REGULAR and (name == "plugin.json" or is_marketplace):
            manifests.append(entry)
    return tuple(sorted(manifests, key=lambda entry: (entry.path.count("/"), entry.path))[:COUNT_LIMIT])


def read_plugins(entries: Sequence[TreeEntry], blobs: Mapping[str, bytes]) -> Plugins:
    """Reads the manifests among `entries`; `blobs` has their bytes by id. Never raises because of their contents."""
    gathered = _Gathered()
    for entry in plugin_files(entries):
        if entry.oid in blobs:
            _read(entry.path, blobs[entry.oid], gathered)
    folders = {entry.path.rpartition("/")[0] for entry in entries} if gathered.named else set()
    existing = {path for folder in folders for path in _upwards(folder)}
    for path, plugin in gathered.named.items():
        if path not in existing:
            shown = clean(path, lines=False)
            gathered.note("plugin-path-missing", path, f"plugin {plugin!r} declares {shown!r}, which does not exist")
    owners = {**gathered.defaults, **gathered.named}
    notes = tuple(gathered.notes)
    return Plugins(owners, frozenset(gathered.named), notes, gathered.about, gathered.elsewhere, gathered.roots)


def plugin_words(name: str, *manifests: Mapping[str, Any]) -> tuple[str, ...]:
    """A plugin's name, keywords, tags and category, as its manifest and the marketplace say, each once."""
    words = [name]
    for manifest in manifests:
        for value in (manifest.get("keywords"), manifest.get("tags"), [manifest.get("category")]):
            words += [word for word in value if isinstance(word, str)] if isinstance(value, list) else []
    cleaned = dict.fromkeys(clean(word, lines=False).strip() for word in words if len(word) <= WORD_LIMIT)
    return tuple(word for word in cleaned if word)[:WORDS_LIMIT]


def _read(path: str, data: bytes, gathered: _Gathered) -> None:
    folder, _, name = path.rpartition("/")
    parent, _, own = folder.rpartition("/")
    root = parent if own in _FOLDERS else folder
    if len(data) > FILE_LIMIT:
        gathered.note("plugin-large", path, f"it is over {FILE_LIMIT} bytes")
        return
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        gathered.note("plugin-json", path, f"it is not JSON: {error.msg}", error.lineno)
        return
    except (ValueError, RecursionError):
        gathered.note("plugin-json", path, "it cannot be read as JSON")
        return
    if value is None:
        return
    if not isinstance(value, dict):
        gathered.note("plugin-form", path, "it is not a JSON object")
    elif name == "marketplace.json":
        _marketplace(path, root, value, gathered)
    elif own in _FOLDERS or "skills" in value or str(value.get("$schema", "")).startswith(_AGENT_PLUGINS):
        # other tools have a plugin.json, too
        _plugin(path, root, value, gathered, own=True)


def _marketplace(path: str, root: str, value: Mapping[str, Any], gathered: _Gathered) -> None:
    plugins = value.get("plugins")
    if not isinstance(plugins, list):
        gathered.note("plugin-form", path, "'plugins' is not a list")
        return
    metadata = value.get("metadata")
    base = metadata.get("pluginRoot") if isinstance(metadata, dict) else None
    for plugin in plugins[:COUNT_LIMIT]:
        if not isinstance(plugin, dict):
            gathered.note("plugin-form", path, "a plugin is not a JSON object")
            continue
        source = plugin.get("source", "./")
        if isinstance(source, dict):
            _remote(path, plugin.get("name"), source, gathered)
        elif isinstance(source, str):
            inside = f"{base}/{source}" if isinstance(base, str) and not source.startswith("./") else source
            place = _inside(root, inside)
            if place is None:
                gathered.note("plugin-path-odd", path, f"{clean(source, lines=False)!r} leads out of the repository")
            else:
                _plugin(path, place, plugin, gathered, own="skills" not in plugin)


def _remote(path: str, name: Any, source: Mapping[str, Any], gathered: _Gathered) -> None:
    """Reads the place of a plugin in another repository."""
    texts = {key: value for key, value in source.items() if isinstance(value, str)}
    key = {"github": "repo", "url": "url", "git-subdir": "url", "npm": "package"}.get(texts.get("source", ""), "")
    address = f"npm:{texts[key]}" if key == "package" and key in texts else texts.get(key)
    subpath = _inside("", texts.get("path", ""))
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        gathered.note("plugin-name-odd", path, "the plugin has no usable name")
    elif not address or subpath is None:
        kind = clean(texts.get("source", ""), lines=False)[:40]
        gathered.note("plugin-source", path, f"plugin {name!r} comes from a source that is not read: {kind!r}")
    else:
        place = Elsewhere(address, texts.get("sha") or texts.get("ref") or texts.get("version", ""), subpath)
        gathered.elsewhere.setdefault(name, place)


def _plugin(path: str, root: str, value: Mapping[str, Any], gathered: _Gathered, *, own: bool) -> None:
    """Reads one plugin; `own` says that all of `root` belongs to it, not only the folders that it declares."""
    name = value.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        gathered.note("plugin-name-odd", path, "the plugin has no usable name")
        return
    words = (*gathered.about.get(name, ()), *plugin_words(name, value))
    gathered.about[name] = tuple(dict.fromkeys(words))[:WORDS_LIMIT]
    gathered.roots[name] = (root, {**gathered.roots.get(name, (root, {}))[1], **value})
    if own:
        gathered.defaults.setdefault(root, name)
    skills = value.get("skills", [])
    skills = [skills] if isinstance(skills, str) else skills
    if skills is not None and not isinstance(skills, list):
        gathered.note("plugin-form", path, "'skills' is not a list of paths")
        return
    for declared in (skills or [])[:COUNT_LIMIT]:
        if not isinstance(declared, str):
            gathered.note("plugin-form", path, "an entry of 'skills' is not a path")
            continue
        declared = _SKILL_FILE.sub("", declared)
        if (place := _inside(root, declared)) is None:
            gathered.note("plugin-path-odd", path, f"{clean(declared, lines=False)!r} leads out of the repository")
        else:
            gathered.named.setdefault(place, name)


def _inside(root: str, path: str) -> str | None:
    """`path`, relative to `root`, as a path of the tree; None if it leads out of the tree."""
    if path.startswith("/") or "\\" in path or "\0" in path:
        return None
    joined = posixpath.normpath(posixpath.join(root, path or "."))
    if joined == ".." or joined.startswith("../"):
        return None
    return "" if joined == "." else joined


def _upwards(folder: str) -> Iterator[str]:
    """The folder itself, then each one above it, the top as an empty string."""
    while folder:
        yield folder
        folder = folder.rpartition("/")[0]
    yield ""
