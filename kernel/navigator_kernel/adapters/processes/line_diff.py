"""Compares two texts line by line with git, in a process with a time limit. A line ends at `\\n`, as in editors."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.text import escape_controls

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.changes import FileChange

SECONDS = 5.0  # until git is killed
CONTEXT = 3  # lines around a change
_NONE, _PIPE = subprocess.DEVNULL, subprocess.PIPE
_NO_END = b"\\ No newline at end of file"
_OPTIONS = f"--text --no-ext-diff --no-textconv --no-color --no-renames --diff-algorithm=myers --unified={CONTEXT}"
_ENVIRONMENT = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_DIR": os.devnull,  # a repository around the temporary folder has no say
}


async def unified_aside(name: str, before: bytes | None, after: bytes | None) -> str:
    """The same as `unified`, in a thread; if the caller is cancelled, git is killed."""
    processes: list[subprocess.Popen[bytes]] = []
    is_stopped = False

    def started(process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        if is_stopped:  # before the thread had it
            process.kill()

    try:
        return await asyncio.to_thread(unified, name, before, after, started)
    except asyncio.CancelledError:
        is_stopped = True
        for process in processes:
            process.kill()
        raise


def unified(
    name: str,
    before: bytes | None,
    after: bytes | None,
    started: Callable[[subprocess.Popen[bytes]], object] = lambda _process: None,
) -> str:
    """The whole change of the file `name` as a unified diff, empty if there is none; None is a file that is not there.
    Bytes that are not UTF-8 are written as `\\xe9`. Without git, or if it takes too long or is killed, all lines
    between the first and the last difference are shown as removed and added. `started` gets git's process."""
    if before == after:
        return ""
    shown = escape_controls(name)
    head = [
        f"--- {'/dev/null' if before is None else f'a/{shown}'}",
        f"+++ {'/dev/null' if after is None else f'b/{shown}'}",
    ]
    one, other = before or b"", after or b""
    lines = [] if one == other else _by_git(one, other, started) or _replaced(one, other)
    return "\n".join((*head, b"\n".join((*lines, b"")).decode("utf-8", "backslashreplace")))


def diff_of(made: FileChange) -> str:
    """The change as a unified diff; of a delivered file that is large or not text, its sizes and its digest."""
    no_text = b"\0" in made.after or b"\0" in (made.before or b"")
    if not made.source or not (made.is_large or no_text):
        return unified(made.path, made.before, made.after)
    path = escape_controls(made.path)
    old = "/dev/null" if made.before is None else f"a/{path}"
    was = "" if made.before is None or made.is_large else f"{len(made.before):,} -> "
    return f"--- {old}\n+++ b/{path}\n(not shown as lines: {was}{made.size:,} bytes, sha256 {made.digests[1]})\n"


def _by_git(before: bytes, after: bytes, started: Callable[[subprocess.Popen[bytes]], object]) -> list[bytes] | None:
    """The lines of the hunks; None if git did not make them."""
    with tempfile.TemporaryDirectory(prefix="navigator-") as folder:
        for name, data in (("a", before), ("b", after)):
            (Path(folder) / name).write_bytes(data)
        argv = ["git", "--no-pager", "diff", "--no-index", *_OPTIONS.split(), "--", "a", "b"]
        env = {**_ENVIRONMENT, "PATH": os.environ.get("PATH", os.defpath), "HOME": folder, "XDG_CONFIG_HOME": folder}
        try:
            with subprocess.Popen(argv, cwd=folder, env=env, stdin=_NONE, stdout=_PIPE, stderr=_NONE) as git:
                started(git)
                try:
                    printed, _ = git.communicate(timeout=SECONDS)
                except subprocess.TimeoutExpired:
                    git.kill()
                    return None
        except OSError:
            return None
    lines = printed.removesuffix(b"\n").split(b"\n")
    first = next((at for at, line in enumerate(lines) if line.startswith(b"@@")), None)
    if git.returncode != 1 or first is None:
        return None
    return [line[: line.index(b"@@", 2) + 2] if line.startswith(b"@@") else line for line in lines[first:]]


def _replaced(before: bytes, after: bytes) -> list[bytes]:
    """One hunk with all lines between the first and the last difference; its time grows with the length only."""
    old, new = _lines(before), _lines(after)
    same = same_start(old, new)
    last = same_start(old[same:][::-1], new[same:][::-1])
    first, tail = max(same - CONTEXT, 0), min(last, CONTEXT)
    counts = [len(lines) - last + tail - first for lines in (old, new)]
    at = [first + 1 if count else first for count in counts]
    end = len(old) - last
    return [
        f"@@ -{at[0]},{counts[0]} +{at[1]},{counts[1]} @@".encode(),
        *_signed(b" ", old[first:same]),
        *_signed(b"-", old[same:end]),
        *_signed(b"+", new[same : len(new) - last]),
        *_signed(b" ", old[end : end + tail]),
    ]


def same_start(before: Sequence[object], after: Sequence[object]) -> int:
    """How many items at the beginning are the same."""
    pairs = zip(before, after, strict=False)
    return next((at for at, (first, right) in enumerate(pairs) if first != right), min(len(before), len(after)))


def _signed(sign: bytes, lines: Sequence[bytes]) -> list[bytes]:
    signed = [sign + line.removesuffix(b"\n") for line in lines]
    return signed if not lines or lines[-1].endswith(b"\n") else [*signed, _NO_END]


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    return [*lines[:-1], *filter(None, [lines[-1][:-1]])]
