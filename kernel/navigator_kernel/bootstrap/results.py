"""The results of runs: the files that skills made in their workspaces, and which of them are in the project."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.adapters.files.changes import Sized, sealed
from navigator_kernel.adapters.files.tree import listed, read_inside
from navigator_kernel.errors import KernelError, NotFound, Refused, UsageProblem
from navigator_kernel.text import escape_controls, lazy_compile
from navigator_kernel.values.packet import DISARMED

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project

NEWEST = 5  # runs that are listed if none is named
# The kernel's own files in a workspace: records of steps, long outputs, web pages and answers of servers
_OWN = lazy_compile(r"(?:step|handover)-\d+\.json|output-[0-9a-f]{8}\.txt|page-[0-9a-f]{8}\.\w+|mcp-.+-\d+\.json")
_ATTACHED = "attached-"  # folders of files that a person attached to a message


Delivered = tuple[str, str, int]  # the path in the project, the digest and the size


class RunResult(Struct, frozen=True, kw_only=True):
    """A file that a run made: `path` from its workspace, `size` in bytes (-1 if it is gone and nothing says it),
    `delivered` its path in the project, or "". `is_disarmed` says that it was renamed, because other programs would
    run or obey it."""

    run: str
    path: str
    size: int
    kind: str
    at: str
    delivered: str
    is_there: bool

    @property
    def is_disarmed(self) -> bool:
        return DISARMED in self.path


def runs_with_results(project: Project) -> tuple[str, ...]:
    """The newest runs whose workspaces hold results, newest first."""
    workspaces: list[Path] = []
    with suppress(OSError):
        every = (project.box / "workspace").iterdir()
        workspaces = [path for path in every if path.is_dir() and not path.is_symlink()]
    runs: list[str] = []
    for path in sorted(workspaces, key=lambda path: path.stat().st_mtime, reverse=True):
        if len(runs) < NEWEST and not path.name.startswith(_ATTACHED) and _results(path):
            runs.append(path.name)
    return tuple(runs)


def results_of(project: Project, run: str) -> tuple[RunResult, ...]:
    """The results of a run, also those that were removed since; the disarmed ones last. A run that goes on with the
    work of another has its workspace. NotFound for an unknown run."""
    from navigator_kernel.tools.delivering import HEAD, kind_of

    folder = _folder(project, run)
    there, delivered = _results(folder), _delivered(project, folder.name)
    gone = sorted({*_recorded(project, run, folder), *delivered} - there.keys())
    if not there and not gone:
        raise NotFound(f"run {run!r} made no files", hint="navigator files lists the newest runs that did")
    results = []
    for path in (*there, *gone):
        to, _, size = delivered.get(path, ("", "", -1))
        parts, kind, at = path.split("/"), "", ""
        if path in there:
            size = there[path][1]
            with suppress(KernelError, OSError, ValueError):
                kind = kind_of(parts[-1], read_inside(folder, parts, HEAD))
                at = datetime.fromtimestamp((folder / path).lstat().st_mtime, UTC).isoformat(timespec="seconds")
        result = RunResult(
            run=run,
            path=path,
            size=size,
            kind=kind if at else "",
            at=at,
            delivered=to,
            is_there=path in there,
        )
        results.append(result)
    return tuple(sorted(results, key=lambda one: (not one.is_there, one.is_disarmed, one.path)))


def copy_result(project: Project, run: str, name: str, to: str, *, force: bool = False) -> str:
    """Copies a file of a run to the path `to`, which begins at the current folder, and returns the path in the project;
    by the person's own hand, so that nothing is asked. UsageProblem if a file is there already, unless `force`."""
    from navigator_kernel.tools.delivering import place_in_project

    place = place_in_project(project.root.resolve(), f"{Path.cwd()}/{to}" if not Path(to).is_absolute() else to, name)
    if os.path.lexists(place.path) and not force:
        hint = "choose another name, or add --force; navigator undo puts the earlier file back"
        raise UsageProblem(f"{'/'.join(place.parts)!r} exists already", hint=hint)
    source = sealed(_folder(project, run).resolve(), tuple(name.split("/")))
    try:
        now: Sized | None = sealed(place.root, place.parts)
    except NotFound:
        now = None
    project.copy_in(run, source, place, now)
    return "/".join(place.parts)


def holds_results(project: Project, folder: Path) -> bool:
    """Whether a workspace holds a result that is not in the project as well."""
    if folder.is_symlink() or not folder.is_dir() or folder.name.startswith(_ATTACHED):
        return False
    found = _results(folder)
    known = _delivered(project, folder.name) if found else {}
    return any(not (path in known and _digest(folder, path) == known[path][1]) for path in found)


def _folder(project: Project, run: str) -> Path:
    if run in {"", ".", ".."} or "/" in run or "\0" in run:
        raise Refused(
            f"{escape_controls(run)!r} is not the name of a run", hint="navigator files lists the newest runs"
        )
    own = project.box / "workspace" / run
    return own if own.is_dir() else own.with_name(project.run_log.began(run))


def _results(folder: Path) -> Mapping[str, tuple[int, int, int]]:
    """The files with their time, size and inode, without the kernel's own."""
    if folder.is_symlink():
        return {}
    return {path: seen for path, seen in listed(folder).files.items() if not _OWN.fullmatch(path)}


def _delivered(project: Project, run: str) -> dict[str, Delivered]:
    """What was delivered from the workspace of a run, by any run that worked there, and is still in the project."""
    every, begin = project.changes.delivered(), f"{run}/"
    return {
        path.removeprefix(begin): one
        for path, one in every.items()
        if path.startswith(begin) and _digest(project.root.resolve(), one[0]) == one[1]
    }


def _recorded(project: Project, run: str, base: Path) -> Sequence[str]:
    """The paths of files that the record of this project says the run made in its workspace `base`."""
    found = dict[str, None]()
    try:
        entries = project.audit.entries()
    except KernelError:  # navigator log reports the damage
        return ()
    for entry in entries:
        if entry.facts.get("run") not in {run, base.name}:
            continue
        if entry.event == "ended":
            wrote = entry.facts.get("wrote") or ()
            found |= dict.fromkeys(str(one.get("path")) for one in wrote if isinstance(one, Mapping))
        elif entry.event == "wrote":
            path = project.root.resolve() / str(entry.facts.get("path", ""))
            if path.is_relative_to(base):
                found[path.relative_to(base).as_posix()] = None
    return tuple(path for path in found if not _OWN.fullmatch(path))


def _digest(folder: Path, path: str) -> str:
    """The digest of a file; "" for one that cannot be read."""
    try:
        return sealed(folder, path.split("/")).digest
    except (KernelError, OSError, ValueError):
        return ""
