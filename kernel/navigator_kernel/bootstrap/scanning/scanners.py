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
        if not self._idle:  # this project's own plugins have no scanner
            self._idle = all(plugin.package == PACKAGE for plugin in installed_plugins())
        if not self._idle:
            try:
                answer = call_module(PLUGINS, dict(files), seconds=SECONDS, memory=MEMORY)
                self._idle = not answer["scanners"]
                found += [] if self._idle else _told(answer, skill.name)
            except _BROKEN as error:
                found.append(_failed("the scanners of plugins", str(error), skill.name))
        return found

    def ahead(self, skills: Sequence[tuple[SkillDef, Mapping[str, bytes]]]) -> None:
        """Starts to scan many skills, in one process per processor, at most `MOST`; a few are scanned on demand."""
        several = min(os.cpu_count() or 1, MOST)
        if several > 1 and len(skills) > FEW and self._pool is None:
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


_EVERY = "every text"  # subject of findings that are not about one text


def suspicions(texts: Sequence[str], *, seconds: int = OWN_SECONDS) -> Sequence[Sequence[str]]:
    """The findings of the content rules for each text that a model would read, such as those of an MCP server's tools,
    worst first. If the rules fail, or take longer than `seconds`, every text has that as a finding."""
    files = {f"{at}/SKILL.md": text.encode("utf-8", "replace") for at, text in enumerate(texts)}
    scanners = Scanners(seconds=seconds)
    try:
        found = scanners.contents(files, _EVERY, secrets=False)
    finally:
        scanners.close()
    worst = sorted(found, key=lambda one: ("error", "warning", "note").index(one.level))
    return [[one.message for one in worst if one.path in (_EVERY, path)] for path in files]


def _asked(
    child: ModuleChild, files: Mapping[str, bytes], subject: str, *, secrets: bool, seconds: int
) -> list[Diagnostic]:
    return _told(child.ask({"files": dict(files), "secrets": secrets}, seconds=seconds), subject)


def plugin_failures(files: Mapping[str, bytes]) -> Sequence[tuple[str, str]]:
    """`(plugin, error)` of each scanner of a plugin that fails with these files."""
    try:
        failures = call_module(PLUGINS, dict(files), seconds=SECONDS, memory=MEMORY)["failures"]
        return [(str(who), str(why)) for who, why in failures]
    except _BROKEN as error:
        return [("the scanners of plugins", str(error))]


def _told(answer: Mapping[str, Any], subject: str) -> list[Diagnostic]:
    """The findings as they were reported; the text of a plugin's must be cleaned before it is shown."""
    found = []
    for item in answer["findings"]:
        message, level, line = str(item["message"]), item["level"], item["line"]
        text = str(item.get("text") or message)
        diagnostic = finding(
            str(item["code"]),
            level if level in ("error", "note") else "warning",
            str(item["path"]),
            message,
            line if isinstance(line, int) and line > 0 else None,
            text,
        )
        digest = str(item.get("digest") or "")
        found.append(replace(diagnostic, text=text, digest=digest) if digest else diagnostic)
    return [*found, *(_failed(who, why, subject) for who, why in answer["failures"])]


def _failed(name: str, error: str, subject: str) -> Diagnostic:
    return finding(NOT_SCANNED, "warning", subject, f"{name}: {error}", None, name)
