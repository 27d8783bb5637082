"""Finds every folder that skills and other resources are read from: what is not found here exists for no part."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.config.project_root import HOSTS, foreign, is_own, is_project
from navigator_kernel.skills.catalog.listing import Root

if TYPE_CHECKING:
    from navigator_kernel.values.resource import Level, ResourceType

_OTHERS: Mapping[str, ResourceType] = {"commands": "command", "agents": "agent", "prompts": "prompt"}
_NO_PACKAGES = frozenset({"mybox", "node_modules"})
_ENTRIES = 1_000  # entries of a folder of packages; one with more contains data
_PACKAGES = 2_000  # packages that are looked at, which takes 20 us each
_PLUGINS, _VERSIONS = 500, 50  # plugins that are read, or paths in one list; and versions of one
_BYTES = 1024 * 1024  # of one file about plugins


def resource_roots(root: Path, plugins: tuple[Path, ...] = ()) -> tuple[Root, ...]:
    """Every folder of resources, each real folder once: the project's before those of its packages, the person's, the
    plugins' and extensions' of Claude Code, Codex and Gemini CLI, those that our own `plugins` bring, and the shipped
    one."""
    home = Path.home()
    roots = [Root(path=root / host / "skills", level="project") for host in HOSTS]
    if is_project(os.path.realpath(root)):
        for package in islice(_packages(str(root), 2), _PACKAGES):  # such as `packages/web/.claude/skills`
            for host in HOSTS:
                folder = f"{package}/{host}/skills"
                places = (package, f"{package}/{host}", folder)
                # The person's own, or the person has agreed to others' files in the project
                if _is_folder(folder) and (all(map(is_own, places)) or foreign(str(root))):
                    roots.append(Root(path=Path(folder), level="project"))
    # The person's folders of hosts. Sources: the pages on skills of Codex, Copilot CLI, Cursor, opencode, goose, Amp,
    # Qwen Code, Kimi Code and Windsurf, and the hosts of the npm package skills
    named = ("CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "KIMI_CODE_HOME")
    settings = _place("XDG_CONFIG_HOME", home / ".config")
    own = [home / host for host in (*HOSTS, ".copilot", ".codeium/windsurf")]
    own += [_place(name, home / ".codex") for name in named]
    own += [settings / name for name in ("opencode", "goose", "agents", "amp")]
    roots += [Root(path=path / "skills", level="user") for path in own]
    roots += _claude_plugins(home / ".claude", root)
    roots += _other_plugins(_place("CODEX_HOME", home / ".codex"), home / ".gemini")
    roots += [Root(path=path, level="plugin") for path in plugins]
    roots.append(Root(path=shipped_home().skills, level="shipped"))
    levels: tuple[tuple[Level, Path], ...] = (("project", root), ("user", home))
    roots += [
        Root(path=base / ".claude" / name, level=level, type=kind)
        for level, base in levels
        for name, kind in _OTHERS.items()
    ]
    kept: dict[tuple[str, str], Root] = {}
    for item in roots:
        kept.setdefault((os.path.realpath(item.path), item.type), item)
    return tuple(kept.values())


def _place(name: str, usual: Path) -> Path:
    """The folder that the environment names, if it is an absolute path."""
    return Path(named) if (named := os.environ.get(name, "")).startswith("/") else usual


def _packages(folder: str, depth: int) -> Iterator[str]:
    """The folders up to `depth` below `folder` that may be packages. One with a repository of its own is another
    project, one with too many entries contains data; links are not followed."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, _ENTRIES + 1))
    except OSError:
        return
    names = [one.name for one in found if one.is_dir(follow_symlinks=False) and not one.name.startswith(".")]
    for name in sorted(names) if len(found) <= _ENTRIES else ():
        package = f"{folder}/{name}"
        if name not in _NO_PACKAGES and not os.path.lexists(f"{package}/.git"):
            yield package
            yield from _packages(package, depth - 1) if depth > 1 else ()


def _claude_plugins(home: Path, root: Path) -> Iterator[Root]:
    """The folders of skills of the plugins that the person installed with Claude Code, without those that they switched
    off there, or that are for another project."""
    base = home / "plugins"
    if not _is_folder(base / "cache"):
        return
    installed: dict[tuple[str, str], list[Path]] = {}
    listed = _json(base / "installed_plugins.json").get("plugins")
    if isinstance(listed, dict):
        here = Path(os.path.realpath(root))
        for key, uses in listed.items():
            plugin, _, market = key.partition("@")
            for one in map(_table, uses if isinstance(uses, list) else [uses]):
                is_here = all(here.is_relative_to(os.path.realpath(path)) for path in _paths(one.get("projectPath")))
                if is_here and "/" not in market:
                    paths = _paths(one.get("installPath"))
                    installed.setdefault((market, plugin), []).extend(base / path for path in paths)
    else:
        installed = _cached(base)
    switched = _table(_json(home / "settings.json").get("enabledPlugins"))
    markets: dict[str, Mapping[str, Any]] = {}
    for (market, plugin), folders in islice(installed.items(), _PLUGINS):
        if switched.get(f"{plugin}@{market}") is False:
            continue
        if market not in markets:
            offered = _json(base / "marketplaces" / market / ".claude-plugin" / "marketplace.json").get("plugins")
            rows = map(_table, offered if isinstance(offered, list) else ())
            markets[market] = {str(row.get("name")): row for row in rows}
        for folder in folders:
            yield from _of_plugin(folder, plugin, markets[market].get(plugin, {}))


def _other_plugins(codex: Path, gemini: Path) -> Iterator[Root]:
    """The folders of skills of Codex's plugins (`plugins/cache/MARKET/NAME/VERSION`) that its config.toml does not
    switch off, and of Gemini CLI's extensions (`extensions/NAME`)."""
    import tomllib

    found = dict(islice(_cached(codex / "plugins").items(), _PLUGINS)) if _is_folder(codex / "plugins/cache") else {}
    switched: Mapping[str, Any] = {}
    if found:
        with suppress(OSError, ValueError, RecursionError):
            switched = _table(tomllib.loads((codex / "config.toml").read_bytes()[:_BYTES].decode()).get("plugins"))
    for (market, plugin), folders in found.items():
        if _table(switched.get(f"{plugin}@{market}")).get("enabled") is not False:
            yield from _of_plugin(folders[0], plugin, {})
    for skills in islice(sorted(gemini.glob("extensions/*/skills")), _PLUGINS):
        yield from _of_plugin(skills.parent, skills.parent.name, {})


def marketplace(name: str) -> str:
    """The address of a marketplace that the person has added to Claude Code; empty without one of that name."""
    known = _json(Path.home() / ".claude" / "plugins" / "known_marketplaces.json")
    source = _table(_table(known.get(name)).get("source"))
    return next((text for key in ("repo", "url", "path") if isinstance(text := source.get(key), str)), "")


def _cached(base: Path) -> dict[tuple[str, str], list[Path]]:
    """The newest version of each plugin in the cache, by marketplace and name."""
    found: dict[tuple[str, str], list[Path]] = {}
    for path in sorted((base / "cache").glob("*/*")):
        versions = [one for one in islice(path.glob("*"), _VERSIONS) if _is_folder(one)]
        if versions:
            found[path.parent.name, path.name] = [max(versions, key=lambda one: (one.stat().st_mtime_ns, one.name))]
    return found


def _of_plugin(folder: Path, plugin: str, row: Mapping[str, Any]) -> Iterator[Root]:
    """The folders of skills of one plugin: `skills`, and those that its manifest or `row`, its entry in the
    marketplace, names; without any, the plugin's own folder."""
    from navigator_kernel.skills.formats.plugin_manifests import plugin_words  # most people have no plugins

    named = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "plugin.json", "gemini-extension.json")
    manifest = next(filter(None, (_json(folder / name) for name in named)), {})
    places, inside = [folder / "skills"], os.path.realpath(folder)
    for path in (*_paths(manifest.get("skills")), *_paths(row.get("skills"))):
        place = Path(os.path.realpath(folder / path))
        places.append(place.parent if os.path.lexists(place / "SKILL.md") else place)
    words = plugin_words(plugin, manifest, row)
    kept = [place for place in places if _is_folder(place) and Path(os.path.realpath(place)).is_relative_to(inside)]
    for place in kept or [folder]:
        yield Root(path=place, level="plugin", markdown=False, plugin=plugin, words=words)


def _paths(value: Any) -> Sequence[str]:
    """The texts that can be paths, of a list or of a single value."""
    texts = value[:_PLUGINS] if isinstance(value, list) else [value]
    return [one for one in texts if isinstance(one, str) and one.isprintable()]


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - is_dir() fails for a name that is too long, or in a closed folder


def _table(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path) -> Mapping[str, Any]:
    """The JSON object in a file; empty if there is none that can be read."""
    try:
        with path.open("rb") as file:
            return _table(json.loads(file.read(_BYTES + 1)))
    except (OSError, ValueError, RecursionError):
        return {}
