"""A project with a lifecycle, as the assembly builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.skills.commands.lifecycle import Lifecycle
from navigator_kernel.skills.install.deps import InstallDeps
from navigator_kernel.skills.source.mapping import SkillMapping
from navigator_kernel.values.resource import Level


class SetClock:
    """A clock that stands still until a test sets it."""

    time = "2026-01-31T09:30:00.000Z"

    def now(self) -> str:
        return self.time

    def monotonic(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    root: Path
    lifecycle: Lifecycle
    mapping: SkillMapping

    @property
    def skills(self) -> Path:
        return self.root / ".claude" / "skills"

    @property
    def inner(self) -> Path:
        return self.skills / ".navigator"

    @property
    def agents(self) -> Path:
        return self.root / ".agents" / "skills"

    def run(self, operation: str, **params: Any) -> Mapping[str, Any]:
        return self.lifecycle.perform(operation, params)


Maker = Callable[..., Project]


def make_project(root: Path, home: Path, writer: type[FolderWriter] = FolderWriter, scan: Any = None) -> Project:
    bases: dict[Level, Path] = {"project": root, "user": home}
    levels = {level: base / ".claude" / "skills" for level, base in bases.items()}
    agents = {level: base / ".agents" / "skills" for level, base in bases.items()}
    state = home / ".local" / "state" / "navigator"
    mapping = SkillMapping([state / "skills-mapping.md"], named=root / "docs" / "skills-mapping.md")
    roots: Sequence[Path] = [
        *levels.values(),
        *agents.values(),
        root / "skills.lock.json",
        root / ".agents" / "skills.lock.json",
        home / ".claude" / "skills.lock.json",
        home / ".agents" / "skills.lock.json",
    ]
    root.mkdir(parents=True, exist_ok=True)
    seen = FolderWriter([state])
    deps = InstallDeps(writer=writer(roots, within=root), clock=SetClock(), mapping=mapping, scan=scan, seen=seen)
    lifecycle = Lifecycle(
        root=root, levels=levels, agents=agents, deps=deps, state=state / root.name, state_writer=seen
    )
    return Project(root=root, lifecycle=lifecycle, mapping=mapping)


@pytest.fixture
def maker(tmp_path: Path, home: Path) -> Maker:
    def make(name: str = "project", **given: Any) -> Project:
        return make_project(tmp_path / name, home, **given)

    return make


@pytest.fixture
def project(maker: Maker) -> Project:
    return maker()
