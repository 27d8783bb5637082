"""Summarises a CSV file as one JSON object on stdout and a Markdown table in `report.md`."""

import argparse
import csv
import io
import json
import re
import sys
import unicodedata
from collections import Counter
from math import fsum
from pathlib import Path

ESCAPE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?")
HIDDEN = frozenset({"Cc", "Cf", "Zl", "Zp"})
THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
HUGE = 1e300  # from here on a sum may be no number any more
FREQUENT = 5
COLUMNS = 500  # columns of a report
TEXT = 200  # characters of a value that are shown

Figures = dict[str, object]


def report(path: Path) -> tuple[dict[str, object], dict[str, Figures]]:
    """`{summary, rows, columns: {name: figures}}` of the file, and the columns by themselves."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    rows = rows_of(text)
    if not rows:
        raise SystemExit("the file is empty")
    head, body = rows[0], [row for row in rows[1:] if any(cell.strip() for cell in row)]
    if len(head) > COLUMNS:
        raise SystemExit(f"the file has {len(head)} columns, more than {COLUMNS}")
    columns = {
        name: figures([row[at] if at < len(row) else "" for row in body]) for at, name in enumerate(names_of(head))
    }
    return {"summary": f"{len(body)} rows, {len(columns)} columns", "rows": len(body), "columns": columns}, columns


def rows_of(text: str) -> list[list[str]]:
    """Each row's cells; a quoted cell may have several lines."""
    csv.field_size_limit(sys.maxsize)
    try:
        return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text)))
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


def figures(cells: list[str]) -> Figures:
    """What a column holds; it is of numbers where every cell that is not empty is one."""
    held = [cell.strip() for cell in cells if cell.strip()]
    numbers = [number for cell in held if (number := as_number(cell)) is not None]
    missing = len(cells) - len(held)
    if held and len(numbers) == len(held):
        total = fsum(numbers)
        return {
            "type": "number",
            "missing": missing,
            "min": min(numbers),
            "max": max(numbers),
            "sum": total,
            "mean": total / len(numbers),
        }
    common = sorted(Counter(held).items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    top = [{"value": plain(value), "count": number} for value, number in common]
    return {"type": "text", "missing": missing, "distinct": len(set(held)), "top": top}


def as_number(cell: str) -> float | None:
    """The number, also with commas between thousands; `1,5` is none, for nobody knows what it means."""
    try:
        number = float(cell.replace(",", "") if THOUSANDS.fullmatch(cell) else cell)
    except ValueError:
        return None
    return number if abs(number) < HUGE and "_" not in cell else None


def plain(text: str) -> str:
    """`text` on one line, without escape sequences, control characters and direction marks, cut where it is long."""
    whole = ESCAPE.sub("", " ".join(text.split())).encode("utf-8", "replace").decode("utf-8")
    return "".join(mark for mark in whole if unicodedata.category(mark) not in HIDDEN)[:TEXT]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path)
    path = parser.parse_args().input
    try:
        found, columns = report(path)
    except OSError as error:
        raise SystemExit(f"{error.filename!r} cannot be read: {error.strerror}") from error
    lines = ["| column | type | missing | figures |", "|---|---|---|---|"]
    for name, held in columns.items():
        rest = {key: value for key, value in held.items() if key not in {"type", "missing"}}
        cells = [name, str(held["type"]), str(held["missing"]), json.dumps(rest, ensure_ascii=False)]
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    Path("report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
