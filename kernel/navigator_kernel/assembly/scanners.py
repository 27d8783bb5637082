"""Puts the scanners of skills together: our own in one process, those of plugins in another."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.module_child import ModuleChild
from navigator_kernel.assembly.places import installed_plugins
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

OWN, PLUGINS = "navigator_kernel.assembly.content_child", "navigator_kernel.assembly.scan_child"
OWN_SECONDS, OWN_MEMORY = 20, 1024**3  # what our own scanners may take for one skill
PER_MIB = 4  # seconds more for each MiB of it
EACH = 4  # the part of that time that one file may take by itself
SECONDS, MEMORY = 60, 2 * 1024**3  # what the scanners of plugins may take for one skill
_BROKEN = (KernelError, KeyError, TypeError, ValueError)


class Scanners:
    """All scanners. One that fails, or takes too long, is a finding: "not scanned", never "clean". Our own run in one
    process, which is kept from skill to skill until `close`."""

    def __init__(self, *, seconds: int = OWN_SECONDS, memory: int = OWN_MEMORY) -> None:
        self._seconds = seconds
        self._child = ModuleChild(OWN, memory=memory)
        self._idle = False  # no plugin has a scanner

    def __call__(self, skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic]:
        """What they find in the files of `skill`."""
        found = self.contents(files, skill.name, secrets=True)
        if not self._idle:
            told = _plugins(files, skill.name) if installed_plugins() else None
            self._idle = told is None
            found += told or ()
        return found

    def contents(self, files: Mapping[str, bytes], subject: str, *, secrets: bool) -> list[Diagnostic]:
        """What our own find; that they failed stands under `subject`, with what they find in each file by itself, for
        as long again: one slow file is not to hide what another holds."""
        seconds = self._seconds + PER_MIB * (sum(map(len, files.values())) // 1024**2)
        try:
            return self._asked(files, subject, secrets=secrets, seconds=seconds)
        except _BROKEN as error:
            found = [_failed("the content scanner", str(error), subject)]
        end = time.monotonic() + seconds
        for path, data in files.items() if len(files) > 1 else ():
            left = int(end - time.monotonic())
            if left < 1:
                break
            with suppress(*_BROKEN):
                own = min(left, max(seconds // EACH, 1))
                found += self._asked({path: data}, subject, secrets=secrets, seconds=own)
        return found

    def _asked(self, files: Mapping[str, bytes], subject: str, *, secrets: bool, seconds: int) -> list[Diagnostic]:
        return _told(self._child.ask({"files": dict(files), "secrets": secrets}, seconds=seconds), subject)

    def start(self) -> None:
        """Our own get ready meanwhile."""
        self._child.start()

    def close(self) -> None:
        """No process of theirs is left."""
        self._child.close()


def _plugins(files: Mapping[str, bytes], skill: str) -> list[Diagnostic] | None:
    """What plugins' scanners found, None where no plugin has one."""
    from navigator_kernel.adapters.module_call import call_module

    try:
        told = call_module(PLUGINS, dict(files), seconds=SECONDS, memory=MEMORY)
        found = _told(told, skill)
        return found if told["scanners"] else None
    except _BROKEN as error:
        return [_failed("the scanners of plugins", str(error), skill)]


def _told(answer: Mapping[str, Any], subject: str) -> list[Diagnostic]:
    found = [_read(item) for item in answer["findings"]]
    return [*found, *(_failed(who, why, subject) for who, why in answer["failures"])]


def _read(item: Mapping[str, Any]) -> Diagnostic:
    """A finding as it was said; what a plugin's words hold is for whoever shows them to clean."""
    said, level = str(item["message"]), item["level"]
    made = finding(
        str(item["code"]),
        "error" if level == "error" else "note" if level == "note" else "warning",
        str(item["path"]),
        said,
        line if isinstance(line := item["line"], int) and line > 0 else None,
        text := str(item.get("text") or said),
    )
    return replace(made, text=text, digest=str(item["digest"])) if item.get("digest") else made


def _failed(name: str, error: str, subject: str) -> Diagnostic:
    return finding(NOT_SCANNED, "warning", subject, f"{name}: {error}", None, name)
