"""Finds every folder that skills and other resources are read from: what is not found here exists for no part."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.config.project_root import HOSTS, foreign, is_own, is_project
from navigator_kernel.skills.catalog.roots import Root

if TYPE_CHECKING:
    from navigator_kernel.values.resource import Level, ResourceType

_OTHERS: Mapping[str, ResourceType] = {"commands": "command", "agents": "agent", "prompts": "prompt"}
_NO_PACKAGES = frozenset({"mybox", "node_modules"})
_ENTRIES = 1_000  # entries of a folder of packages; one with more contains data
_PLUGINS, _VERSIONS = 500, 50  # plugins that are read, and versions of one
_BYTES = 1024 * 1024  # of one file about plugins


def resource_roots(root: Path, plugins: tuple[Path, ...] = ()) -> tuple[Root, ...]:
    """Every folder of resources, each real folder once: the project's before those of its packages, the person's, the
    plugins' of Claude Code, those that our own `plugins` bring, and the shipped one."""
    home = Path.home()
    found = [Root(path=root / host / "skills", level="project") for host in HOSTS]
    if is_project(os.path.realpath(root)):
        found += [Root(path=path, level="project") for path in _packages(str(root), 2) if _is_usable(path, root)]
    found += [Root(path=home / host / "skills", level="user") for host in HOSTS]
    found += _claude_plugins(home / ".claude", root)
    found += [Root(path=path, level="plugin") for path in plugins]
    found.append(Root(path=shipped_home().skills, level="shipped"))
    levels: tuple[tuple[Level, Path], ...] = (("project", root), ("user", home))
    found += [
        Root(path=base / ".claude" / name, level=level, type=kind)
        for level, base in levels
        for name, kind in _OTHERS.items()
    ]
    kept: dict[tuple[str, str], Root] = {}
    for item in found:
        kept.setdefault((os.path.realpath(item.path), item.type), item)
    return tuple(kept.values())


def _packages(folder: str, depth: int) -> Iterator[Path]:
    """The folders of skills of the packages in a project, such as `packages/web/.claude/skills`, up to `depth` folders
    below `folder`. A folder with a repository of its own is another project; links are not followed."""
    for name, is_folder in sorted(_entries(folder).items()):
        package = f"{folder}/{name}"
        held = _entries(package) if is_folder and not name.startswith(".") and name not in _NO_PACKAGES else {}
        if not held or ".git" in held:
            continue
        yield from (Path(package, host, "skills") for host in HOSTS if host in held)
        if depth > 1:
            yield from _packages(package, depth - 1)


def _entries(folder: str) -> Mapping[str, bool]:
    """The names in a folder, each with whether it is itself a folder; empty for a folder of data."""
    try:
        with os.scandir(folder) as entries:
            held = {one.name: one.is_dir(follow_symlinks=False) for one in islice(entries, _ENTRIES + 1)}
    except OSError:
        return {}
    return held if len(held) <= _ENTRIES else {}


def _is_usable(path: Path, root: Path) -> bool:
    """Whether the skills of a package are the person's, or the person has agreed to others' files in the project."""
    held = (path.parent.parent, path.parent, path)
    return path.is_dir() and (all(is_own(str(one)) for one in held) or bool(foreign(str(root))))


def _claude_plugins(home: Path, root: Path) -> Iterator[Root]:
    """The folders of skills of the plugins that the person installed with Claude Code, without those that they switched
    off there, or that are for another project."""
    base = home / "plugins"
    if not (base / "cache").is_dir():
        return
    switched = _table(_json(home / "settings.json").get("enabledPlugins"))
    markets: dict[str, Mapping[str, Any]] = {}
    for (market, plugin), folders in islice(_installed(base, root).items(), _PLUGINS):
        if switched.get(f"{plugin}@{market}") is False:
            continue
        if market not in markets:
            offered = _json(base / "marketplaces" / market / ".claude-plugin" / "marketplace.json").get("plugins")
            rows = map(_table, offered if isinstance(offered, list) else ())
            markets[market] = {str(row.get("name")): row for row in rows}
        for folder in folders:
            yield from _of_plugin(folder, plugin, markets[market].get(plugin, {}))


def _installed(base: Path, root: Path) -> Mapping[tuple[str, str], list[Path]]:
    """The folders of a plugin in use, by marketplace and name: those in Claude Code's list, else the newest version."""
    found: dict[tuple[str, str], list[Path]] = {}
    listed = _json(base / "installed_plugins.json").get("plugins")
    if isinstance(listed, dict):
        here = os.path.realpath(root)
        for key, held in listed.items():
            plugin, _, market = key.partition("@")
            for one in held if isinstance(held, list) else [held]:
                path, project = _table(one).get("installPath"), _table(one).get("projectPath")
                is_here = not isinstance(project, str) or Path(here).is_relative_to(os.path.realpath(project))
                if isinstance(path, str) and is_here and "/" not in market:
                    found.setdefault((market, plugin), []).append(base / Path(path).expanduser())
        return found
    for path in sorted((base / "cache").glob("*/*")):
        versions = [one for one in islice(path.glob("*"), _VERSIONS) if one.is_dir()]
        if versions:
            found[path.parent.name, path.name] = [max(versions, key=lambda one: (one.stat().st_mtime_ns, one.name))]
    return found


def _of_plugin(folder: Path, plugin: str, row: Mapping[str, Any]) -> Iterator[Root]:
    """The folders of skills of one plugin: `skills`, and those that its manifest or `row`, its entry in the
    marketplace, names; without any, the plugin's own folder."""
    from navigator_kernel.skills.formats.plugin_manifests import plugin_words  # most people have no plugins

    manifest = _json(folder / ".claude-plugin" / "plugin.json") or _json(folder / "plugin.json")
    places, inside = [folder / "skills"], os.path.realpath(folder)
    for named in (manifest.get("skills"), row.get("skills")):
        for path in islice([named] if isinstance(named, str) else _texts(named), _PLUGINS):
            place = Path(os.path.realpath(folder / path))
            places.append(place.parent if (place / "SKILL.md").is_file() else place)
    words = plugin_words(plugin, manifest, row)
    kept = [place for place in places if place.is_dir() and Path(os.path.realpath(place)).is_relative_to(inside)]
    for place in kept or [folder]:
        yield Root(path=place, level="plugin", markdown=False, words=words)


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; empty if there is none that can be read."""
    try:
        with path.open("rb") as file:
            return _table(json.loads(file.read(_BYTES + 1)))
    except (OSError, ValueError, RecursionError):
        return {}
