"""Turns a file of JSON or JSON lines into a Markdown table, `table.md`, and tells its rows and columns."""

import argparse
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
SPACE = re.compile(r"[ \t\r\n]*")
ENTITY = re.compile(r"&(?=#?\w+;)")
DOCUMENT = 64 * 2**20  # bytes of one JSON document, which is held in memory as a whole
LINE = 16 * 2**20  # characters of one line of JSON lines, which are read one by one
COLUMNS = 500  # columns of the table
CELL = 2_000  # characters of a cell
KEYS = 10_000  # different names in the whole file
NAME = 200  # characters of a name in the answer
PREVIEW = 10  # rows in the answer
SHOWN = 20_000  # characters of them
OUTPUT = "table.md"

KNOWN = frozenset({"data", "items", "records", "results", "rows"})  # where a service puts its list

Row = Mapping[str, object]


@dataclass
class Columns:
    """The names in the order in which they are met, and those that hold something else than numbers."""

    names: dict[str, None] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    rows: int = 0


def table(path: Path, wanted: Sequence[str]) -> dict[str, object]:
    """Writes `table.md`; `{summary, rows, columns, preview, cut, file}`. The file is read twice; lines are not held."""
    columns = columns_of(rows(path))
    if not columns.rows:
        raise SystemExit("there is nothing in it to make rows of")
    names = chosen(list(columns.names), wanted)
    shown: list[str] = []
    cut = 0
    with Path(OUTPUT).open("w", encoding="utf-8", newline="\n") as file:
        for line, shortened in markdown(names, columns.texts, rows(path)):
            file.write(f"{line}\n")
            cut += shortened
            if len(shown) < PREVIEW + 2 and sum(map(len, shown)) + len(line) <= SHOWN:
                shown.append(line)
    return {
        "summary": f"{columns.rows} rows, {len(names)} columns",
        "rows": columns.rows,
        "columns": [plain(name)[:NAME] for name in names],
        "cut": cut,
        "file": OUTPUT,
        "preview": "\n".join(shown),
    }


def chosen(names: list[str], wanted: Sequence[str]) -> list[str]:
    """The wanted names, or all of them."""
    unknown = next((name for name in wanted if name not in names), None)
    if unknown is not None:
        raise SystemExit(f"there is no column {unknown!r}: there are {', '.join(map(repr, names[:20]))}")
    if len(wanted or names) > COLUMNS:
        raise SystemExit(f"there are {len(names)} columns, more than {COLUMNS}: name those that are wanted")
    return list(wanted) or names


def columns_of(found: Iterable[Row]) -> Columns:
    columns = Columns()
    for row in found:
        columns.rows += 1
        for name, value in row.items():
            columns.names[name] = None
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
                columns.texts.add(name)
        if len(columns.names) > KEYS:
            raise SystemExit(f"there are more than {KEYS} different names in it")
    return columns


def markdown(names: Sequence[str], texts: set[str], found: Iterable[Row]) -> Iterator[tuple[str, int]]:
    """Each line of the table, and how many of its cells were cut; columns of numbers stand to the right."""
    yield line_of([cell(name)[0] for name in names]), 0
    yield line_of(["---" if name in texts else "---:" for name in names]), 0
    for row in found:
        cells = [cell(row.get(name)) for name in names]
        yield line_of([text for text, _ in cells]), sum(shortened for _, shortened in cells)


def line_of(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def cell(value: object) -> tuple[str, bool]:
    """The value as one line that no table breaks at, and whether it was cut."""
    if value is None:
        return "", False
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    shown = text if len(text) <= CELL else f"{text[:CELL]}…"
    lines = [plain(line) for line in shown.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    return "<br>".join(map(escaped, lines)), len(text) > CELL


def escaped(text: str) -> str:
    return ENTITY.sub("&amp;", text.replace("\\", "\\\\").replace("|", "\\|")).replace("<", "&lt;")


def rows(path: Path) -> Iterator[Row]:
    """Each record as name → value; a list has its places as names, anything else is a `value`."""
    for value in by_line(path) if is_lines(path) else in_document(path):
        if isinstance(value, dict):
            yield value
        elif isinstance(value, list):
            yield {str(at): held for at, held in enumerate(value, start=1)}
        else:
            yield {"value": value}


def is_lines(path: Path) -> bool:
    """Whether the first line is JSON by itself and another follows."""
    with opened(path) as file:
        first, second = islice(chain(filter(str.strip, iter(partial(file.readline, LINE), "")), ("", "")), 2)
    try:
        json.loads(first)
    except (ValueError, RecursionError):
        return False
    return bool(second)


def by_line(path: Path) -> Iterator[object]:
    with opened(path) as file:
        for number, line in enumerate(iter(partial(file.readline, LINE), ""), start=1):
            if len(line) == LINE:
                raise SystemExit(f"line {number} is longer than {LINE // 2**20} MiB")
            if line.strip():
                yield decoded(line.strip(), 0, f"line {number}")[0]


def in_document(path: Path) -> Iterator[object]:
    """The records of one document, or each of several documents."""
    with opened(path) as file:
        text = file.read(DOCUMENT + 1)
    if len(text) > DOCUMENT:
        raise SystemExit(f"one document of more than {DOCUMENT // 2**20} MiB: write it as JSON lines")
    if not text.strip():
        raise SystemExit("the file is empty")
    first, at = decoded(text, 0, "the file")
    if at == len(text):
        yield from records(first)
        return
    yield first
    while at < len(text):
        value, at = decoded(text, at, "the file")
        yield value


def records(value: object) -> Sequence[object]:
    """A list's items, also where a service wraps the list in an object."""
    if isinstance(value, dict):
        lists = [name for name, held in value.items() if held and is_records(held)]
        if len(lists) == 1 and (len(value) == 1 or lists[0] in KNOWN):
            value = value[lists[0]]
    return value if isinstance(value, list) else [value]


def is_records(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


def decoded(text: str, at: int, where: str) -> tuple[object, int]:
    """The value that begins at `at`, and where the next one begins."""
    try:
        begin = SPACE.match(text, at)
        value, end = json.JSONDecoder().raw_decode(text, begin.end() if begin else at)
    except json.JSONDecodeError as error:
        place = f", line {error.lineno}" if where == "the file" else ""
        raise SystemExit(f"{where} is no JSON{place}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise SystemExit(f"{where} holds what cannot be read: {type(error).__name__}") from error
    after = SPACE.match(text, end)
    return value, after.end() if after else end


def opened(path: Path) -> TextIO:
    with path.open("rb") as file:
        wide = file.read(2) in {b"\xff\xfe", b"\xfe\xff"}
    return path.open(encoding="utf-16" if wide else "utf-8-sig")


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path)
    parser.add_argument("--columns", default="", help="the columns that are wanted, with commas between")
    given = parser.parse_args()
    wanted = [name.strip() for name in re.split("[,，]", given.columns) if name.strip()]
    try:
        found = table(given.input, wanted)
    except RecursionError as error:
        raise SystemExit("its values are nested too deeply") from error
    except UnicodeError as error:
        raise SystemExit("the file is not UTF-8 text") from error
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
