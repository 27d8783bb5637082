"""Counts words, characters and lines of a text or a file and prints them as one JSON object."""

import argparse
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
HAN = r"[㐀-䶿一-鿿豈-﫿]"
HANS = re.compile(HAN)
WORD = re.compile(rf"(?:(?!{HAN})[^\W_])+(?:['’-](?:(?!{HAN})[^\W_])+)*")
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
CHUNK = 2**20  # bytes
HEAD = 8_192  # bytes that tell a text file from another
LINE = 2**20  # characters of a line that are read at once


def figures(lines: Iterable[str], top: int) -> dict[str, object]:
    """What the lines, with their ends, hold; a Chinese character is one word, a run of other letters and digits too."""
    counts: Counter[str] = Counter()
    characters = ends = han = 0
    last = "\n"
    for last in lines:
        characters += len(last)
        ends += last.count("\n")
        signs = HANS.findall(last)
        han += len(signs)
        counts.update(signs)
        counts.update(map(str.lower, WORD.findall(last)))
    common = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:top]
    return {
        "words": counts.total(),
        "characters": characters,
        "lines": ends + (not last.endswith("\n")),
        "han": han,
        "top": [{"word": word, "count": number} for word, number in common],
        "text": "\n".join(f"{word} {number}" for word, number in common),
    }


def sentence(
    words: int, han: int, characters: int, lines: int, top: list[dict[str, object]], source: str = "", **_: object
) -> str:
    """The figures in the person's language."""
    others = words - han
    often = top[0]["word"] if top and top[0]["count"] != 1 else ""
    if CHINESE:
        whole = f"{words:,} 个{'字词' if others else '汉字'}" if han else f"{words:,} 个单词"
        whole += f"（{han:,} 个汉字、{others:,} 个其他单词）" if han and others else ""
        told = f"{whole}、{characters:,} 个字符、{lines:,} 行"
        told += f"；出现最多的是“{often}”，{top[0]['count']:,} 次" if often else ""
        return f"{source}：{told}" if source else told
    whole = many(words, "word" if others or not han else "Chinese character")
    whole += f" ({many(han, 'Chinese character')} and {many(others, 'other word')})" if han and others else ""
    told = f"{whole}, {many(characters, 'character')}, {many(lines, 'line')}"
    told += f"; the most frequent is “{often}”, {top[0]['count']:,} times" if often else ""
    return f"{source}: {told}" if source else told


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
    """By its first bytes, else by what most of its bytes beyond ASCII form: UTF-8, GB18030, or single characters."""
    beyond = utf_8 = gb = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if file.tell() <= CHUNK and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return "utf-16"
            if b"\0" in chunk[:HEAD] or chunk.startswith(b"%PDF-"):
                raise SystemExit(f"{path.name!r} {'不是文本文件' if CHINESE else 'is not a text file'}")
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
    parser.add_argument("--top", type=int, default=10, help="how many frequent words to list")
    given = parser.parse_args()
    about: dict[str, object] = {}
    lines: Iterable[str] = given.text.splitlines(keepends=True)
    try:
        if given.file:
            path, about["source"] = place(given.file)
            encoding = encoding_of(path)
            about["encoding"] = encoding.removesuffix("-sig")
            lines = lines_of(path, encoding)
        found = about | figures(lines, given.top)
    except OSError as error:
        why = "不能读取" if CHINESE else "cannot be read"
        raise SystemExit(f"{error.filename!r} {why}: {error.strerror}") from error
    sys.stdout.write(json.dumps({"summary": sentence(**found), **found}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
