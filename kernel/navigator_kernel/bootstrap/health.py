"""Checks for missing and damaged parts: `navigator doctor`, and the worker's `run doctor`."""

from __future__ import annotations

import json
import platform
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from navigator_kernel.bootstrap.parts import open_catalogue, open_sandbox
from navigator_kernel.errors import KernelError, UsageProblem

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.ports import Kernel

# Extras, a module of each, and the effect of its absence
_EXTRAS = (
    ("llm", "pydantic_ai", "not installed; no model can be asked"),
    ("mcp", "mcp", "not installed"),
    ("planner", "sqlalchemy", "not installed; tasks and notes cannot be kept"),
)


_MARKS = {"damaged": "!!", "missing": "--", "note": "..", "ok": "ok"}


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check. A `note` is about the text of a skill, which works anyway."""

    what: str
    state: Literal["ok", "note", "missing", "damaged"]
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"what": self.what, "state": self.state, "detail": self.detail, "remedy": self.remedy}


def findings(root: Path, settings: Callable[[], Settings], kernel: Callable[[], Kernel]) -> Iterator[Finding]:
    """Yields a finding for each check; an unreadable file is a finding, not an error."""
    version = platform.python_version()
    yield Finding(what="python", state="ok" if sys.version_info >= (3, 11) else "damaged", detail=version)
    system = platform.system()
    remedy = (
        "" if system == "Linux" else "processes are contained on Linux only; skills with a command may not run here"
    )
    yield Finding(what="system", state="ok" if system == "Linux" else "missing", detail=system, remedy=remedy)
    yield _sandbox()
    git = shutil.which("git")
    yield Finding(
        what="git",
        state="ok" if git else "missing",
        detail=git or "not found",
        remedy="" if git else "apt-get install git",
    )
    for extra, module, without in _EXTRAS:
        there = find_spec(module) is not None
        yield Finding(
            what=f"extra {extra}",
            state="ok" if there else "missing",
            detail="installed" if there else without,
            remedy="" if there else f"pip install 'navigator-kernel[{extra}]'",
        )
    yield _tried("settings", lambda: f"{len(settings().origins)} settings", "navigator config path names the files")
    yield _tried("model", lambda: settings().models.default or "none is set", "navigator model list names them")
    yield _tried("encoder", lambda: _encoder(settings()), "navigator config list names the settings")
    yield from _skills(root)
    yield _tried("trust", _trust, "remove the file; you will be asked for trust again")
    yield _tried("plugins", lambda: _plugins(kernel()), "navigator plugin list names them")


def _encoder(settings: Settings) -> str:
    from navigator_kernel.adapters.index.use_encoder import check

    if settings.encoder == "off":
        return "switched off; messages are matched by words only"
    try:
        check()
    except KernelError as error:
        raise type(error)(f"{error.message}; messages are matched by words only", hint=error.hint) from error
    return "messages are matched by words and meaning"


def shown(found: Sequence[Finding], *, every: bool = False) -> list[str]:
    """The lines that a person reads: damaged and missing parts, the number of skills with each note, and the counts; or
    `every` finding."""
    lines: list[str] = []
    for one in sorted(found, key=lambda one: list(_MARKS).index(one.state)):
        if every or one.state in {"damaged", "missing"}:
            lines += [f"{_MARKS[one.state]}  {one.what}: {one.detail}", *([f"    {one.remedy}"] if one.remedy else [])]
    notes = Counter(one.what for one in found if one.state == "note")
    if notes and not every:
        lines += [f"{_MARKS['note']}  {what}: {n} {'skill' if n == 1 else 'skills'}" for what, n in notes.most_common()]
        lines.append("    navigator doctor -v names them")
    counts = {state: sum(one.state == state for one in found) for state in _MARKS}
    named = {**{state: state for state in counts}, "note": "note" if counts["note"] == 1 else "notes"}
    return [*lines, ", ".join(f"{count} {named[state]}" for state, count in counts.items())]


def answered(
    root: Path, settings: Callable[[], Settings], kernel: Callable[[], Kernel], args: Sequence[str]
) -> tuple[int, str]:
    """The exit code and the text of `navigator doctor [--json]`, for the worker. UsageProblem for `--repair`, which
    only a person types."""
    if unknown := [word for word in args if word != "--json"]:
        raise UsageProblem(f"doctor has no option {unknown[0]!r} here", hint="use the command line for it")
    found = list(findings(root, settings, kernel))
    code = 1 if any(one.state == "damaged" for one in found) else 0
    if not args:
        return code, "\n".join(shown(found))

    return code, json.dumps({"findings": [one.to_dict() for one in found], "exit_code": code}, ensure_ascii=False)


def _sandbox() -> Finding:
    from navigator_kernel.sandbox.contain import REMEDIES

    rung = open_sandbox().rung()
    if rung is None:
        remedy = "; ".join(REMEDIES)
        return Finding(what="sandbox", state="missing", detail="skills with a command do not run", remedy=remedy)
    better = "" if rung.name == "bubblewrap" else "apt-get install bubblewrap"
    return Finding(what="sandbox", state="ok", detail=rung.name, remedy=better)


def _skills(root: Path) -> Iterator[Finding]:
    from navigator_kernel.bootstrap.lifecycle import open_lifecycle

    catalogue = open_catalogue(root)
    yield _tried("skills", lambda: f"{len(catalogue.list_resources())} resources", "fix the named file")
    try:
        notes = catalogue.diagnostics()
    except KernelError:
        notes = ()
    for note in notes:
        state: Literal["damaged", "note"] = "damaged" if note.level == "error" else "note"
        yield Finding(what=f"manifest {note.code}", state=state, detail=f"{note.path}: {note.message}")
    lifecycle = open_lifecycle(root)
    yield _tried(
        "records",
        lambda: f"{lifecycle.perform('check', {})['count']} installed skills recorded",
        "navigator doctor --repair",
    )
    yield _tried(
        "receipts",
        lambda: f"{lifecycle.perform('verify', {})['count']} skills as installed",
        "navigator skill verify names the files",
    )


def _trust() -> str:
    from navigator_kernel.bootstrap.consents import open_consents

    return f"{len(open_consents().subjects())} subjects trusted"


def _plugins(kernel: Kernel) -> str:
    failures = kernel.failures()
    if failures:
        raise KernelError(
            "; ".join(f"{failure['plugin']} in {failure['hook']}: {failure['error']}" for failure in failures)
        )
    return f"{len({agent.name for agent in kernel.agents.values()})} agents"


def _tried(what: str, look: Callable[[], str], remedy: str) -> Finding:
    try:
        return Finding(what=what, state="ok", detail=look())
    except KernelError as error:
        return Finding(what=what, state="damaged", detail=error.message, remedy=error.hint or remedy)
