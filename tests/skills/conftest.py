"""A project with a lifecycle, as the assembly builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.skills.install.deps import InstallDeps
from navigator_kernel.skills.lifecycle import Lifecycle
from navigator_kernel.skills.options import InstallOptions
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

    def run(self, operation: str, **params: Any) -> Any:
        """The JSON document of a skill command; `params` are its arguments and the fields of its options."""
        if operation == "export":
            params |= {
                "out": params.pop("target"),
                "target": params.pop("of", None),
                "packed": params.pop("zip", False),
            }
        if operation == "update" and params.pop("check", False):
            operation, params["diffs"] = "outdated", params.pop("diff", False)
        fields = {name: params.pop(name) for name in InstallOptions.__struct_fields__ if name in params}
        fields |= {"everything": params.pop("all", False), "rename": params.pop("as", "")}
        options, skills = InstallOptions(**fields), self.lifecycle
        several = operation in {"export", "outdated", "uninstall", "update"}
        names = _words(params.pop("name", ())) if several else []
        chosen = _words(params.pop("skill", ()))
        match operation:
            case "list":
                result: Any = skills.installed(options)
            case "info" | "scan" | "install":
                result = getattr(skills, operation)(params.pop("source", ""), chosen, options, **params)
            case "search":
                result = skills.search(params.pop("query"), options, **params)
            case "verify":
                result = skills.verify(params.get("name", ""), options)
            case "frozen":
                result = skills.restore(chosen, options)
            case "outdated" | "update" | "uninstall":
                result = getattr(skills, operation)(names, options, **params)
            case "rollback":
                result = skills.rollback(params.get("to", ""), options)
            case "repair":
                result = skills.repair(options)
            case "export":
                result = skills.export(names, Path(params.pop("out")), options, **params)
            case "import-lock":
                file = params.get("file")
                result = skills.import_lock(Path(file) if file else None, options)
            case "convert":
                out = params.pop("out", None)
                keys = {"force": options.force, "dry_run": options.dry_run}
                result = skills.convert(Path(params["path"]), Path(out) if out else None, **keys)
            case "cache":
                result = skills.cache(dry_run=options.dry_run, **params)
            case "validate":
                base = params.pop("base", None)
                result = skills.validate(params.pop("path"), Path(base) if base else None, **params)
            case "formats":
                result = {"formats": skills.formats()}
            case _:
                result = getattr(skills, operation)(**params)
        return to_builtins(result)


def _words(value: str | Sequence[str]) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


class Scan:
    """A scanner that is one function."""

    def __init__(self, scan: Callable[[Any, Mapping[str, bytes]], Any]) -> None:
        self.scan = scan

    def __call__(self, skill: Any, files: Mapping[str, bytes]) -> Any:
        return self.scan(skill, files)

    def start(self) -> None: ...

    def ahead(self, skills: Any) -> None: ...

    def close(self) -> None: ...


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
    deps = InstallDeps(writer=writer(roots, within=root), clock=SetClock(), mapping=mapping, seen=seen)
    if scan is not None:
        deps.scanner = Scan(scan)
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
