"""Summarises a CSV file as one JSON object on stdout and a Markdown table in `report.md`."""

import argparse
import csv
import json
import math
from collections import Counter
from pathlib import Path

FREQUENT = 5


def report(path: Path) -> dict[str, object]:
    """`{summary, rows, columns: {name: figures}}` of the file."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    rows = list(csv.reader(text.splitlines(), delimiter=delimiter(text)))
    if not rows:
        raise SystemExit("the file is empty")
    head, body = rows[0], [row for row in rows[1:] if any(cell.strip() for cell in row)]
    columns = {
        name or f"column {at + 1}": figures([row[at] if at < len(row) else "" for row in body])
        for at, name in enumerate(head)
    }
    return {"summary": f"{len(body)} rows, {len(columns)} columns", "rows": len(body), "columns": columns}


def delimiter(text: str) -> str:
    """The one of four that the first line has most of."""
    first = text.split("\n", 1)[0]
    return max(",;\t|", key=first.count)


def figures(cells: list[str]) -> dict[str, object]:
    """What a column holds; it is of numbers where every cell that is not empty is one."""
    held = [cell.strip() for cell in cells if cell.strip()]
    numbers = [number for cell in held if (number := as_number(cell)) is not None]
    missing = len(cells) - len(held)
    if held and len(numbers) == len(held):
        total = math.fsum(numbers)
        return {
            "type": "number",
            "missing": missing,
            "min": min(numbers),
            "max": max(numbers),
            "sum": total,
            "mean": total / len(numbers),
        }
    common = sorted(Counter(held).items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    top = [{"value": value, "count": number} for value, number in common]
    return {"type": "text", "missing": missing, "distinct": len(set(held)), "top": top}


def as_number(cell: str) -> float | None:
    try:
        number = float(cell.replace(",", ""))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("input", type=Path)
    found = report(parser.parse_args().input)
    lines = ["| column | type | missing | figures |", "|---|---|---|---|"]
    for name, held in found["columns"].items():  # type: ignore[attr-defined]  # made above
        rest = {key: value for key, value in held.items() if key not in {"type", "missing"}}
        lines.append(f"| {name} | {held['type']} | {held['missing']} | {json.dumps(rest, ensure_ascii=False)} |")
    Path("report.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(json.dumps(found, ensure_ascii=False))


if __name__ == "__main__":
    main()
