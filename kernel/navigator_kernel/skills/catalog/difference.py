"""The unified diff between an installed skill and its update."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.processes.line_diff import unified
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.catalog.digest import folder_files
from navigator_kernel.text import clean
from navigator_kernel.values.receipt import FILE_LIMIT

LONGEST = 200_000  # characters of the difference of one skill
FILE = 500_000  # bytes of a file that is compared line by line


def difference(folder: Path, contents: Mapping[str, bytes]) -> str:
    """The diff from the files in `folder` to `contents`; if it is longer than `LONGEST`, it is cut at a line."""
    here = {path: folder / path for path in _paths(folder)}
    lines: list[str] = []
    left = LONGEST
    for path in sorted({*here, *contents}):
        before = _read(here[path]) if path in here else None
        for line in _of_file(path, before, contents.get(path)):
            left -= len(line) + 1
            if left < 0:
                return "\n".join([*lines, "… the rest is not shown"])
            lines.append(line)
    return "\n".join(lines)


def _paths(folder: Path) -> list[str]:
    with suppress(KernelError):
        return [file.path for file in folder_files(folder)]
    return []


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, FILE_LIMIT)
    except (KernelError, OSError):
        return b"\0"  # shown as a file without lines


def _of_file(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    if before == after:
        return
    if any(b"\0" in data or len(data) > FILE for data in (before or b"", after or b"")):
        name = clean(path, lines=False)
        yield f"--- {f'a/{name}' if before is not None else '/dev/null'}"
        yield f"+++ {f'b/{name}' if after is not None else '/dev/null'}"
        yield "@@ the contents differ @@"
        return
    yield from unified(path, before, after).removesuffix("\n").split("\n")
