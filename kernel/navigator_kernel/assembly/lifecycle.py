"""Opens the lifecycle port: the one part that may change which skills are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files import FolderWriter
from navigator_kernel.assembly.parts import open_mapping
from navigator_kernel.assembly.places import HOSTS, installed_plugins, shipped_digests, shipped_home, standing_places
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.settings import load_settings
from navigator_kernel.skills.doors import Doors
from navigator_kernel.skills.lifecycle import Lifecycle

if TYPE_CHECKING:
    from navigator_kernel.adapters.repo_cache import RepoCache
    from navigator_kernel.plugins import Plugins
    from navigator_kernel.values.resource import Diagnostic, Level, SkillDef


def open_lifecycle(root: Path) -> Lifecycle:
    """Project, user and shipped skills; the shipped ones only where they are not the project's own."""
    home = Path.home()
    levels: dict[Level, Path] = {"project": root / ".claude" / "skills", "user": home / ".claude" / "skills"}
    agents: dict[Level, Path] = {"project": root / ".agents" / "skills", "user": home / ".agents" / "skills"}
    if shipped_home().skills.resolve() != levels["project"].resolve():
        levels["shipped"] = shipped_home().skills
    own = [folder / name for folder in (home / ".claude", home / ".agents") for name in ("skills", "skills.lock.json")]
    writer = FolderWriter([*writable("lifecycle", root, standing_places()), *own], within=root)
    doors = Doors(
        writer=writer,
        clock=SystemClock(),
        mapping=open_mapping(root),
        scan=_scan(root),
        cache=lambda: _cache(root, writer),
        private=lambda: load_settings(root).private,
        reserved=shipped_digests,
        rank=_ranked,
    )
    others = [root / host / "skills" for host in HOSTS if host not in {".claude", ".agents"}]
    return Lifecycle(root=root, levels=levels, agents=agents, doors=doors, shipped=shipped_digests(), others=others)


def _cache(root: Path, writer: FolderWriter) -> RepoCache:
    from navigator_kernel.adapters.repo_cache import RepoCache

    return RepoCache(root / "mybox" / "cache" / "repos", writer)


def _ranked(skills: Sequence[SkillDef], query: str) -> Sequence[str]:
    from navigator_kernel.routing.lexical import LexicalIndex

    return [one.name for one in LexicalIndex(tuple(skills)).rank(query, len(skills) or 1)]


def _scan(root: Path) -> Callable[[SkillDef, Mapping[str, bytes]], Sequence[Any] | None]:
    """What plugins find in a skill before it is installed: None without a scanner; one that fails is a finding."""

    @cache
    def opened() -> Plugins | None:
        if not installed_plugins():
            return None
        from navigator_kernel.assembly.extensions import open_plugins

        return open_plugins(root, agents=False).plugins

    def scan(skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic] | None:
        plugins = opened()
        if plugins is None or not plugins.manager.hook.kernel_scan_skill.get_hookimpls():
            return None
        from navigator_kernel.values.resource import Diagnostic

        before = len(plugins.failures)
        found = [item for _, items in plugins.all("kernel_scan_skill", files) for item in items]
        failed = [
            Diagnostic(
                code="not-scanned", level="warning", path=skill.name, message=f"{failure.plugin}: {failure.error}"
            )
            for failure in plugins.failures[before:]
            if failure.hook == "kernel_scan_skill"
        ]
        return [item for item in found if isinstance(item, Diagnostic)] + failed

    return scan
