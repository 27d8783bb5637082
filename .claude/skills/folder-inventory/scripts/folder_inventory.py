"""Lists what a folder holds, by type, size, age and equal content, as one JSON object."""

import argparse
import hashlib
import json
import math
import os
import re
import stat
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from fnmatch import fnmatch
from heapq import nsmallest
from pathlib import Path, PurePath
from typing import Any

ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".claude", ".agents", "mybox", "__pycache__", ".venv", "venv"})
LEFT_OUT |= {"node_modules", "bower_components", "vendor", "third_party"}
# A repository's own configuration can name programs and servers; none is run and none is asked.
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never", "safe.bareRepository=explicit")
GIT = ("git", *(word for setting in QUIET for word in ("-c", setting)))
LEFT = {"folders": "工具和第三方的文件夹", "ignored": "git 忽略的", "links": "链接"}
LEFT |= {"special": "特殊文件", "unwanted": "不要的", "unreadable": "无法读取的"}
IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
LISTED = 10  # largest, newest, and groups of duplicates in the answer
MOST = 100  # files that may be asked for
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


def inventory(
    written: str, top: int, endings: frozenset[str], without: frozenset[str], asked: argparse.Namespace
) -> dict[str, object]:
    """`{summary, files, bytes, types, largest, newest, duplicates, text, …}` of a folder; UTC and bytes. With `endings`
    only files whose names end so are counted, with `since` and `until` only files last changed on these days."""
    folder, name = place(written)
    found = walk(folder, without)
    since, until = (date.fromisoformat(day) if day else None for day in (asked.since, asked.until))
    if since or until:
        newest = max((day_of(file) for file in found.files), default=None)
        found.files = [file for file in found.files if (since or date.min) <= day_of(file) <= (until or date.max)]
        days = str(since) if since == until else f"{since or '…'} – {until or '…'}"
        if not found.files:
            message = f"no file was changed {days}; the newest is of {newest}"
            raise SystemExit(say(message, f"{days} 没有改动过的文件；最新的是 {newest}"))
        name = say(f"{name or 'the project'}, changed {days}", f"{name or '整个项目'}（改动于 {days}）")
    if endings:
        found.files = [file for file in found.files if PurePath(file.path).suffix.lower() in endings]
    kind = "/".join(sorted({PurePath(file.path).suffix.lower() for file in found.files} or endings)) if endings else ""
    if not found.files:
        where = repr(name) if name else say("the project", "项目")
        raise SystemExit(
            say(
                f"there is no {kind} file in {where}".replace("  ", " "),
                f"{where} 里没有 {kind} 文件".replace("  ", " "),
            )
        )
    groups, not_compared = duplicates(found.files)
    kinds = by_type(found.files)
    data: dict[str, Any] = {
        "folder": plain(written),
        "files": len(found.files),
        "folders": found.folders,
        "bytes": sum(file.size for file in found.files),
        "empty": sum(not file.size for file in found.files),
        "types": kinds[:TYPES],
        "type_count": len(kinds),
        "largest": [shown(file, folder) for file in nsmallest(top, found.files, key=by_size)],
        "newest": [shown(file, folder) for file in nsmallest(top, found.files, key=by_age)],
        "duplicates": [shown_group(group, folder) for group in groups[:top]],
        "duplicate_groups": len(groups),
        "duplicate_bytes": sum(map(spare_bytes, groups)),
        "not_compared": not_compared,
        "skipped": dict(sorted(found.skipped.items())),
    }
    return {
        "summary": sentence(and_without(name, without), data, kind, facts(found.files, data, folder, asked)),
        **data,
        "text": text_of(f"{name}/" if name else "", data),
    }


def sentence(name: str, data: dict[str, Any], kind: str, facts: list[str]) -> str:
    """Number, size and what else is asked for, in the person's language."""
    files, folders, size = data["files"], data["folders"], readable(data["bytes"])
    if CHINESE:
        of = f"共 {files:,} 个 {kind} 文件" if kind else f"{folders:,} 个子文件夹，共 {files:,} 个文件"
        return f"{name or '整个项目'}：{'；'.join([f'{of}，{size}', *facts])}"
    of = many(files, f"{kind} file") if kind else f"{many(files, 'file')} in {many(folders, 'folder')}"
    return f"{name or 'the project'}: {'; '.join([f'{of}, {size}', *facts])}"


def facts(files: Sequence[File], data: dict[str, Any], folder: Path, asked: argparse.Namespace) -> list[str]:
    """The clauses of what the person asks about, without a question the largest file and the duplicates."""
    about = asked.about.split(",") if asked.about else ["largest"]
    clauses = []
    if "largest" in about:
        clauses.append(say("the largest is ", "最大的是 ") + sized(data["largest"][0]))
    if "smallest" in about:
        smallest = shown(min(files, key=lambda file: (file.size, file.path)), folder)
        clauses.append(say("the smallest is ", "最小的是 ") + sized(smallest))
    if "newest" in about:
        clauses.append(say("the newest is ", "最新的是 ") + dated(data["newest"][0]))
    if "oldest" in about:
        oldest = shown(min(files, key=lambda file: (file.changed, file.path)), folder)
        clauses.append(say("the oldest is ", "最旧的是 ") + dated(oldest))
    if "empty" in about:
        names = [plain(os.path.relpath(file.path, folder)) for file in files if not file.size]
        listed = ": " + ", ".join(names[:LISTED]) if names else ""
        clauses.append(say(f"{len(names) or 'none'} of them empty{listed}", f"其中 {len(names)} 个是空文件{listed}"))
    groups, spare = data["duplicate_groups"], readable(data["duplicate_bytes"])
    if groups and (not asked.about or "duplicates" in about):
        clauses.append(
            say(f"{many(groups, 'group')} of duplicates with {spare} of copies", f"{groups:,} 组重复文件，多占 {spare}")
        )
    elif "duplicates" in about:
        clauses.append(say("no duplicates", "没有重复文件"))
    return clauses


def sized(file: dict[str, Any]) -> str:
    return f"{file['file']} ({readable(file['bytes'])})"


def dated(file: dict[str, Any]) -> str:
    return f"{file['file']} ({file['changed']})"


def day_of(file: File) -> date:
    """The day of the last change, where the person is."""
    try:
        return datetime.fromtimestamp(file.changed, UTC).astimezone().date()
    except (OverflowError, ValueError, OSError):
        return date.min


def text_of(begin: str, data: dict[str, Any]) -> str:
    """The lists, one line a file, each with its path from the project."""
    lines = [say("Largest", "最大的文件")]
    lines += [f"- {begin}{file['file']} {readable(file['bytes'])}" for file in data["largest"]]
    lines += ["", say("Newest", "最新的文件")]
    lines += [f"- {begin}{file['file']} {file['changed']}" for file in data["newest"]]
    lines += ["", say("Duplicates", "重复文件") + ("" if data["duplicates"] else say(": none", "：没有"))]
    for group in data["duplicates"]:
        names = ", ".join(f"{begin}{name}" for name in group["files"])
        more = group["count"] - len(group["files"])
        lines.append(f"- {readable(group['bytes'])} × {group['count']}: {names}" + (f" +{more}" if more else ""))
    lines += ["", say("Types", "类型")]
    lines += [
        f"- {kind['type']}: {say(many(kind['files'], 'file'), str(kind['files']) + ' 个')}, {readable(kind['bytes'])}"
        for kind in data["types"]
    ]
    out = ", ".join(f"{say(kind, LEFT[kind])}: {number}" for kind, number in data["skipped"].items())
    lines += ["", say(f"Left out: {out}", f"未计入：{out}")] if out else []
    return "\n".join(lines)


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


def walk(folder: Path, without: frozenset[str]) -> Found:
    """Every regular file below `folder` that a person of the project put there; links are counted and not followed."""
    found = Found()
    waiting, ignored = [folder], ignored_by_git(folder)
    while waiting:
        here = waiting.pop()
        try:
            entries = sorted(os.scandir(here), key=lambda entry: entry.name)
        except OSError:
            found.skipped["unreadable"] += 1
            continue
        found.folders += here != folder
        if here != folder and any(entry.name == ".git" for entry in entries):
            ignored |= ignored_by_git(here)
        for entry in entries:
            if entry.path in ignored:
                found.skipped["ignored"] += 1
            elif is_left_out(entry.path, without):
                found.skipped["unwanted"] += 1
            elif not entry.is_dir(follow_symlinks=False):
                note(entry, found)
            elif entry.name in LEFT_OUT:
                found.skipped["folders"] += 1
            else:
                waiting.append(Path(entry.path))
    return found


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


def note(entry: os.DirEntry[str], found: Found) -> None:
    """Adds one entry that is no folder."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        found.skipped["unreadable"] += 1
        return
    if stat.S_ISREG(status.st_mode):
        node = (status.st_dev, status.st_ino)
        found.files.append(File(path=entry.path, size=status.st_size, changed=status.st_mtime, node=node))
    else:
        found.skipped["links" if stat.S_ISLNK(status.st_mode) else "special"] += 1


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
    return [sorted(group, key=by_name) for digest, group in found.items() if digest is not None and len(group) > 1]


def digest(path: str, limit: int) -> bytes | None:
    """What the first `limit` bytes hash to; None where the file cannot be read any more."""
    digest = hashlib.sha256()
    try:
        with Path(path).open("rb") as file:
            while limit > 0 and (piece := file.read(min(limit, HEAD))):
                digest.update(piece)
                limit -= len(piece)
    except OSError:
        return None
    return digest.digest()


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
    if size < 1024:
        return say(many(int(size), "byte"), f"{size} 字节")
    power = min(int(math.log2(size)) // 10, len(UNITS) - 1)
    return f"{size / 1024**power:,.1f} {UNITS[power]}"


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def place(written: str) -> tuple[Path, str]:
    """The folder that is meant, a relative path starts at the project; and its name, empty for the project."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    if not path.is_relative_to(project) and not Path(written).is_absolute():
        raise SystemExit(say(f"{written!r} leads out of the project", f"{written!r} 在项目之外"))
    if not path.is_dir():
        raise SystemExit(say(f"there is no folder {written!r}", f"没有名为 {written!r} 的文件夹"))
    name = path.relative_to(project).as_posix() if path.is_relative_to(project) else str(path)
    return path, "" if path == project else plain(name)


def number(written: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}", written) or not 1 <= int(written) <= MOST:
        message = f"{written!r} is no number of files: write 1 to {MOST}"
        raise SystemExit(say(message, f"{written!r} 不是文件数：请写 1 到 {MOST}"))
    return int(written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", help="the folder")
    parser.add_argument("--by", default="", help="which list is wanted; all are in the answer")
    parser.add_argument("--top", default=str(LISTED), help="how many files of each list")
    parser.add_argument("--endings", default="", help="only files with these endings, with commas between")
    parser.add_argument("--without", default="", help="files, folders and patterns to leave out, one a line")
    parser.add_argument(
        "--about", default="", help="what the summary tells: largest, smallest, newest, oldest, empty, duplicates"
    )
    parser.add_argument("--since", default="", help="only files changed on this day or later, as 2026-11-30")
    parser.add_argument("--until", default="", help="only files changed on this day or earlier")
    parser.add_argument("word", nargs="?", metavar="folder", help="the same, as a word; without either the project")
    given = parser.parse_args()
    try:
        endings = frozenset(filter(None, given.endings.lower().split(",")))
        without = frozenset(filter(None, given.without.split("\n")))
        found = inventory(given.folder or given.word or ".", number(given.top), endings, without, given)
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
