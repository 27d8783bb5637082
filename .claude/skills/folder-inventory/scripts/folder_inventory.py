"""Lists what a folder holds, by type, size, age and equal content, as one JSON object."""

import argparse
import hashlib
import json
import os
import re
import stat
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from heapq import nsmallest
from pathlib import Path, PurePath

ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
LEFT_OUT = frozenset({".git", ".hg", ".svn"})  # their files are the tool's own
LISTED = 10  # largest, newest, and groups of duplicates in the answer
TYPES = 50  # kinds of files in the answer
SAME = 10  # files of one group of duplicates that are named
HEAD = 65_536  # bytes that are compared before a whole file is read
READ_LIMIT = 4 * 2**30  # bytes that are read to compare files; a group beyond it is counted as not compared


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """One regular file. `node` is what hard links share."""

    path: str
    size: int
    changed: float
    node: tuple[int, int]


@dataclass
class Found:
    """What was met on the way."""

    files: list[File] = field(default_factory=list)
    folders: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def inventory(written: str) -> dict[str, object]:
    """`{summary, files, bytes, types, largest, newest, duplicates, …}` of a folder; times are UTC, sizes bytes."""
    folder = place(written)
    found = walk(folder)
    total = sum(file.size for file in found.files)
    groups, not_compared = duplicates(found.files)
    spare = sum(map(spare_bytes, groups))
    kinds = by_type(found.files)
    told = f"{len(found.files)} files in {found.folders} folders, {readable(total)}"
    return {
        "summary": told + (f", {readable(spare)} of it copies" if spare else ""),
        "folder": plain(written),
        "files": len(found.files),
        "folders": found.folders,
        "bytes": total,
        "empty": sum(not file.size for file in found.files),
        "types": kinds[:TYPES],
        "type_count": len(kinds),
        "largest": [shown(file, folder) for file in nsmallest(LISTED, found.files, key=by_size)],
        "newest": [shown(file, folder) for file in nsmallest(LISTED, found.files, key=by_age)],
        "duplicates": [shown_group(group, folder) for group in groups[:LISTED]],
        "duplicate_groups": len(groups),
        "duplicate_bytes": spare,
        "not_compared": not_compared,
        "skipped": dict(sorted(found.skipped.items())),
    }


def walk(folder: Path) -> Found:
    """Every regular file below `folder`; links are counted and not followed."""
    found = Found()
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            found.skipped["unreadable"] += 1
            continue
        found.folders += here != folder
        for entry in entries:
            if entry.is_dir(follow_symlinks=False) and is_left_out(Path(entry.path)):
                found.skipped["folders"] += 1
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(Path(entry.path))
            else:
                note(entry, found)
    return found


def is_left_out(folder: Path) -> bool:
    """Version control, and the kernel's own run folders, which this very run writes to."""
    return folder.name in LEFT_OUT or (folder.name == "mybox" and folder in Path.cwd().parents)


def note(entry: os.DirEntry[str], found: Found) -> None:
    """Adds one entry that is no folder."""
    try:
        held = entry.stat(follow_symlinks=False)
    except OSError:
        found.skipped["unreadable"] += 1
        return
    if stat.S_ISREG(held.st_mode):
        node = (held.st_dev, held.st_ino)
        found.files.append(File(path=entry.path, size=held.st_size, changed=held.st_mtime, node=node))
    else:
        found.skipped["links" if stat.S_ISLNK(held.st_mode) else "special"] += 1


def by_type(files: Sequence[File]) -> list[dict[str, object]]:
    """`{type, files, bytes}` with most bytes first; a type is the lower-case ending of a name."""
    count: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for file in files:
        ending = plain(PurePath(file.path).suffix.lower()) or "none"
        count[ending] += 1
        size[ending] += file.size
    ranked = sorted(count, key=lambda ending: (-size[ending], -count[ending], ending))
    return [{"type": ending, "files": count[ending], "bytes": size[ending]} for ending in ranked]


def duplicates(files: Sequence[File]) -> tuple[list[list[File]], int]:
    """Groups of files with the same bytes, most spare bytes first, and how many files were too much to compare.

    Hard links to one file are one file; empty files are no copies of each other.
    """
    once = {file.node: file for file in sorted(files, key=by_name, reverse=True) if file.size}
    groups: list[list[File]] = []
    left, not_compared = READ_LIMIT, 0
    for sized in sorted(grouped(once.values(), lambda file: file.size), key=lambda group: group[0].size):
        for alike in grouped(sized, lambda file: digest(file.path, HEAD)):
            if alike[0].size <= HEAD:
                groups.append(alike)
                continue
            left -= alike[0].size * len(alike)
            if left < 0:
                not_compared += len(alike)
            else:
                groups += grouped(alike, lambda file: digest(file.path, sys.maxsize))
    return sorted(groups, key=lambda group: (-spare_bytes(group), by_name(group[0]))), not_compared


def grouped(files: Iterable[File], key: Callable[[File], object]) -> list[list[File]]:
    """The groups of at least two files with the same key, in the order of names; a key of None is nobody's."""
    found: defaultdict[object, list[File]] = defaultdict(list)
    for file in files:
        found[key(file)].append(file)
    return [sorted(group, key=by_name) for held, group in found.items() if held is not None and len(group) > 1]


def digest(path: str, limit: int) -> bytes | None:
    """What the first `limit` bytes hash to; None where the file cannot be read any more."""
    held = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while limit > 0 and (piece := file.read(min(limit, HEAD))):
                held.update(piece)
                limit -= len(piece)
    except OSError:
        return None
    return held.digest()


def spare_bytes(group: Sequence[File]) -> int:
    return group[0].size * (len(group) - 1)


def by_name(file: File) -> str:
    return file.path


def by_size(file: File) -> tuple[int, str]:
    return -file.size, by_name(file)


def by_age(file: File) -> tuple[float, str]:
    return -file.changed, by_name(file)


def shown(file: File, folder: Path) -> dict[str, object]:
    return {"file": named(file, folder), "bytes": file.size, "changed": when(file.changed)}


def shown_group(group: Sequence[File], folder: Path) -> dict[str, object]:
    files = [named(file, folder) for file in group[:SAME]]
    return {"bytes": group[0].size, "count": len(group), "files": files}


def named(file: File, folder: Path) -> str:
    return plain(PurePath(file.path).relative_to(folder).as_posix())


def when(seconds: float) -> str | None:
    """ISO 8601 in UTC; None for a time that no calendar has."""
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return None


def readable(size: float) -> str:
    """`size` bytes as people say it."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def place(written: str) -> Path:
    """The folder that is meant: a relative path starts at the project that the run's own folder lies in."""
    run = Path.cwd()
    project = run.parents[2] if run.parts[-3:-1] == ("mybox", "workspace") else run
    found = Path(os.path.realpath(project / written))
    if not found.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(f"{written!r} leads out of the project")
    if not found.is_dir():
        raise SystemExit(f"there is no folder {written!r}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="the folder")
    parser.add_argument("word", nargs="?", metavar="folder", help="the same, as a word; without either the project")
    given = parser.parse_args()
    try:
        found = inventory(given.folder or given.word or ".")
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
