"""Runs a command that changes skills under strace, and makes it die or fail at one chosen system call.

A dry run lists the calls that touch the project, each with its number among the calls of its name; a later run of the
same command from the same state is then hit at exactly one of them. Only the command's own process is traced: the git
processes that it starts only read, and their results come back through it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from cli.support import LIMIT, MODULE, Done, Place, environment
from navigator_kernel.skills.install.apply import INTENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CALLS = "write,pwrite64,rename,renameat,renameat2,fsync,fdatasync,unlink,unlinkat,symlink,symlinkat,mkdir,mkdirat,rmdir,openat"
KILLED = (137, -9)
# A kill comes before the call is done. A failing disk fails once; a full disk stays full.
FAULTS: Mapping[str, str] = {
    "kill": "signal=SIGKILL:when={}",
    "EIO": "error=EIO:when={}",
    "ENOSPC": "error=ENOSPC:when={}+",
}
_LINE = re.compile(r"(\w+)\((.*)")
_TIME = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:?\d\d:?\d\d[.]?\d*Z")
_STAGED = re.compile(re.escape(INTENT) + r"|change-[0-9a-f]{16}|\.navigator-.*-[0-9a-f]{16}\.tmp")
_RANDOM = re.compile(
    r"\.gone-[0-9a-f]{16}|change-[0-9a-f]{16}|(?<=-)[0-9a-f]{16}(?=\.tmp)|\d{4}-\d\d-\d\dT\w+|(?<=[/.])[0-9a-f]{32}(?=[/.]|$)"
)

State = dict[str, tuple[int, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The `at`-th call of its name, from 1; `what` describes it without the parts that differ between runs."""

    call: str
    at: int
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command and its project. `words` is the command, `closer` another one that may write but changes nothing in a
    sound project; `after` is the project once it is done, `verdict` the exit code of `verify` before."""

    name: str
    place: Place
    words: Sequence[str]
    closer: Sequence[str]
    after: Place
    verdict: int

    def copied(self, to: Path) -> Place:
        """Copies the project as it is before the command."""
        shutil.copytree(self.place.root, to, symlinks=True)
        return Place(root=to)


def need_strace() -> None:
    """Skips without strace and any way to get it; a Debian machine has the package."""
    if shutil.which("strace") is None:
        if shutil.which("apt-get") is None:
            pytest.skip("neither strace nor apt-get is here, so no system call can be made to fail")
        pytest.fail("strace is missing: apt-get install strace")


def case_of(name: str, place: Place, words: Sequence[str], closer: Sequence[str]) -> Case:
    """The case, with the command done once in a copy. Fetched data stays in the home, so no run asks the source."""
    verdict = place.run("skill", "verify").code
    after = Place(root=place.root.with_name(f"{name}-after"))
    shutil.copytree(place.root, after.root, symlinks=True)
    after.said(*words)
    return Case(name=name, place=place, words=[*words, *_offline(words)], closer=closer, after=after, verdict=verdict)


def state_of(root: Path) -> State:
    """Every file and link of the project with its mode and bytes, without times; and every folder among the skills.
    Staged files, the lock between processes and fetched data are left out."""
    found: State = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if name.startswith("mybox") or name.endswith(".navigator/lock") or any(map(_STAGED.fullmatch, path.parts)):
            continue
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[name] = mode, os.fsencode(path.readlink())
        elif path.is_file():
            found[_TIME.sub(b"T", name.encode()).decode()] = mode, _TIME.sub(b"T", path.read_bytes())
        elif name.startswith(".claude/skills/") and ".navigator" not in path.parts:
            found[f"{name}/"] = mode, b""
    return found


def staged(root: Path) -> list[str]:
    """The leftovers of an interrupted change."""
    found = [path.relative_to(root).as_posix() for path in root.rglob("*") if _STAGED.fullmatch(path.name)]
    return sorted(name for name in found if not name.startswith("mybox/"))


def points_of(case: Case, tmp_path: Path) -> list[Point]:
    """Each call of the command that creates, writes, renames, removes or syncs something in the project."""
    root = case.copied(tmp_path / "dry").root
    done, lines = _traced(case.words, root, tmp_path / "dry.trace", ())
    assert done.code == 0, done.err
    assert state_of(root) == state_of(case.after.root)
    shutil.rmtree(root)
    seen: Counter[str] = Counter()
    points = []
    for line in lines:
        if not (match := _LINE.match(line)):
            continue
        call = match[1]
        seen[call] += 1
        made = "O_CREAT" in line or "O_TRUNC" in line if call == "openat" else True
        if made and str(root) in line:
            points.append(Point(call=call, at=seen[call], what=_told(line, root)))
    return points


def hit(case: Case, point: Point, fault: str, tmp_path: Path) -> tuple[Place, Done]:
    """Hits the command at `point`; returns the project after that, and how the command ended."""
    place = case.copied(tmp_path / f"{fault}-{point.call}-{point.at}")
    inject = f"inject={point.call}:{FAULTS[fault].format(point.at)}"
    done, lines = _traced(case.words, place.root, tmp_path / f"{place.root.name}.trace", ("-e", inject))
    calls = [line for line in lines if line.startswith(f"{point.call}(")]
    assert len(calls) >= point.at, f"the command no longer comes to {point}"
    assert (met := _told(calls[point.at - 1], place.root)) == point.what, f"it comes to {met!r} there"
    return place, done


def complaints(case: Case, point: Point, fault: str, tmp_path: Path) -> list[str]:
    """The problems after the command was hit at `point`; none if all is as before or all is done."""
    place, done = hit(case, point, fault, tmp_path)
    try:
        wrong = _ending(case, place, done, fault)
        wrong += _read(case, place) + _settled(case, place, done, fault) + _closed(case, place)
    finally:
        shutil.rmtree(place.root)
    return [f"{case.name}: {fault} at {point.call} {point.at}, {point.what}: {text}" for text in wrong]


def _ending(case: Case, place: Place, done: Done, fault: str) -> list[str]:
    if fault == "kill":
        return [] if done.code in KILLED else [f"ended with {done.code}, not killed"]
    wrong = [f"a traceback: {done.err[-300:]}"] if "Traceback" in done.out + done.err else []
    mute = (
        {120} if fault == "ENOSPC" else set[int]()
    )  # Python's own exit code if nothing can be written, not even to stderr
    wrong += [f"a strange exit code {done.code}"] if done.code not in {*range(11), *mute} else []
    if fault == "EIO" and not _is_one_of(place, (case.place, case.after)) and not staged(place.root):
        wrong += ["between, and nothing says how to go on"]
    return wrong


def _read(case: Case, place: Place) -> list[str]:
    """The problems that the readers find, each in its own process."""
    listed, verified = (place.run("skill", verb, "--json") for verb in ("list", "verify"))
    expected = case.verdict if _is_one_of(place, (case.place,)) else 0
    wrong = [f"list ends with {listed.code}: {listed.err or listed.out}"[:400]] if listed.code else []
    if verified.code != expected:
        wrong += [f"verify ends with {verified.code}: {verified.err or verified.out}"[:400]]
    return wrong


def _settled(case: Case, place: Place, done: Done, fault: str) -> list[str]:
    if not _is_one_of(place, (case.place, case.after)):
        return [f"between: {_difference(place, case.place)} and {_difference(place, case.after)}"]
    if fault != "kill" and done.code == 0 and not _is_one_of(place, (case.after,)):
        return ["it says that it is done, and it is not"]
    return []


def _closed(case: Case, place: Place) -> list[str]:
    done = place.run(*case.closer)
    wrong = [f"the next command ends with {done.code}: {done.err}"[:400]] if done.code else []
    return wrong + ([f"left lying: {staged(place.root)}"] if staged(place.root) else [])


def _is_one_of(place: Place, others: Sequence[Place]) -> bool:
    held = state_of(place.root)
    return any(held == state_of(other.root) for other in others)


def _difference(one: Place, other: Place) -> list[str]:
    first, second = state_of(one.root), state_of(other.root)
    return sorted(name for name in first.keys() | second.keys() if first.get(name) != second.get(name))


def _traced(words: Sequence[str], root: Path, trace: Path, more: Sequence[str]) -> tuple[Done, list[str]]:
    """How the command ended under strace, and its calls. Each run has a new folder for the person's state."""
    program = ["strace", "-y", "-o", str(trace), "-e", f"trace={CALLS}", *more, *MODULE, *words]
    own = environment({"XDG_STATE_HOME": str(trace.with_suffix(".state"))})
    done = subprocess.run(program, cwd=root, env=own, capture_output=True, timeout=LIMIT)
    lines = trace.read_text(encoding="utf-8", errors="replace").splitlines()
    trace.unlink()
    shutil.rmtree(trace.with_suffix(".state"), ignore_errors=True)
    text = [stream.decode("utf-8", "replace") for stream in (done.stdout, done.stderr)]
    return Done(code=done.returncode, out=text[0], err=text[1]), lines


def _told(line: str, root: Path) -> str:
    """The call and its paths, without the result and the order in which files of a folder are removed."""
    match = _LINE.match(line)
    assert match, line
    words = match[2].rpartition(" = ")[0]
    if match[1].endswith(("at", "at2")):  # a name relative to an open folder
        words = re.sub(r'\d+<([^>]*)>, "([^/"][^"]*)"', r'"\1/\2"', words)
    paths = re.findall(rf"{re.escape(str(root))}[^>\"]*", words)
    return f"{match[1]} {' '.join(_RANDOM.sub('*', path.removeprefix(str(root))) or '/' for path in paths)}"


def _offline(words: Sequence[str]) -> list[str]:
    return ["--offline"] if words[1] in {"install", "update", "rollback"} else []
