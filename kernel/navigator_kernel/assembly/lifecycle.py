"""Opens the lifecycle port: the one part that may change which skills are installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files import FolderWriter
from navigator_kernel.assembly.parts import open_mapping
from navigator_kernel.assembly.places import shipped_digests, shipped_home, standing_places
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.skills.lifecycle import Lifecycle
from navigator_kernel.values.resource import Diagnostic, Level, SkillDef


def open_lifecycle(root: Path) -> Lifecycle:
    """Project, user and shipped skills; the shipped ones only where they are not the project's own."""
    user = Path.home() / ".claude"
    levels: dict[Level, Path] = {"project": root / ".claude" / "skills", "user": user / "skills"}
    if shipped_home().skills.resolve() != levels["project"].resolve():
        levels["shipped"] = shipped_home().skills
    roots = (*writable("lifecycle", root, standing_places()), user / "skills", user / "skills.lock.json")
    writer, mapping = FolderWriter(roots, within=root), open_mapping(root)
    return Lifecycle(root, levels, writer, SystemClock(), mapping, _scan(root), shipped_digests())


def _scan(root: Path) -> Callable[[SkillDef, Mapping[str, bytes]], Sequence[Any] | None]:
    """What plugins find in a skill before it is installed: None without a scanner; one that fails is a finding."""

    def scan(skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic] | None:
        from navigator_kernel.assembly.extensions import open_plugins

        plugins = open_plugins(root, agents=False).plugins
        if not plugins.manager.hook.kernel_scan_skill.get_hookimpls():
            return None
        found = [item for _, items in plugins.all("kernel_scan_skill", files) for item in items]
        failed = [
            Diagnostic(
                code="not-scanned", level="warning", path=skill.name, message=f"{failure.plugin}: {failure.error}"
            )
            for failure in plugins.failures
            if failure.hook == "kernel_scan_skill"
        ]
        return [item for item in found if isinstance(item, Diagnostic)] + failed

    return scan
