"""Turns a file of JSON or JSON lines into a Markdown table, `table.md`, and tells its rows and columns."""

import argparse
import json
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
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
WHOLE = 200_000  # bytes of the table in the answer
OUTPUT = "table.md"
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
CHUNK = 2**20  # bytes

SORTED = 200_000  # rows that are put in an order, which holds them in memory
CONDITION = re.compile(r"(.*?)(>=|<=|!=|=|>|<)(.*)", re.DOTALL)

KNOWN = frozenset({"data", "items", "records", "results", "rows"})  # where a service puts its list

Row = Mapping[str, object]


@dataclass
class Columns:
    """The names in the order in which they are met, and those that hold something else than numbers."""

    names: dict[str, None] = field(default_factory=dict)
    texts: set[str] = field(default_factory=set)
    rows: int = 0


def table(
    path: Path, source: str, wanted: Sequence[str], most: int | None, where: str = "", order: str = ""
) -> dict[str, object]:
    """Writes `table.md`; `{summary, rows, columns, preview, text, cut, file, …}`. The file is read twice, and held only
    to be sorted."""
    columns = columns_of(rows(path))
    if not columns.rows:
        raise SystemExit(say("there is nothing in it to make rows of", "里面没有可以成为行的数据"))
    names = chosen(list(columns.names), wanted)
    conditions = [condition(path, list(columns.names), written) for written in filter(None, where.split("\n"))]
    columns.rows = sum(1 for _ in met(rows(path), conditions)) if conditions else columns.rows
    lines: list[str] = []
    size = cut = 0
    with Path(OUTPUT).open("w", encoding="utf-8", newline="\n") as file:
        for line, shortened in markdown(names, columns.texts, islice(in_order(path, columns, conditions, order), most)):
            file.write(f"{line}\n")
            cut += shortened
            size += len(line.encode()) + 1
            lines += [line] if size <= WHOLE else []
    listed = min(columns.rows, most or columns.rows)
    left = listed + 2 - len(lines)
    shown = [line for at, line in enumerate(lines[: PREVIEW + 2]) if sum(map(len, lines[: at + 1])) <= SHOWN]
    figures = say(
        f"{many(columns.rows, 'row')}, {many(len(names), 'column')}", f"{columns.rows:,} 行、{len(names):,} 列"
    )
    if listed < columns.rows:
        figures += say(f", of which the first {listed:,} in the table", f"，表中是前 {listed:,} 行")
    if conditions:
        limits = ", ".join(" ".join(each) for each in conditions)
        source = say(f"{source}, {limits}", f"{source}（{limits}）")
    if order:
        key = chosen(list(columns.names), [order.partition(" desc")[0]])[0]
        down = order.endswith(" desc")
        figures += say(
            f", sorted by {key}{' from the top down' if down else ''}", f"，按 {key} {'降序' if down else '升序'}"
        )
    return {
        "summary": say(f"{source}: {figures}", f"{source}：{figures}"),
        "source": source,
        "encoding": encoding_of(path).removesuffix("-sig"),
        "rows": columns.rows,
        "columns": [plain(name)[:NAME] for name in names],
        "cut": cut,
        "file": OUTPUT,
        "preview": "\n".join(shown),
        "text": "\n".join(
            lines + ([say(f"and {left:,} more in {OUTPUT}", f"其余 {left:,} 行见 {OUTPUT}")] if left else [])
        ),
    }


def many(number: int, thing: str) -> str:
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def say(english: str, chinese: str) -> str:
    return chinese if CHINESE else english


def chosen(names: list[str], wanted: Sequence[str]) -> list[str]:
    """The wanted names, letter case ignored, or all of them."""
    alike = {name.casefold(): name for name in reversed(names)}
    unknown = next((name for name in wanted if name.casefold() not in alike), None)
    if unknown is not None:
        there = ", ".join(map(repr, names[:20]))
        message = say(f"there is no column {unknown!r}: there are {there}", f"没有 {unknown!r} 这一列，只有 {there}")
        raise SystemExit(message)
    if len(wanted or names) > COLUMNS:
        raise SystemExit(f"there are {len(names)} columns, more than {COLUMNS}: name those that are wanted")
    return [name if name in names else alike[name.casefold()] for name in wanted] or names


Condition = tuple[str, str, str]  # a column, a sign and a value


def condition(path: Path, names: list[str], written: str) -> Condition:
    """The column, the sign and the value of `age>5` or `city=Oslo`; a value alone is looked for in all columns. What no
    record holds is an error that names values that are there."""
    hit = CONDITION.fullmatch(written)
    name, sign, value = (part.strip() for part in hit.groups()) if hit else ("", "=", written.strip())
    name = (
        chosen(names, [name])[0]
        if name
        else next((each for row in rows(path) for each, field in row.items() if is_met(field, "=", value)), "")
    )
    texts: dict[str, None] = {}
    for row in rows(path):
        values = [row.get(name)] if name else row.values()
        if name and (sign not in {"=", "!="} or is_met(row.get(name), "=", value)):
            return name, sign, value
        texts |= {cell(each)[0][:NAME]: None for each in values if isinstance(each, str) and len(texts) < KEYS}
    near = get_close_matches(value, texts, 3, 0.6) or list(texts)[:8]
    listed = ", ".join(map(repr, near))
    where, chinese = (f"the column {name!r}", f"{name!r} 这一列") if name else ("the table", "表中")
    message = f"there is no {value!r} in {where}: there are {listed}"
    raise SystemExit(say(message, f"{chinese}没有 {value!r}，有 {listed}"))


def is_met(field: object, sign: str, value: str) -> bool:
    """Whether a value of a record fulfils the condition; letter case says nothing, and `5` is `5.0`."""
    text = cell(field)[0].strip()
    left, right = as_number(text), as_number(value)
    if sign in {"=", "!="}:
        return (text.casefold() == value.casefold() or (left is not None and left == right)) is (sign == "=")
    if left is None or right is None:
        return False
    return {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[sign]


def as_number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def met(found: Iterable[Row], conditions: Sequence[Condition]) -> Iterator[Row]:
    """The rows that fulfil all conditions, of those with `=` for the same column any."""
    alternatives: dict[str, list[str]] = {}
    for name, sign, value in conditions:
        if sign == "=":
            alternatives.setdefault(name, []).append(value)
    for row in found:
        others = all(is_met(row.get(name), sign, value) for name, sign, value in conditions if sign != "=")
        if others and all(any(is_met(row.get(name), "=", v) for v in values) for name, values in alternatives.items()):
            yield row


def in_order(path: Path, columns: Columns, conditions: Sequence[Condition], order: str) -> Iterable[Row]:
    """The rows that fulfil the conditions, in the order of a column: numbers before words, and what is empty last."""
    found = met(rows(path), conditions)
    if not order:
        return found
    if columns.rows > SORTED:
        raise SystemExit(f"there are {columns.rows:,} rows, and {SORTED:,} at most can be sorted")
    name, down = chosen(list(columns.names), [order.partition(" desc")[0]])[0], order.endswith(" desc")
    every = list(found)
    full = [row for row in every if row.get(name) not in (None, "")]

    def key(row: Row) -> tuple[bool, float, str]:
        number = as_number(cell(row.get(name))[0])
        return number is None, number or 0.0, cell(row.get(name))[0].casefold()

    return [*sorted(full, key=key, reverse=down), *(row for row in every if row.get(name) in (None, ""))]


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
            yield {str(at): each for at, each in enumerate(value, start=1)}
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
        raise SystemExit(say("the file is empty", "文件是空的"))
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
        lists = [name for name, each in value.items() if each and is_records(each)]
        others = [each for name, each in value.items() if name not in lists]
        if len(lists) == 1 and (lists[0] in KNOWN or not any(isinstance(each, dict | list) for each in others)):
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
    return path.open(encoding=encoding_of(path), errors="replace")


@cache
def encoding_of(path: Path) -> str:
    """By its first bytes, else by what most of its bytes beyond ASCII form: UTF-8, GB18030, or single characters."""
    beyond = utf_8 = gb = 0
    with path.open("rb") as file:
        while chunk := file.read(CHUNK):
            if file.tell() <= CHUNK and chunk.startswith((b"\xff\xfe", b"\xfe\xff")):
                return "utf-16"
            if high := len(chunk.translate(None, ASCII)):
                beyond += high
                utf_8 += sum(map(len, UTF_8.findall(chunk)))
                gb += sum(map(len, GB.findall(chunk)))
    if utf_8 >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if gb >= beyond * MOST else "cp1252"


def plain(text: str) -> str:
    """`text` without escape sequences, control characters, direction marks and halves of characters."""
    if text.isprintable():
        return text
    whole = ESCAPE.sub("", text.replace("\t", " ")).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)


def place(written: str) -> tuple[Path, str]:
    """The file that is meant, a relative path starts at the project; and its name as people are shown it."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    return path, plain(path.relative_to(project).as_posix() if path.is_relative_to(project) else written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", help="the JSON file")
    parser.add_argument("--rows", default="", help="how many rows, the first ones")
    parser.add_argument("--columns", default="", help="the columns that are wanted, with commas between")
    parser.add_argument("--where", default="", help="conditions that the rows meet, as city=Oslo or age>5, one a line")
    parser.add_argument(
        "--sort", default="", help="the column that orders the rows; `desc` behind it for the largest first"
    )
    given = parser.parse_args()
    if not re.fullmatch(r"(?:[1-9][0-9]{0,5})?", given.rows):
        raise SystemExit(say(f"{given.rows!r} is no number of rows", f"{given.rows!r} 不是行数"))
    wanted = [name.strip() for name in re.split("[,，、]", given.columns) if name.strip()]
    try:
        most = int(given.rows) if given.rows else None
        found = table(*place(given.input), wanted, most, given.where, given.sort)
    except RecursionError as error:
        raise SystemExit("its values are nested too deeply") from error
    except UnicodeError as error:
        raise SystemExit("the file is no text") from error
    except OSError as error:
        reason = say(f"{given.input!r} cannot be read: {error.strerror}", f"不能读取 {given.input!r}：{error.strerror}")
        raise SystemExit(reason) from error
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
