"""Lists the plugins of installed packages, and in a source tree this project's own, without importing them or their
loaders."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.errors import KernelError

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

GROUP = "navigator"
OWN = "navigator-kernel"  # the distribution of this package, which has plugins of its own beside it
_PROJECT = Path(__file__).resolve().parents[3] / "pyproject.toml"  # of the source tree, if this is one
ENVIRONMENTS = 16  # environments in the cache, newest first: sys.path can begin with the current folder, so keys differ


class Installed(NamedTuple):
    """An entry point of the group: its name, `module[:attribute]`, and its package with its version."""

    name: str
    value: str
    package: str = ""
    version: str = ""


def entry_points(cache: Path, writer: Callable[[], Writer]) -> list[Installed]:
    """The group's entry points, from a cache that is keyed by the state of the environment's folders.

    A scan takes 30 ms or more, the cache 1 ms.
    """
    paths = [*sys.path, *([str(_PROJECT)] if _is_source_tree() else ())]
    state: list[list[Any]] = [[sys.prefix, sys.version_info[:3], Installed._fields]]
    for path in paths:
        with suppress(OSError):
            state.append([path, Path(path).stat().st_mtime_ns])
    key = json.loads(json.dumps(state))  # tuples become lists, as in the cache
    environments: list[dict[str, Any]] = []
    with suppress(OSError, ValueError, KeyError, TypeError):  # there is no cache, or it is not one
        environments = [
            {"key": entry["key"], "found": [Installed(*map(str, point)) for point in entry["found"]]}
            for entry in json.loads(cache.read_bytes())
        ]
    for environment in environments:
        if environment["key"] == key:
            return list(environment["found"])
    scanned = _scanned()
    with suppress(KernelError):  # without a cache it is scanned again
        body = [{"key": key, "found": scanned}, *environments][:ENVIRONMENTS]
        writer().write(cache, json.dumps(body).encode())
    return scanned


def _scanned() -> list[Installed]:
    """The entry points of the first package of each name. A package whose metadata cannot be read has one without a
    value, which fails when it is loaded."""
    from importlib.metadata import distributions

    groups: dict[str, list[Installed]] = {}
    if _is_source_tree():
        import tomllib

        # Metadata that an editable install wrote may be older, or missing
        project = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]
        own = project.get("entry-points", {}).get(GROUP, {})
        groups[OWN] = [Installed(name, value, OWN, project["version"]) for name, value in own.items()]
    for package in distributions():
        place = Path(str(getattr(package, "_path", ""))).stem
        try:
            points = package.entry_points.select(group=GROUP)
            name, version = (package.name or place, package.version or "") if points else ("", "")
            groups.setdefault(name, [Installed(point.name, point.value, name, version) for point in points])
        except Exception:  # noqa: BLE001 - metadata may have any form
            groups.setdefault(place, [Installed(place, "", place)])
    return sorted(point for points in groups.values() for point in points)


def _is_source_tree() -> bool:
    return _PROJECT.parent.joinpath("kernel") == Path(__file__).resolve().parents[2] and _PROJECT.is_file()
