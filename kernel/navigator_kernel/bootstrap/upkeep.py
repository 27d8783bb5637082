"""Removes what nobody needs any more: temporary files, remains of killed processes, and old logs and sessions of
single calls. Workflows, other state and the lock are never removed (X-19)."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.adapters.files.scratch import left_scratch
from navigator_kernel.adapters.files.tree import listed, remove_tree
from navigator_kernel.adapters.files.writer import HALF_WRITTEN, FolderWriter
from navigator_kernel.config.settings import user_cache, user_state
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.text import lazy_compile, warn

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project

KEEP_DAYS = 30
DAY, YEAR = 86_400.0, 365 * 86_400.0  # seconds
WRITING = 600.0  # seconds after which nobody is writing a half-written file any more
SESSIONS = 1_000  # sessions of single calls that are kept at most
_AGED = ("logs/runs", "workspace")
_DEEPEST = 3  # levels of folders below which no file is written by way of a temporary one
_LARGE = {"environments", "encoders", ".git"}
_SINGLE = lazy_compile(r"(\w+\.)?openai-\d{8}-\d{9}-[0-9a-f]{6}")  # a session that its client did not name


class Leftover(NamedTuple):
    """`name` is what a person is shown, `path` where it is and `remove` removes it; of a session, which has neither,
    `session` is the id. `at` is its time."""

    name: str
    at: float
    path: Path | None = None
    remove: Callable[[Path], object] | None = None
    session: str = ""


def collect_garbage(
    project: Project, *, days: int = KEEP_DAYS, dry_run: bool = False, results: bool = False
) -> tuple[list[str], list[Leftover], str]:
    """Removes what `leftovers` finds, and returns the names, the workspaces that stay for their results, and its
    sentence; with `dry_run`, only returns them. What cannot be removed is named in a warning and stays."""
    found, kept, sentence = leftovers(project, days, results=results)
    if not dry_run:
        if old := [one.session for one in found if one.session]:
            with suppress(NotFound):  # another process has removed them
                project.sessions.delete(*old)
        stays: list[Leftover] = []
        for one in found:
            problem: object = ""
            try:
                problem = one.remove(one.path) if one.path and one.remove else ""
            except (OSError, KernelError) as error:
                problem = error
            if problem:
                warn("%s was not removed: %s", one.name, problem)
                stays.append(one)
        found = [one for one in found if one not in stays]
    return [one.name for one in found], kept, sentence


def collect_daily(project: Project) -> None:
    """Does the same once a day, in a project that has state; a failure is a warning."""
    note = project.state.folder / "collected"
    try:
        seen = note.stat().st_mtime if note.exists() else 0.0
        if not project.state.folder.is_dir() or abs(time.time() - seen) < DAY:
            return
        project.state_writer.write(note, b"")
        collect_garbage(project)
    except (OSError, KernelError) as error:
        warn("old files were not removed: %s", error)


def leftovers(project: Project, days: int, *, results: bool = False) -> tuple[list[Leftover], list[Leftover], str]:
    """What may be removed, the old workspaces that stay because they hold results that are not in the project (none
    with `results`), and a sentence about what is kept because the clock may be wrong, or "".

    Logs, workspaces and sessions of single calls go by age. A clock that is far ahead must not remove
    everything: where there was nothing for a year, all that is older stays, except with 0 days.
    """
    root, box = project.root, project.box
    inside = FolderWriter([box / "temp", *(box / name for name in _AGED)], within=box.parent)
    remove, remove_tape = (partial(writer.remove, durable=False) for writer in (inside, project.state_writer))
    gone = [_file(path, root, remove) for path in _all(box / "temp")]
    gone += [_file(path, root, remove_tree) for path in left_scratch()]
    tapes = _all(project.state.folder / "tapes")  # written by an earlier version
    gone += [_file(path, root, remove_tape) for path in tapes]
    gone += [_file(path, root, Path.unlink) for top in (user_cache(), user_state(), box) for path in _half_written(top)]
    # Sessions of calls that sent a whole conversation, if they wait for nothing: a client that goes on with one sends
    # all of it again, and gets a new session
    single: list[Leftover] = []
    with suppress(KernelError, ValueError):  # doctor names a damaged file
        if project.sessions.shared is not None or project.sessions.file.exists():
            for row in project.sessions.listed():
                if _SINGLE.fullmatch(row["id"]) and not row["waiting"]:
                    at = datetime.fromisoformat(row["updated"]).timestamp()
                    single.append(Leftover(f"session {row['id']}", at, session=row["id"]))
    dated = [_file(path, root, remove) for name in _AGED for path in _all(box / name)] + single

    now = time.time()
    known = _known_since([one.at for one in dated], now) if days else float("-inf")
    old = [one for one in dated if one.at < now - days * DAY]
    busy: set[str] = set()  # workflow runs that are not over: their workspaces stay, regardless of age
    if old and (project.journal.shared is not None or project.journal.file.exists()):
        busy = {run.token for run in project.journal.listed() if run.state not in {"done", "aborted"}}
    over = [one for one in old if one.at >= known and not (one.path and one.path.name in busy)]
    held = [] if results else [one for one in over if _holds_results(project, one)]
    gone += [one for one in over if one not in held]
    newest_first = sorted(single, key=lambda one: one.at, reverse=True)
    gone += [one for one in newest_first[SESSIONS:] if one not in old]
    kept = [one.at for one in old if one.at < known]
    if not kept:
        return gone, held, ""
    newest = datetime.fromtimestamp(max(kept), UTC).date()
    sentence = (
        f"{len(kept)} old files and sessions are kept: the newest is of {newest}, and nothing followed for a year, so "
        "the clock may be wrong; navigator gc --days 0 removes them"
    )
    return gone, held, sentence


def _holds_results(project: Project, one: Leftover) -> bool:
    from navigator_kernel.bootstrap.results import holds_results  # most projects have no old workspace

    return one.path is not None and one.path.parent == project.box / "workspace" and holds_results(project, one.path)


def size_of(one: Leftover) -> int:
    """Bytes, of a folder with what is in it; 0 for a session."""
    if one.path is None or not one.path.is_dir() or one.path.is_symlink():
        try:
            return one.path.lstat().st_size if one.path else 0
        except OSError:
            return 0
    return sum(size for _, size, _ in listed(one.path, seconds=0.2).files.values())


def _file(path: Path, root: Path, remove: Callable[[Path], object]) -> Leftover:
    shown = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix()
    try:
        at = path.lstat().st_mtime
    except OSError:
        at = time.time()  # another process has removed it
    return Leftover(shown, at, path, remove)


def _half_written(top: Path) -> Iterator[Path]:
    """The temporary files of killed processes below `top`."""
    before = time.time() - WRITING
    for folder, inner, names in os.walk(top):
        here = Path(folder)
        inner[:] = [name for name in inner if name not in _LARGE and len(here.parts) - len(top.parts) < _DEEPEST]
        for path in (here / name for name in names):
            with suppress(OSError):
                if path.match(HALF_WRITTEN) and path.lstat().st_mtime < before:
                    yield path


def _known_since(times: Iterable[float], now: float) -> float:
    """The earliest of `times` from which on something happened at least once a year until now."""
    known = now
    for at in sorted(times, reverse=True):
        if known - at > YEAR:
            break
        known = min(known, at)
    return known


def _all(folder: Path) -> Iterator[Path]:
    try:
        yield from sorted(path for path in folder.iterdir() if path.name != "README.md")
    except (FileNotFoundError, NotADirectoryError):
        return
