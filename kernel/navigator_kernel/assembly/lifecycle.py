"""Opens the lifecycle port: the one part that may change which skills are installed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files import FolderWriter
from navigator_kernel.assembly.consents import open_consents
from navigator_kernel.assembly.parts import open_audit, open_mapping
from navigator_kernel.assembly.places import HOSTS, shipped_digests, shipped_home, standing_places
from navigator_kernel.assembly.scanners import open_scan
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.settings import load_settings
from navigator_kernel.skills.doors import Doors
from navigator_kernel.skills.lifecycle import Lifecycle

if TYPE_CHECKING:
    from navigator_kernel.adapters.repo_cache import RepoCache
    from navigator_kernel.values.resource import Level, SkillDef


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
        scan=open_scan(),
        cache=lambda: _cache(root, writer),
        private=lambda: load_settings(root).private,
        reserved=shipped_digests,
        rank=_ranked,
        consents=lambda: open_consents(open_audit(root)),
        audit=lambda: open_audit(root),
    )
    others = [root / host / "skills" for host in HOSTS if host not in {".claude", ".agents"}]
    return Lifecycle(root=root, levels=levels, agents=agents, doors=doors, shipped=shipped_digests(), others=others)


def _cache(root: Path, writer: FolderWriter) -> RepoCache:
    from navigator_kernel.adapters.repo_cache import RepoCache

    return RepoCache(root / "mybox" / "cache" / "repos", writer)


def _ranked(skills: Sequence[SkillDef], query: str) -> Sequence[str]:
    from navigator_kernel.routing.lexical import LexicalIndex

    return [one.name for one in LexicalIndex(tuple(skills)).rank(query, len(skills) or 1)]
