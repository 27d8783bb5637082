"""Finds TODO, FIXME, XXX, HACK and 待办 marks in a folder's text files and prints them as one JSON object."""

import argparse
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?:\(([^()\s]{1,40})\))?[:：\s-]*|(待办)(?:事项)?[:：\s-]*")
LEFT_OUT = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__"})
OF_A_MACHINE = ("CACHEDIR.TAG", "pyvenv.cfg")  # a folder with one of them is a cache or a virtual environment
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
LISTED = 200  # marks in the answer; all are counted
LINE = 10_000  # characters of a line that are looked at
TEXT = 200  # characters of a mark's text that are kept
HEAD = 8_192  # bytes that tell a text file from another


@dataclass
class Found:
    """What was met on the way."""

    marks: list[dict[str, object]] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    per_file: Counter[str] = field(default_factory=Counter)
    files: int = 0
    skipped: Counter[str] = field(default_factory=Counter)


def scan(written: str) -> dict[str, object]:
    """`{summary, folder, marks: [{file, line, tag, text}], …}` of a folder, or of one file."""
    target = place(written)
    found = Found()
    base = target.parent if target.is_file() else target
    for path in [target] if target.is_file() else files(target, found.skipped):
        name = plain(path.relative_to(base).as_posix())
        try:
            look(path, name, found)
        except OSError:
            found.skipped["unreadable"] += 1
    total = sum(found.tags.values())
    told = ", ".join(f"{number} {tag}" for tag, number in ranked(found.tags))
    return {
        "summary": f"{total} marks in {len(found.per_file)} of {found.files} files" + (f": {told}" if told else ""),
        "folder": plain(written),
        "files": found.files,
        "total": total,
        "tags": dict(ranked(found.tags)),
        "most": [{"file": name, "count": number} for name, number in ranked(found.per_file)[:10]],
        "marks": found.marks,
        "listed": len(found.marks),
        "skipped": dict(sorted(found.skipped.items())),
    }


def files(folder: Path, skipped: Counter[str]) -> Iterator[Path]:
    """Every regular file below `folder` in the order of names; links are not followed."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            skipped["unreadable"] += 1
            continue
        if here != folder and any(entry.name in OF_A_MACHINE for entry in entries):
            skipped["folders"] += 1
            continue
        deeper: list[Path] = []
        for entry in entries:
            if entry.is_symlink():
                skipped["links"] += 1
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
            elif entry.is_dir(follow_symlinks=False):
                kept = not is_left_out(Path(entry.path))
                deeper += [Path(entry.path)] if kept else []
                skipped["folders"] += not kept
        waiting += reversed(deeper)


def is_left_out(folder: Path) -> bool:
    """Whether nobody wrote what is in it: version control, dependencies, bytecode, the kernel's own run folders."""
    return folder.name in LEFT_OUT or (folder.name == "mybox" and folder in Path.cwd().parents)


def look(path: Path, name: str, found: Found) -> None:
    """Adds the marks of one file."""
    with path.open("rb") as file:
        encoding = encoding_of(file.read(HEAD))
    if encoding is None:
        found.skipped["binary"] += 1
        return
    found.files += 1
    for number, line in lines(path, encoding):
        hits = list(MARK.finditer(line))
        ends = [hit.start() for hit in hits[1:]] + [len(line)]
        for hit, end in zip(hits, ends, strict=False):
            tag = hit[1] or hit[3]
            found.tags[tag] += 1
            found.per_file[name] += 1
            if len(found.marks) < LISTED:
                mark = {"file": name, "line": number, "tag": tag, "text": said(line[hit.end() : end])}
                found.marks.append(mark | ({"owner": plain(hit[2])} if hit[2] else {}))


def said(rest: str) -> str:
    """What a mark says, without the end of the comment that it stands in."""
    return re.sub(r"\s*(?:\*/|-->|#})\s*$", "", plain(rest)).strip()[:TEXT]


def encoding_of(head: bytes) -> str | None:
    """How the text is written, or None where it is none."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    return None if b"\x00" in head else "utf-8-sig"


def lines(path: Path, encoding: str) -> Iterator[tuple[int, str]]:
    """Number and beginning of each line; one without an end does not fill the memory."""
    number = 1
    with path.open(encoding=encoding, errors="replace") as file:
        begun = ""
        while part := file.readline(LINE):
            if not begun:
                yield number, part.rstrip("\n")
            begun = "" if part.endswith("\n") else part
            number += part.endswith("\n")


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def place(written: str) -> Path:
    """The file or folder that is meant: a relative path starts at the project that the run's own folder lies in."""
    run = Path.cwd()
    project = run.parents[2] if run.parts[-3:-1] == ("mybox", "workspace") else run
    found = Path(os.path.realpath(project / written))
    if not found.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(f"{written!r} leads out of the project")
    if not found.is_file() and not found.is_dir():
        raise SystemExit(f"there is no file or folder {written!r}")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="a file or folder")
    parser.add_argument("folder", nargs="?", help="the same, as a word; without either the project")
    given = parser.parse_args()
    try:
        found = scan(given.path or given.folder or ".")
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
