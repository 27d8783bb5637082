"""Finds TODO, FIXME, XXX, HACK and 待办 marks in a folder's text files and prints them as one JSON object."""

import argparse
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from itertools import groupby
from pathlib import Path

MARK = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?:\(([^()\s]{1,40})\))?[:：\s-]*|(待办)(?:事项)?[:：\s-]*")
TAGS = ("TODO", "FIXME", "XXX", "HACK", "待办")
BOX = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(\[ \])()()\s+(?=\S)")  # an open task of a Markdown list
MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".claude", ".agents", "mybox", "__pycache__", ".venv", "venv"})
LEFT_OUT |= {"node_modules", "bower_components", "vendor", "third_party"}
OF_A_MACHINE = ("CACHEDIR.TAG", "pyvenv.cfg")  # a folder with one of them is a cache or a virtual environment
# A repository's own configuration can name programs and servers; none is run and none is asked.
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never", "safe.bareRepository=explicit")
GIT = ("git", *(word for setting in QUIET for word in ("-c", setting)))
IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
LISTED = 200  # marks in the answer; all are counted
LINE = 10_000  # characters of a line that are looked at
TEXT = 200  # characters of a mark's text that are kept
HEAD = 8_192  # bytes that tell a text file from another
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
CHUNK = 2**20  # bytes


@dataclass
class Found:
    """What was met on the way."""

    wanted: frozenset[str] = frozenset()
    boxes: bool = False
    marks: list[dict[str, object]] = field(default_factory=list)
    tags: Counter[str] = field(default_factory=Counter)
    per_file: Counter[str] = field(default_factory=Counter)
    kinds: set[str] = field(default_factory=set)
    files: int = 0
    encodings: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)


def scan(written: str, endings: frozenset[str], without: frozenset[str], wanted: frozenset[str]) -> dict[str, object]:
    """`{summary, folder, marks: [{file, line, tag, text}], text, …}` of a folder, or of one file. With `endings` only
    files whose names end so are read, and nothing of `without`; with `wanted` only those tags count."""
    target, name = place(written)
    found = Found(wanted=wanted, boxes=target.is_file() and target.suffix.lower() in MARKDOWN)
    base = target.parent if target.is_file() else target
    for path in [target] if target.is_file() else files(target, found.skipped, without):
        if endings and path.suffix.lower() not in endings:
            continue
        try:
            found.kinds |= {path.suffix.lower()} & endings
            look(path, plain(path.relative_to(base).as_posix()), found)
        except OSError:
            found.skipped["unreadable"] += 1
    if not found.files:
        where, kind = (
            repr(name) if name else say("the project", "项目"),
            "/".join(sorted(endings)) or say("text", "文本"),
        )
        raise SystemExit(say(f"there is no {kind} file in {where}", f"{where} 里没有 {kind} 文件"))
    total = sum(found.tags.values())
    folder = "" if target.is_file() else f"{name}/" if name else ""
    return {
        "summary": sentence(
            and_without(name, without),
            found,
            "" if target.is_file() else f"{'/'.join(sorted(found.kinds))} file".strip(),
        ),
        "folder": plain(written),
        "files": found.files,
        "total": total,
        "tags": dict(ranked(found.tags)),
        "most": [{"file": name, "count": number} for name, number in ranked(found.per_file)[:10]],
        "marks": found.marks,
        "listed": len(found.marks),
        "encodings": dict(found.encodings),
        "skipped": dict(sorted((+found.skipped).items())),
        "text": text_of(found.marks, name if target.is_file() else None, folder, total),
    }


def sentence(name: str, found: Found, kind: str) -> str:
    """The number of marks, also of each tag, in the person's language; `kind` is what was read of a folder."""
    total, tags = found.tags.total(), ranked(found.tags)
    source = name or say("the project", "整个项目")
    if CHINESE:
        by_tag = "、".join(f"{tag} {number:,} 个" for tag, number in tags)
        where = f"（{found.files:,} 个 {kind.replace('file', '文件')}中的 {len(found.per_file):,} 个）" if kind else ""
        where = where.replace("个 文件", "个文件")
        kinds = f" {'、'.join(sorted(found.wanted))} " if found.wanted and not total else ""
        return f"{source}：{total:,} 个{kinds}标记{where}" + (f"：{by_tag}" if by_tag else "")
    by_tag = ", ".join(f"{number:,} {tag}" for tag, number in tags)
    where = f" in {len(found.per_file):,} of {many(found.files, kind)}" if kind else ""
    kinds = f"{'/'.join(sorted(found.wanted))} " if found.wanted and not total else ""
    return f"{source}: {many(total, f'{kinds}mark')}{where}" + (f": {by_tag}" if by_tag else "")


def text_of(marks: list[dict[str, object]], alone: str | None, folder: str, total: int) -> str:
    """Each file as a path from the project, below it a line for each of its marks."""
    lines: list[str] = []
    for file, group in groupby(marks, key=lambda mark: alone or f"{folder}{mark['file']}"):
        lines.append(file)
        for mark in group:
            owner = f"({mark['owner']})" if "owner" in mark else ""
            lines.append(f"  {mark['line']}: {mark['tag']}{owner} {mark['text']}".rstrip())
    more = total - len(marks)
    lines += [say(f"and {more:,} more", f"还有 {more:,} 个")] if more else []
    return "\n".join(lines)


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


def files(folder: Path, skipped: Counter[str], without: frozenset[str]) -> Iterator[Path]:
    """Every regular file below `folder` in the order of names that a person of the project wrote; no links."""
    waiting, ignored = [folder], ignored_by_git(folder)
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
        if here != folder and any(entry.name == ".git" for entry in entries):
            ignored |= ignored_by_git(here)
        deeper: list[Path] = []
        for entry in entries:
            if entry.path in ignored:
                skipped["ignored"] += 1
            elif is_left_out(entry.path, without):
                skipped["unwanted"] += 1
            elif entry.is_symlink():
                skipped["links"] += 1
            elif entry.is_dir(follow_symlinks=False):
                skipped["folders"] += entry.name in LEFT_OUT
                deeper += [] if entry.name in LEFT_OUT else [Path(entry.path)]
            elif entry.is_file(follow_symlinks=False):
                yield Path(entry.path)
        waiting += reversed(deeper)


def is_left_out(path: str, without: frozenset[str]) -> bool:
    """Whether the file or folder is one of those that the person does not want, or fits one of their patterns."""
    return path in without or any(fnmatch(Path(path).name, name) for name in without if "*" in name)


def and_without(name: str, without: frozenset[str]) -> str:
    """`name` as people are shown it, with what was left out."""
    project = os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", "."))
    names = sorted(plain(os.path.relpath(path, project) if path.startswith("/") else path) for path in without)
    if not names:
        return name
    whole = name or say("the project", "整个项目")
    return say(f"{whole} without {', '.join(names)}", f"{whole}（不含 {'、'.join(names)}）")


def ignored_by_git(folder: Path) -> frozenset[str]:
    """The paths below `folder` that git ignores; none without git, or where `folder` itself is ignored: it is meant."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run([*GIT, *IGNORED], cwd=folder, env={**kept, **own}, capture_output=True, check=False)
    except OSError:
        return frozenset()
    names = [os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name]
    if done.returncode or "." in names:
        return frozenset()
    return frozenset(str(folder / name) for name in names)


def look(path: Path, name: str, found: Found) -> None:
    """Adds the marks of one file."""
    encoding = encoding_of(path)
    if encoding is None:
        found.skipped["binary"] += 1
        return
    found.files += 1
    found.encodings[encoding.removesuffix("-sig")] += 1
    for number, line in lines(path, encoding):
        hits = list(MARK.finditer(line)) or list(filter(None, [found.boxes and BOX.match(line)]))
        ends = [hit.start() for hit in hits[1:]] + [len(line)]
        for hit, end in zip(hits, ends, strict=False):
            tag = hit[1] or hit[3]  # `[ ]` is one, too
            if found.wanted and tag not in found.wanted:
                continue
            found.tags[tag] += 1
            found.per_file[name] += 1
            if len(found.marks) < LISTED:
                mark = {"file": name, "tag": tag, "line": number, "text": comment(line[hit.end() : end])}
                found.marks.append(mark | ({"owner": plain(hit[2])} if hit[2] else {}))


def comment(rest: str) -> str:
    """What a mark says, without the end of the comment that it stands in."""
    return re.sub(r"\s*(?:\*/|-->|#})\s*$", "", plain(rest)).strip()[:TEXT]


def encoding_of(path: Path) -> str | None:
    """By its first bytes, else by what most of its bytes beyond ASCII form; None where it is no text."""
    beyond = utf_8 = gb = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if file.tell() <= CHUNK and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return "utf-16"
            if b"\0" in chunk[:HEAD]:
                return None
            if high := len(chunk.translate(None, ASCII)):
                beyond += high
                utf_8 += sum(map(len, UTF_8.findall(chunk)))
                gb += sum(map(len, GB.findall(chunk)))
    if utf_8 >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if gb >= beyond * MOST else "cp1252"


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


def place(written: str) -> tuple[Path, str]:
    """The file or folder that is meant, a relative path starts at the project; and its name, empty for the project."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    if not path.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(say(f"{written!r} leads out of the project", f"{written!r} 在项目之外"))
    if not path.is_file() and not path.is_dir():
        raise SystemExit(say(f"there is no file or folder {written!r}", f"没有名为 {written!r} 的文件或文件夹"))
    name = path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)
    return path, "" if path == project else plain(name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", help="a file or folder")
    parser.add_argument("folder", nargs="?", help="the same, as a word; without either the project")
    parser.add_argument("--endings", default="", help="only files with these endings, with commas between")
    parser.add_argument("--without", default="", help="files, folders and patterns to leave out, one a line")
    parser.add_argument("--by", default="", help="which list is wanted; all are in the answer, ordered by file")
    parser.add_argument("--tags", default="", help="only marks of these tags, with commas between: FIXME,XXX")
    given = parser.parse_args()
    tags = frozenset(filter(None, re.split("[,，、 ]+", given.tags)))
    wanted = frozenset(map(str.upper, tags))
    if not wanted <= set(TAGS):
        listed = ", ".join(sorted(wanted - set(TAGS)))
        message = f"{listed!r} is no tag; write some of {', '.join(TAGS)}"
        raise SystemExit(say(message, f"{listed!r} 不是标记，请写 {'、'.join(TAGS)} 中的一些"))
    wanted |= {"待办"} if "TODO" in wanted else set()
    endings = frozenset(filter(None, given.endings.lower().split(",")))
    try:
        without = frozenset(filter(None, given.without.split("\n")))
        found = scan(given.path or given.folder or ".", endings, without, wanted)
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
