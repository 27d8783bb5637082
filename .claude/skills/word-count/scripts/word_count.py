"""Counts words, characters and lines of a text, a file or the files of a folder and prints them as one JSON object."""

import argparse
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
HAN = r"[㐀-䶿一-鿿豈-﫿]"
HANS = re.compile(HAN)
SPACES = re.compile(r"\s+")
WORD = re.compile(rf"(?:(?!{HAN})[^\W_])+(?:['’-](?:(?!{HAN})[^\W_])+)*")
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
CHUNK = 2**20  # bytes
HEAD = 8_192  # bytes that tell a text file from another
LINE = 2**20  # characters of a line that are read at once
ADDED = ("words", "characters", "lines", "han", "no_spaces", "paragraphs", "times")  # figures of a folder
EXTRA = frozenset({"no_spaces", "paragraphs", "longest"})  # figures for those who ask for them
LISTED = 100  # files of a folder in the answer
LEFT_OUT = frozenset({".git", ".hg", ".svn", ".claude", ".agents", "mybox", "__pycache__", ".venv", "venv"})
LEFT_OUT |= {"node_modules", "bower_components", "vendor", "third_party"}
# A repository's own configuration can name programs and servers; none is run and none is asked.
QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "protocol.allow=never", "safe.bareRepository=explicit")
GIT = ("git", *(word for setting in QUIET for word in ("-c", setting)))
IGNORED = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")


def figures(lines: Iterable[str], top: int, counts: Counter[str] | None = None, word: str = "") -> dict[str, Any]:
    """What the lines, with their ends, hold; a Chinese character is one word, a run of other letters and digits too.
    The words are added to `counts`. `times` is how often `word` comes, whole and in any letter case; `longest` the
    characters of the longest line and its number."""
    counts = Counter() if counts is None else counts
    before = counts.total()
    characters = ends = han = spaces = paragraphs = times = longest = longest_at = width = 0
    inside = False
    last = "\n"
    wanted = re.compile(rf"(?<![\w]){re.escape(word)}(?![\w])" if word.isascii() else re.escape(word), re.IGNORECASE)
    for last in lines:
        characters += len(last)
        spaces += sum(map(len, SPACES.findall(last)))
        paragraphs += bool(last.strip()) and not inside
        inside = bool(last.strip())
        times += len(wanted.findall(last)) if word else 0
        width += len(last.rstrip("\r\n"))
        longest, longest_at = (width, ends + 1) if width > longest else (longest, longest_at)
        width = 0 if last.endswith("\n") else width
        ends += last.count("\n")
        signs = HANS.findall(last)
        han += len(signs)
        counts.update(signs)
        counts.update(map(str.lower, WORD.findall(last)))
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    return {
        "words": counts.total() - before,
        "characters": characters,
        "lines": ends + (not last.endswith("\n")),
        "han": han,
        "no_spaces": characters - spaces,
        "paragraphs": paragraphs,
        "longest": {"characters": longest, "line": longest_at},
        **({"word": word, "times": times} if word else {}),
        "top": [{"word": word, "count": number} for word, number in common],
        "text": "\n".join(f"{word} {number}" for word, number in common),
    }


def of_folder(written: str, top: int, endings: frozenset[str], without: frozenset[str], word: str) -> dict[str, Any]:
    """The figures of all text files of a folder that a person of the project wrote, and those of each, most words
    first; with `endings` only of files whose names end so."""
    folder, name = place(written)
    counts: Counter[str] = Counter()
    each: list[dict[str, Any]] = []
    for path in files(folder):
        if is_left_out(path, folder, without):
            continue
        if (not endings or path.suffix.lower() in endings) and (encoding := encoding_of(path)):
            own = figures(lines_of(path, encoding), 1, counts, word)
            each.append({"file": place(str(path))[1], **{key: own[key] for key in ADDED if key in own}})
    kind = "/".join(sorted({Path(file["file"]).suffix.lower() for file in each} or endings)) if endings else ""
    where = "" if folder == place(".")[0] else name
    names = sorted(place(path)[1] if path.startswith("/") else path for path in without)
    if names:
        whole = where or ("整个项目" if CHINESE else "the project")
        where = f"{whole}（不含 {'、'.join(names)}）" if CHINESE else f"{whole} without {', '.join(names)}"
    if not each:
        message = f"{where or '项目'} 里没有 {kind or '文本'} 文件" if CHINESE else ""
        raise SystemExit(message or f"there is no {kind or 'text'} file in {where or 'the project'}")
    each.sort(key=lambda file: (-file["words"], file["file"]))
    total = {key: sum(file[key] for file in each) for key in ADDED if key in each[0]}
    number = f"{len(each):,} 个 {kind} 文件" if kind else f"{len(each):,} 个文件"
    number = number if CHINESE else many(len(each), f"{kind} file".strip())
    source = f"{where or '整个项目'}（{number}）" if CHINESE else f"{where or 'the project'} ({number})"
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    return {
        "source": source,
        **total,
        **({"word": word} if word else {}),
        "top": [{"word": word, "count": number} for word, number in common],
        "files": len(each),
        "each": [{name: file[name] for name in file if name not in EXTRA} for file in each[:LISTED]],
        "text": "\n".join(f"{file['file']} {file['words']:,}" for file in each[:LISTED]),
    }


def is_left_out(path: Path, top: Path, without: frozenset[str]) -> bool:
    """Whether the file, or a folder around it, is one that the person does not want, or fits one of their patterns."""
    places = [place for place in (path, *path.parents) if place.is_relative_to(top)]
    patterns = [name for name in without if "*" in name]
    return any(str(place) in without or any(fnmatch(place.name, name) for name in patterns) for place in places)


def files(folder: Path) -> Iterator[Path]:
    """The regular files below `folder` without links, tools' folders and what git ignores."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "GIT_NO_LAZY_FETCH": "1", "GIT_CONFIG_NOSYSTEM": "1"}
    try:
        done = subprocess.run([*GIT, *IGNORED], cwd=folder, env={**kept, **own}, capture_output=True, check=False)
        names = [] if done.returncode else [os.fsdecode(name).rstrip("/") for name in done.stdout.split(b"\0") if name]
    except OSError:
        names = []
    ignored = set() if "." in names else {str(folder / name) for name in names}
    for here, folders, entries in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT - {name for name in folders if str(Path(here, name)) in ignored})
        for path in (Path(here, name) for name in sorted(entries)):
            if str(path) not in ignored and path.is_file() and not path.is_symlink():
                yield path


def facts_of(data: dict[str, Any], about: str) -> list[str]:
    """The clauses of what is asked for beside words, characters and lines."""
    facts = []
    if "no_spaces" in about:
        number = data["no_spaces"]
        facts.append(f"不含空白 {number:,} 个字符" if CHINESE else f"{many(number, 'character')} without spaces")
    if "paragraphs" in about:
        number = data["paragraphs"]
        facts.append(f"{number:,} 段" if CHINESE else many(number, "paragraph"))
    if "longest" in about and "longest" in data:
        line, size = data["longest"]["line"], data["longest"]["characters"]
        facts.append(
            f"最长的是第 {line} 行，{size:,} 个字符"
            if CHINESE
            else f"line {line} is the longest, {many(size, 'character')}"
        )
    if "most" in about and "each" in data:
        first = data["each"][0]
        facts.append(
            f"字数最多的是 {first['file']}，{first['words']:,}"
            if CHINESE
            else f"the most words are in {first['file']}, {first['words']:,}"
        )
    if "times" in data:
        word, times = data["word"], data["times"]
        facts.append(f"“{word}”出现 {times:,} 次" if CHINESE else f"“{word}” comes {many(times, 'time')}")
    return facts


def sentence(
    facts: list[str],
    words: int,
    han: int,
    characters: int,
    lines: int,
    top: list[dict[str, object]],
    source: str = "",
    **_: object,
) -> str:
    """The figures in the person's language, then the `facts`."""
    others = words - han
    often = top[0]["word"] if top and top[0]["count"] != 1 and not facts else ""
    if CHINESE:
        whole = f"{words:,} 个{'字词' if others else '汉字'}" if han else f"{words:,} 个单词"
        whole += f"（{han:,} 个汉字、{others:,} 个其他单词）" if han and others else ""
        summary = f"{whole}、{characters:,} 个字符、{lines:,} 行"
        summary += f"；出现最多的是“{often}”，{top[0]['count']:,} 次" if often else ""
        summary = "；".join([summary, *facts])
        return f"{source}：{summary}" if source else summary
    whole = many(words, "word" if others or not han else "Chinese character")
    whole += f" ({many(han, 'Chinese character')} and {many(others, 'other word')})" if han and others else ""
    summary = f"{whole}, {many(characters, 'character')}, {many(lines, 'line')}"
    summary += f"; the most frequent is “{often}”, {top[0]['count']:,} times" if often else ""
    summary = "; ".join([summary, *facts])
    return f"{source}: {summary}" if source else summary


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def lines_of(path: Path, encoding: str) -> Iterator[str]:
    """Each line with its end; a very long one comes in parts, which end between words where they can."""
    with path.open(encoding=encoding, errors="replace", newline="") as file:
        for part in iter(partial(file.readline, LINE), ""):
            while len(part) >= LINE and part[-1].isalnum() and (more := file.read(1)):
                part += more
            yield part


def encoding_of(path: Path) -> str:
    """By its first bytes, else by what most of its bytes beyond ASCII form: UTF-8, GB18030, or single characters; empty
    where it is no text."""
    beyond = utf_8 = gb = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if file.tell() <= CHUNK and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return "utf-16"
            if b"\0" in chunk[:HEAD] or chunk.startswith(b"%PDF-"):
                return ""
            if high := len(chunk.translate(None, ASCII)):
                beyond += high
                utf_8 += sum(map(len, UTF_8.findall(chunk)))
                gb += sum(map(len, GB.findall(chunk)))
    if utf_8 >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if gb >= beyond * MOST else "cp1252"


def place(written: str) -> tuple[Path, str]:
    """The file that is meant, a relative path starts at the project; and its name as people are shown it."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    name = path.relative_to(project).as_posix() if path.is_relative_to(project) else written
    return path, "".join(mark for mark in name if unicodedata.category(mark)[0] != "C")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", nargs="?", default="")
    parser.add_argument("--file", help="a file, instead of the text")
    parser.add_argument("--folder", help="a folder, instead of the text: all its files")
    parser.add_argument("--endings", default="", help="only files with these endings, with commas between")
    parser.add_argument("--without", default="", help="files, folders and patterns to leave out, one a line")
    parser.add_argument("--by", default="", help="which list is wanted; all are in the answer")
    parser.add_argument("--word", default="", help="a word whose occurrences are counted")
    parser.add_argument(
        "--about", default="", help="what the summary tells as well: no_spaces, paragraphs, longest, most"
    )
    parser.add_argument("--top", type=int, default=10, help="how many frequent words to list")
    given = parser.parse_args()
    about: dict[str, object] = {}
    lines: Iterable[str] = given.text.splitlines(keepends=True)
    try:
        if given.file:
            path, about["source"] = place(given.file)
            encoding = encoding_of(path)
            if not encoding:
                raise SystemExit(f"{path.name!r} {'不是文本文件' if CHINESE else 'is not a text file'}")
            about["encoding"] = encoding.removesuffix("-sig")
            lines = lines_of(path, encoding)
        if not given.file and (given.folder or given.endings):
            endings = frozenset(filter(None, given.endings.lower().split(",")))
            without = frozenset(filter(None, given.without.split("\n")))
            found = of_folder(given.folder or ".", given.top, endings, without, given.word)
        else:
            found = about | figures(lines, given.top, None, given.word)
    except OSError as error:
        why = "不能读取" if CHINESE else "cannot be read"
        raise SystemExit(f"{error.filename!r} {why}: {error.strerror}") from error
    facts = facts_of(found, given.about)
    found = {name: value for name, value in found.items() if name not in EXTRA or name in given.about.split(",")}
    sys.stdout.write(json.dumps({"summary": sentence(facts, **found), **found}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
