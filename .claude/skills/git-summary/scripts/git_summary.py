"""Sums up the history of a local git repository: commits, authors, files most changed, as one JSON object."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from heapq import nsmallest
from math import inf
from pathlib import Path
from typing import IO, Any

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
LISTED = 10  # authors, files, months and newest commits in the answer
SUBJECT = 200  # characters of a commit's first line
COMMITS = 50_000  # newest commits that are looked at
CHUNK = 65_536  # bytes
DAYS: Mapping[str, int] = {"d": 1, "天": 1, "日": 1, "w": 7, "周": 7, "m": 30, "月": 30, "y": 365, "年": 365}
AGE = re.compile(r"(\d{1,4})\s*个?\s*(?:(d|w|m|y)|(?:(d)ay|(w)eek|(m)onth|(y)ear)s?|(天|日|周|月|年))", re.IGNORECASE)
YEARS = range(1970, 2200)  # in which a commit may have been made

# A repository's own configuration can name programs and servers; none is run and none is asked.
QUIET: tuple[str, ...] = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "log.showSignature=false",
    "protocol.allow=never",
)
QUIET += ("safe.bareRepository=explicit", "i18n.logOutputEncoding=UTF-8", "core.quotePath=false")
GIT = ("git", "--no-pager", *(word for setting in QUIET for word in ("-c", setting)))
LOG = ("log", "-z", "--name-only", "--no-renames", "--no-ext-diff", "--no-textconv", "--no-color")
FORMAT = "--format=%x00%H%x00%ct%x00%aN%x00%s%x00%P"  # an empty name of a file begins the next commit


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`time` is when it was made, in seconds since 1970."""

    time: int
    author: str
    subject: str
    merge: bool
    files: list[str]


@dataclass
class Found:
    """What the commits hold. Times are seconds since 1970."""

    commits: int = 0
    merges: int = 0
    authors: Counter[str] = field(default_factory=Counter)
    files: Counter[str] = field(default_factory=Counter)
    limited: bool = False
    recent: list[dict[str, object]] = field(default_factory=list)
    first: dict[str, object] | None = None
    months: Counter[str] = field(default_factory=Counter)
    newest: int | None = None
    oldest: int | None = None


def summary(written: str, since: str, until: str, author: str, about: str = "") -> dict[str, object]:
    """`{summary, repository, branch, commits, authors, files, text, …}` of a file or folder that HEAD reaches, by one
    author or by all."""
    target, name = place(written)
    folder = target if target.is_dir() else target.parent
    top = git_output(folder, "rev-parse", "--show-toplevel")
    begin, end = moment(since), moment(until, day_ends=True)
    only = [] if str(target) == top else ["." if target.is_dir() else target.name]
    found = read(folder, only, begin, end, author) if has_commits(folder) else Found()
    if author and not found.commits:
        unknown_author(author, read(folder, only, None, None, "") if has_commits(folder) else Found())
    data: dict[str, Any] = {
        "repository": Path(top).name,
        "branch": git_output(folder, "branch", "--show-current"),
        "since": begin.isoformat() if begin else None,
        "until": end.isoformat() if end else None,
        **({"author": author} if author else {}),
        "commits": found.commits,
        "merges": found.merges,
        "first": when(found.oldest),
        "last": when(found.newest),
        "author_count": len(found.authors),
        "authors": [{"name": name, "commits": number} for name, number in ranked(found.authors)],
        "file_count": len(found.files),
        "files": [{"file": name, "commits": number} for name, number in ranked(found.files)],
        "months": dict(sorted(found.months.items())[-LISTED:]),
        "recent": found.recent,
        "limited": found.limited,
    }
    told = sentence(name or data["repository"], data, period(begin, end), about) + told_commits(found, about)
    return {"summary": told, **data, "text": text_of(data)}


def told_commits(found: Found, about: str) -> str:
    """The clauses of the last and of the first commit, as `about` names them."""
    clauses = ""
    for kind, english, chinese, commit in (
        ("last", "last", "最后一次", found.recent[0] if found.recent else None),
        ("first", "first", "第一次", found.first),
    ):
        if commit and kind in about.split(","):
            clauses += say("; {}: {} by {}: {}", "；{}：{}，{}：{}").format(
                say(english, chinese), commit["time"], commit["author"], commit["subject"]
            )
    return clauses


def unknown_author(author: str, found: Found) -> None:
    """Ends the program if nobody of that name made any commit; the names that are like it are said."""
    if any(is_by(name, author) for name in found.authors):
        return
    names = {plain(name): plain(name) for name, _ in found.authors.most_common()}
    words = {word.casefold(): name for name in names for word in (*name.split(), name)}
    near = [words[word] for word in get_close_matches(author.casefold(), words, 3, 0.6)] or list(names)[:LISTED]
    listed = ", ".join(dict.fromkeys(near))
    message = f"no commit is by {author!r}; there are commits by {listed}"
    raise SystemExit(say(message, f"没有 {author!r} 的提交，有这些人的提交：{listed}"))


def is_by(name: str, author: str) -> bool:
    """Whether the name is the author's, or begins one of its words: `zoe` is `Zoe Park`."""
    whole, wanted = plain(name).casefold(), author.casefold()
    return (
        wanted == whole
        or wanted in whole.split()
        or (" " in wanted and wanted in whole)
        or (not wanted.isascii() and wanted in whole)
    )


def sentence(source: str, data: dict[str, Any], period: str, about: str) -> str:
    """Commits, the most active author and the file changed most often, unless another fact is asked for (`about`), in
    the person's language."""
    commits, authors, files = data["commits"], data["author_count"], data["file_count"]
    author, file = next(iter(data["authors"]), {}), data["files"][0] if files > 1 else {}
    author, file = ({}, {}) if about else (author, file)
    if CHINESE:
        summary = f"{source}{period and f'（{period}）'}：{commits:,} 次提交，{authors:,} 位作者，改动 {files:,} 个文件"
        summary += f"；提交最多的是 {author['name']}（{author['commits']:,} 次）" if author else ""
        return summary + (f"；改动最多的文件是 {file['file']}（{file['commits']:,} 次）" if file else "")
    summary = f"{source}: {many(commits, 'commit')} by {many(authors, 'author')} to {many(files, 'file')}"
    summary += f" {period}" if period else ""
    summary += f"; most active: {author['name']} ({many(author['commits'], 'commit')})" if author else ""
    return summary + (f"; changed most often: {file['file']} ({many(file['commits'], 'commit')})" if file else "")


def text_of(data: dict[str, Any]) -> str:
    """The lists, a line for each author, file, month and newest commit."""
    lines = [say("Authors", "作者"), *(f"- {author['name']}: {author['commits']:,}" for author in data["authors"])]
    lines += ["", say("Files changed most often", "改动最多的文件")]
    lines += [f"- {file['file']}: {file['commits']:,}" for file in data["files"]]
    lines += ["", say("Months", "月份"), *(f"- {month}: {number:,}" for month, number in data["months"].items())]
    lines += ["", say("Newest commits", "最近的提交")]
    lines += [f"- {commit['time']} {commit['author']}: {commit['subject']}" for commit in data["recent"]]
    return "\n".join(lines)


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


def read(folder: Path, only: Sequence[str], begin: datetime | None, end: datetime | None, author: str) -> Found:
    """What git tells of the commits of the period, by one author or by all. Clocks go wrong: no commit's time says
    anything of the next."""
    found = Found()
    first, last = begin.timestamp() if begin else -inf, end.timestamp() if end else inf
    with tempfile.TemporaryFile() as errors:
        argv = [*GIT, "--literal-pathspecs", *LOG, FORMAT, "HEAD", "--", *only]
        with subprocess.Popen(argv, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=errors) as process:
            for at, commit in enumerate(commits(process.stdout)):
                if at == COMMITS:
                    found.limited = commit.time >= first
                    process.kill()
                    return found
                if first <= commit.time <= last and (not author or is_by(commit.author, author)):
                    note(commit, found)
        errors.seek(0)
        if process.returncode:
            raise SystemExit(last_line(errors.read()) or f"git log ended with {process.returncode}")
    return found


def commits(stream: IO[bytes] | None) -> Iterator[Commit]:
    parts = tokens(stream)
    next(parts, "")  # the empty one before the first commit
    while next(parts, ""):  # its hash
        time, author, subject, parents = (next(parts, "") for _ in range(4))
        files = list(iter(lambda: next(parts, ""), ""))
        seconds = int(time) if time.isdecimal() else 0
        names = [name.removeprefix("\n") for name in files]
        yield Commit(time=seconds, author=author, subject=subject, merge=" " in parents, files=names)


def tokens(stream: IO[bytes] | None) -> Iterator[str]:
    """What stands between NUL bytes."""
    rest = b""
    while stream is not None and (chunk := stream.read(CHUNK)):
        *whole, rest = (rest + chunk).split(b"\0")
        yield from (token.decode("utf-8", "replace") for token in whole)


def note(commit: Commit, found: Found) -> None:
    found.commits += 1
    found.merges += commit.merge
    found.authors[commit.author] += 1
    found.files.update(set(commit.files))
    told = {
        "time": when(commit.time),
        "author": plain(commit.author),
        "subject": plain(commit.subject)[:SUBJECT],
    }
    if len(found.recent) < LISTED:
        found.recent.append(told)
    found.first = told
    found.months[(when(commit.time) or "")[:7]] += 1
    found.newest = commit.time if found.newest is None else max(found.newest, commit.time)
    found.oldest = commit.time if found.oldest is None else min(found.oldest, commit.time)


def has_commits(folder: Path) -> bool:
    return bool(run(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").stdout)


def git_output(folder: Path, *words: str) -> str:
    """The line that git prints; what it complains of ends the program."""
    done = run(folder, *words)
    if done.returncode:
        raise SystemExit(last_line(done.stderr) or f"git {words[0]} ended with {done.returncode}")
    return plain(done.stdout.decode("utf-8", "replace").rstrip("\n"))


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*GIT, *words], cwd=folder, env=environment(), capture_output=True, check=False)


def environment() -> dict[str, str]:
    """Nothing of the caller's git; nobody is asked for a password, nothing is written, nothing is fetched."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    return {**kept, **own, "LC_ALL": "C.UTF-8"}


def last_line(errors: bytes) -> str:
    lines = plain(errors.decode("utf-8", "replace").strip().replace("\n", "\t")).split("fatal: ")
    return lines[-1].strip()[:300]


def moment(written: str, *, day_ends: bool = False) -> datetime | None:
    """A date, a date with time (without a zone it is local), or how long ago: `30d`, `2 weeks`, `3个月`.

    `day_ends` takes a date for the end of that day.
    """
    text = written.strip()
    if not text:
        return None
    if ago := AGE.fullmatch(text):
        unit = next(group for group in ago.groups()[1:] if group).lower()
        return datetime.now(UTC).replace(microsecond=0) - timedelta(days=int(ago[1]) * DAYS[unit])
    found = date_of(f"{text}T23:59:59" if day_ends and len(text) == len("2026-01-31") else text)
    if found is None or found.year not in YEARS:
        message = f"{text!r} is no date: write 2026-01-31, or 30d, 8w, 6m, 1y for how long ago"
        raise SystemExit(say(message, f"{text!r} 不是日期，请写 2026-01-31，或 30d、8w、6m、1y 表示多久以前"))
    return found.astimezone() if found.tzinfo is None else found


def date_of(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def period(begin: datetime | None, end: datetime | None) -> str:
    """The days between which the commits lie, in words."""
    if CHINESE:
        return f"{begin.date() if begin else ''} 至 {end.date() if end else '今'}".strip() if begin or end else ""
    return " ".join([*([f"since {begin.date()}"] if begin else []), *([f"until {end.date()}"] if end else [])])


def ranked(counts: Counter[str]) -> list[tuple[str, int]]:
    return [(plain(name) or "?", number) for name, number in nsmallest(LISTED, counts.items(), key=by_count)]


def by_count(item: tuple[str, int]) -> tuple[int, str]:
    return -item[1], item[0]


def when(seconds: int | None) -> str | None:
    """ISO 8601 in UTC; None for a time that no calendar has."""
    try:
        found = None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
    return found.isoformat().replace("+00:00", "Z") if found else None


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
    parser.add_argument("--folder", help="a file or folder of the repository")
    parser.add_argument("--since", default="", help="a date, or how long ago: 30d, 8w, 6m, 1y")
    parser.add_argument("--until", default="", help="the same")
    parser.add_argument("--by", default="", help="which list is wanted; all are in the answer")
    parser.add_argument("--author", default="", help="whose commits count, by a name or a part of it")
    parser.add_argument("--about", default="", help="which commit the summary tells: last, first")
    parser.add_argument("word", nargs="?", metavar="folder", help="the same, as a word; without either the project")
    given = parser.parse_args()
    try:
        found = summary(given.folder or given.word or ".", given.since, given.until, given.author.strip(), given.about)
    except OSError as error:
        raise SystemExit(f"{error.filename!r}: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
