"""Summarises a CSV file as one JSON object on stdout and a Markdown table in `report.md`."""

import argparse
import csv
import io
import json
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from math import fsum
from pathlib import Path
from statistics import median
from typing import Any

CHINESE = os.environ.get("NAVIGATOR_LANGUAGE") == "zh"
ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
COMMA = re.compile(r"([+-]?(?:\d{1,3}(?:[. '\u00a0\u202f]\d{3})+|\d+))(?:,(\d+))?")  # 1.234,56
ONLY_COMMA = re.compile(r"[+-]?\d[\d. ]*,(?:\d{1,2}|\d{4,})")  # a number with a decimal comma and nothing else
ONLY_POINT = re.compile(r"[+-]?[\d,]*\.(?:\d{1,2}|\d{4,})")
SIGNED = re.compile(r"([+-]?)\s?([$€£¥￥₹₩])\s?(.+)|(.+?)\s?([%％$€£¥￥₹₩元])")
NAME_OF_KEY = re.compile(
    r"(?:^|[\s_-])(?:id|no|nr|code|year|zip|index)\.?$|[a-z]Id$|编号|序号|号码|单号|年份", re.IGNORECASE
)
ASCII = bytes(range(128))
UTF_8 = re.compile(rb"(?:[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3})+")
GB = re.compile(rb"(?:[\x81-\xfe][\xa1-\xfe])+")
MOST = 0.8  # of the bytes beyond ASCII that tell an encoding
HUGE = 1e300  # from here on a sum may be no number any more
FREQUENT = 5
COLUMNS = 500  # columns of a report
TEXT = 200  # characters of a value that are shown
TOLD = 3  # columns that the summary tells of

Figures = dict[str, Any]


def report(path: Path, source: str, wanted: Sequence[str]) -> dict[str, Any]:
    """`{summary, source, encoding, delimiter, rows, columns: {name: figures}, text}` of the file."""
    data = path.read_bytes()
    if data.startswith(b"PK\x03\x04"):
        raise SystemExit(
            say("the file is a workbook or an archive: save it as CSV", "这是工作簿或压缩文件，请先另存为 CSV")
        )
    encoding = encoding_of(data)
    text = data.decode(encoding, "replace")
    separator = delimiter(text)
    rows = rows_of(text, separator)
    if not rows:
        raise SystemExit(say("the file is empty", "文件是空的"))
    head, body = names_of(rows[0]), [row for row in rows[1:] if any(cell.strip() for cell in row)]
    if len(head) > COLUMNS:
        raise SystemExit(f"the file has {len(head)} columns, more than {COLUMNS}")
    comma = has_decimal_commas(body)
    columns = {
        name: figures([row[head.index(name)] if head.index(name) < len(row) else "" for row in body], comma=comma)
        for name in chosen(head, wanted)
    }
    return {
        "summary": sentence(source, len(body), len(head), columns),
        "source": source,
        "encoding": encoding.removesuffix("-sig"),
        "delimiter": separator,
        "rows": len(body),
        "columns": columns,
        "text": "\n".join(table(columns)),
    }


def sentence(source: str, rows: int, width: int, columns: dict[str, Figures]) -> str:
    """Rows, columns, and the figures of the first columns of numbers that are no keys, in the person's language."""
    told = [say(f"{many(rows, 'row')}, {many(width, 'column')}", f"{rows:,} 行、{width:,} 列")]
    numbers = [name for name, held in columns.items() if held["type"] == "number"]
    for name in ([name for name in numbers if not NAME_OF_KEY.search(name)] or numbers)[:TOLD]:
        total, mean = (shown(columns[name][key], columns[name].get("unit", "")) for key in ("sum", "mean"))
        told.append(say(f"{name}: sum {total}, mean {mean}", f"{name}：合计 {total}，平均 {mean}"))
    empty = [(name, held["missing"]) for name, held in columns.items() if held["missing"]]
    if empty:
        listed = ", ".join(f"{name} {number:,}" for name, number in empty[:TOLD])
        told.append(say(f"missing values: {listed}", f"缺失值：{listed}"))
    return say(f"{source}: {'; '.join(told)}", f"{source}：{'；'.join(told)}")


def table(columns: dict[str, Figures]) -> list[str]:
    """The lines of a Markdown table, a row for each column of the file."""
    heads = say(
        "column type missing sum mean median min max frequent", "列 类型 缺失 合计 平均 中位数 最小 最大 常见值"
    ).split()
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, held in columns.items():
        kind = say(held["type"], "数字" if held["type"] == "number" else "文本")
        keys = ("sum", "mean", "median", "min", "max")
        numbers = [shown(held[key], held.get("unit", "")) if key in held else "" for key in keys]
        common = ", ".join(f"{top['value']} ({top['count']})" for top in held.get("top", ()))
        cells = [name, kind, f"{held['missing']:,}", *numbers, common]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return lines


def shown(number: float, unit: str) -> str:
    """A number as people write it: two decimals, more where it is small."""
    text = f"{number:,.2f}" if abs(number) >= 1 or not number else f"{number:.3g}"
    text = text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text
    return f"{text}{unit}" if unit in "%％元" else f"{unit}{text}"


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
        raise SystemExit(
            say(f"there is no column {unknown!r}: there are {there}", f"没有 {unknown!r} 这一列，只有 {there}")
        )
    return [name if name in names else alike[name.casefold()] for name in wanted] or names


def rows_of(text: str, separator: str) -> list[list[str]]:
    """Each row's cells; a quoted cell may have several lines."""
    csv.field_size_limit(sys.maxsize)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    except csv.Error as error:
        raise SystemExit(f"the file is no table: {error}") from error


def names_of(head: list[str]) -> list[str]:
    """A name for each column: its place where it has none, its place behind it where it is taken."""
    names: list[str] = []
    for at, cell in enumerate(head, start=1):
        name = plain(cell) or f"column {at}"
        names.append(f"{name} ({at})" if name in names else name)
    return names


def delimiter(text: str) -> str:
    """The one of four that the first line has most of."""
    first = text.split("\n", 1)[0]
    return max(",;\t|", key=first.count)


def has_decimal_commas(rows: list[list[str]]) -> bool:
    """Whether more cells have a decimal comma than a decimal point."""
    cells = [cell.strip() for row in rows for cell in row]
    return sum(map(bool, map(ONLY_COMMA.fullmatch, cells))) > sum(map(bool, map(ONLY_POINT.fullmatch, cells)))


def figures(cells: list[str], *, comma: bool) -> Figures:
    """What a column holds; it is of numbers where every cell that is not empty is one, all with the same unit."""
    held = [cell.strip() for cell in cells if cell.strip()]
    missing = len(cells) - len(held)
    bare, unit = without_unit(held)
    if numbers := numbers_of(bare, comma=comma):
        total = fsum(numbers)
        found: Figures = {"type": "number", "missing": missing, "min": min(numbers), "max": max(numbers), "sum": total}
        found |= {"mean": total / len(numbers), "median": median(numbers)}
        return {**found, "unit": unit} if unit else found
    common = sorted(Counter(held).items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    top = [{"value": plain(value), "count": number} for value, number in common]
    return {"type": "text", "missing": missing, "distinct": len(set(held)), "top": top}


def without_unit(cells: list[str]) -> tuple[list[str], str]:
    """The cells without the currency or percent sign that all of them have, and the sign."""
    hits = [SIGNED.fullmatch(cell) for cell in cells]
    units = {hit and (hit[2] or hit[5]) for hit in hits}
    unit = units.pop() if len(units) == 1 else None
    if unit is None:
        return cells, ""
    return [f"{hit[1]}{hit[3]}" if hit[2] else hit[4] for hit in hits if hit], unit


def numbers_of(cells: list[str], *, comma: bool) -> list[float]:
    """The numbers, all read in one way; empty where one cell is none."""
    readings: list[Callable[[str], float | None]] = [with_comma, as_number] if comma else [as_number]
    for reading in readings:
        numbers = [number for cell in cells if (number := reading(cell)) is not None]
        if len(numbers) == len(cells):
            return numbers
    return []


def with_comma(cell: str) -> float | None:
    """The number that is written with a decimal comma, also with points or blanks between thousands."""
    hit = COMMA.fullmatch(cell)
    return as_number(re.sub(r"[^\d+-]", "", hit[1]) + f".{hit[2] or 0}") if hit else None


def as_number(cell: str) -> float | None:
    """The number, also with commas between thousands; `1,5` is none."""
    try:
        number = float(cell.replace(",", "") if THOUSANDS.fullmatch(cell) else cell)
    except ValueError:
        return None
    return number if abs(number) < HUGE and "_" not in cell else None


def encoding_of(data: bytes) -> str:
    """By the first bytes, else by what most of the bytes beyond ASCII form: UTF-8, GB18030, or single characters."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    beyond = len(data.translate(None, ASCII))
    if sum(map(len, UTF_8.findall(data))) >= beyond * MOST:
        return "utf-8-sig"
    return "gb18030" if sum(map(len, GB.findall(data))) >= beyond * MOST else "cp1252"


def plain(text: str) -> str:
    """`text` on one line, without escape sequences, control characters and direction marks, cut where it is long."""
    whole = ESCAPE.sub("", " ".join(text.split())).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)[:TEXT]


def place(written: str) -> tuple[Path, str]:
    """The file that is meant, a relative path starts at the project; and its name as people are shown it."""
    project = Path(os.path.realpath(os.environ.get("NAVIGATOR_PROJECT", ".")))
    path = Path(os.path.realpath(project / written))
    return path, plain(path.relative_to(project).as_posix() if path.is_relative_to(project) else written)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", help="the CSV file")
    parser.add_argument("--columns", default="", help="the columns that are wanted, with commas between")
    given = parser.parse_args()
    wanted = [name.strip() for name in re.split("[,，、]", given.columns) if name.strip()]
    try:
        found = report(*place(given.input), wanted)
    except OSError as error:
        told = say(f"{given.input!r} cannot be read: {error.strerror}", f"不能读取 {given.input!r}：{error.strerror}")
        raise SystemExit(told) from error
    Path("report.md").write_text(f"{found['text']}\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
