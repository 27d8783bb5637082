"""Runs all scanners of skills: the built-in ones and those of plugins, in child processes."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.entry_points import OWN as PACKAGE
from navigator_kernel.adapters.processes.module_child import ModuleChild, call_module
from navigator_kernel.bootstrap.places import installed_plugins
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic, SkillDef

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor


OWN, PLUGINS = "navigator_kernel.bootstrap.scanning.content_child", "navigator_kernel.bootstrap.scanning.plugin_child"
OWN_SECONDS, OWN_MEMORY = 20, 1024**3  # seconds and bytes for one skill, for the built-in scanners
PER_MIB = 4  # additional seconds for each MiB of a skill
EACH = 4  # one file alone gets at most this fraction of the time
MOST, FEW = 4, 6  # concurrent processes, and skills for which one is enough
WAIT = 0.01  # seconds between two checks whether cancelled scans have ended
SECONDS, MEMORY = 60, 2 * 1024**3  # seconds and bytes for one skill, for plugin scanners
_BROKEN = (KernelError, KeyError, TypeError, ValueError)


class Scanners:
    """All scanners. If one fails or takes too long, that is a finding: "not scanned", never "clean". The built-in ones
    run in a child process, or in several after `ahead`, which are reused for all skills until `close`."""

    def __init__(self, *, seconds: int = OWN_SECONDS, memory: int = OWN_MEMORY) -> None:
        self._seconds, self._memory = seconds, memory
        self._child = ModuleChild(OWN, memory=memory)
        self._others: list[ModuleChild] = []
        self._pool: ThreadPoolExecutor | None = None
        self._begun: dict[int, tuple[Mapping[str, bytes], Future[list[Diagnostic]]]] = {}
        self._closing = False
        self._idle = False  # whether no plugin has a scanner

    def __call__(self, skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic]:
        """The findings for the files of `skill`, from `ahead` if the same files were given to it."""
        _, begun = self._begun.get(id(files), (None, None))
        found = self.contents(files, skill.name, secrets=True) if begun is None else [*begun.result()]
        if not self._idle:
            told = _plugins(files, skill.name) if _of_others() else None
            self._idle = told is None
            found += told or ()
        return found

    def ahead(self, skills: Sequence[tuple[SkillDef, Mapping[str, bytes]]]) -> None:
        """Starts to scan many skills, in one process per processor, at most `MOST`; a few are scanned on demand."""
        several = min(os.cpu_count() or 1, MOST)
        if several < 2 or len(skills) <= FEW or self._pool is not None:
            return
        self._begin(several, skills)

    def _begin(self, several: int, skills: Sequence[tuple[SkillDef, Mapping[str, bytes]]]) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from queue import SimpleQueue

        self._others = [ModuleChild(OWN, memory=self._memory) for _ in range(several - 1)]
        self._pool = ThreadPoolExecutor(several)
        free: SimpleQueue[ModuleChild] = SimpleQueue()
        for child in (self._child, *self._others):
            free.put(child)

        def look(files: Mapping[str, bytes], subject: str) -> list[Diagnostic]:
            child = free.get()
            try:
                return self.contents(files, subject, secrets=True, child=child)
            finally:
                free.put(child)

        self._begun = {id(files): (files, self._pool.submit(look, files, skill.name)) for skill, files in skills}

    def contents(
        self, files: Mapping[str, bytes], subject: str, *, secrets: bool, child: ModuleChild | None = None
    ) -> list[Diagnostic]:
        """The findings of the built-in scanners. If they fail, a finding about `subject` says so, and each file is
        scanned alone within the same time again, so that one slow file does not hide the findings in another."""
        seconds = self._seconds + PER_MIB * (sum(map(len, files.values())) // 1024**2)
        child = child or self._child
        try:
            return _asked(child, files, subject, secrets=secrets, seconds=seconds)
        except _BROKEN as error:
            found = [_failed("the content scanner", str(error), subject)]
        end = time.monotonic() + seconds
        for path, data in files.items() if len(files) > 1 else ():
            left = int(end - time.monotonic())
            if left < 1 or self._closing:
                break
            with suppress(*_BROKEN):
                own = min(left, max(seconds // EACH, 1))
                found += _asked(child, {path: data}, subject, secrets=secrets, seconds=own)
        return found

    def start(self) -> None:
        """Starts the process of the built-in scanners, so that it is ready when it is needed."""
        self._child.start()

    def close(self) -> None:
        """Ends all processes and threads of the scanners."""
        children = (self._child, *self._others)
        if self._pool is not None:
            self._closing = True
            self._pool.shutdown(wait=False, cancel_futures=True)
            while not all(begun.done() for _, begun in self._begun.values()):
                for child in children:
                    child.kill()
                time.sleep(WAIT)
            self._pool.shutdown()
            self._pool, self._closing = None, False
        self._begun = {}
        for child in children:
            child.close()


def _asked(
    child: ModuleChild, files: Mapping[str, bytes], subject: str, *, secrets: bool, seconds: int
) -> list[Diagnostic]:
    return _told(child.ask({"files": dict(files), "secrets": secrets}, seconds=seconds), subject)


def _of_others() -> bool:
    """Whether a plugin of another package is installed; this project's own have no scanner."""
    return any(plugin.package != PACKAGE for plugin in installed_plugins())


def _plugins(files: Mapping[str, bytes], skill: str) -> list[Diagnostic] | None:
    """The findings of plugins' scanners, or None if there are none."""
    try:
        told = call_module(PLUGINS, dict(files), seconds=SECONDS, memory=MEMORY)
        found = _told(told, skill)
        return found if told["scanners"] else None
    except _BROKEN as error:
        return [_failed("the scanners of plugins", str(error), skill)]


def plugin_failures(files: Mapping[str, bytes]) -> Sequence[tuple[str, str]]:
    """`(plugin, error)` of each scanner of a plugin that fails with these files."""
    try:
        failures = call_module(PLUGINS, dict(files), seconds=SECONDS, memory=MEMORY)["failures"]
        return [(str(who), str(why)) for who, why in failures]
    except _BROKEN as error:
        return [("the scanners of plugins", str(error))]


def _told(answer: Mapping[str, Any], subject: str) -> list[Diagnostic]:
    found = [_read(item) for item in answer["findings"]]
    return [*found, *(_failed(who, why, subject) for who, why in answer["failures"])]


def _read(item: Mapping[str, Any]) -> Diagnostic:
    """A finding as the plugin reported it; its text must be cleaned before it is shown."""
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
