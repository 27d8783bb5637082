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
from datetime import date, timedelta
from difflib import get_close_matches
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
IN_SUMMARY = 3  # columns of numbers in the summary
GROUPS, LISTED = 200, 20  # groups, and rows in an order, in the answer
FIGURES = ("sum", "mean", "min", "max")  # of each group
GROUPS_IN_SUMMARY = 12
UNITS = {
    "天": "day",
    "日": "day",
    "周": "week",
    "星期": "week",
    "月": "month",
    "月份": "month",
    "季度": "quarter",
    "年": "year",
}
UNITS |= {f"{unit}{end}": unit for unit in ("day", "week", "month", "quarter", "year") for end in ("", "s")}
CONDITION = re.compile(r"(.*?)(>=|<=|!=|=|>|<)(.*)", re.DOTALL)
YEAR_FIRST = re.compile(r"(\d{4})[-/.年](\d{1,2})(?:[-/.月](\d{1,2})日?)?月?(?![\d.])")  # 2026-09-03 10:00, 2026年9月
YEAR_LAST = re.compile(r"(\d{1,2})([/.-])(\d{1,2})\2(\d{4})(?!\d)")
FIGURE = {"sum": "合计", "mean": "平均", "median": "中位数", "min": "最小", "max": "最大", "distinct": "不同值"}

Figures = dict[str, Any]
Table = tuple[list[str], list[list[str]]]  # the names of the columns, and the rows


def report(path: Path, source: str, asked: argparse.Namespace) -> dict[str, Any]:
    """`{summary, source, encoding, delimiter, rows, columns: {name: figures}, groups, text}` of the rows asked for."""
    data = path.read_bytes()
    if data.startswith(b"PK\x03\x04"):
        message = "the file is a workbook or an archive: save it as CSV"
        raise SystemExit(say(message, "这是工作簿或压缩文件，请先另存为 CSV"))
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
    body = [(row + [""] * len(head))[: max(len(head), len(row))] for row in body]
    keys = {name for name in head if is_key(name, [row[head.index(name)].strip() for row in body])}
    conditions = [condition(head, body, written) for written in filter(None, asked.where.split("\n"))]
    alternatives = alternatives_of(conditions)
    body = [row for row in body if is_wanted(row, conditions, alternatives)]
    limits = [f"{head[at]} = {say(' or ', ' 或 ').join(values)}" for at, values in alternatives.items()]
    limits += [f"{head[at]} {sign} {value}" for at, sign, value in conditions if sign != "="]
    about = chosen(head, parts_of(asked.about)) if asked.about else []
    if several := [head[at] for at, values in alternatives.items() if len(values) > 1]:  # they are compared
        measure = [name for name in head if name.casefold() == asked.group.casefold() and is_measure(head, body, name)]
        about, asked.group = (about or measure, "") if measure else (about, asked.group)
        asked.group = asked.group or several[0]
    if asked.since or asked.until:
        body, of_days = of_period(head, body, about, asked)
        limits.append(of_days)
    if (
        asked.group
        and (unit := UNITS.get(asked.group.casefold()))
        and asked.group.casefold() not in map(str.casefold, head)
    ):
        head, body = with_unit(head, body, about, asked.group, unit)
    by = chosen(head, [asked.group])[0] if asked.group else ""
    names = [name for name in chosen(head, parts_of(asked.columns)) if name != by]
    columns = {name: figures([row[head.index(name)] for row in body], comma=comma) for name in names}
    if by and asked.top and about and not asked.sort:
        asked.sort = " desc"
    if asked.sort == "rows desc" and "rows" not in head:
        asked.sort, asked.top = "", asked.top or str(GROUPS)  # groups without an order are in that of their rows
    if (
        asked.sort == " desc"
    ):  # no column is named: the first column of numbers that is not a key, else the count of rows
        meant = [name for name in about if name in columns] or names
        numbers = [name for name in meant if columns[name]["type"] == "number" and name not in keys]
        asked.sort = f"{numbers[0]} desc" if numbers else ""
        asked.top = asked.top or "" if numbers else asked.top or str(GROUPS)
    answer = {
        "source": source,
        "encoding": encoding.removesuffix("-sig"),
        "delimiter": separator,
        "rows": len(body),
        **({"where": limits} if limits else {}),
        "columns": columns,
    }
    name = say(f"{source}, {', '.join(limits)}", f"{source}（{', '.join(limits)}）") if limits else source
    if not by:
        listed = [each for each in about if each in columns and each not in keys] or [n for n in about if n in columns]
        told_of = listed or without_keys(columns, keys)
        summary = sentence(name, len(body), len(head), columns, told_of, listed or names, asked)
        first = first_rows((head, body), asked, comma=comma)
        if asked.sort:
            at = head.index(chosen(head, [asked.sort.removesuffix(" desc")])[0])
            summary += say(f"; first by {head[at]}: ", f"；按 {head[at]} 排在前面的：")
            summary += ", ".join(line[2:-2].split(" | ")[at] for line in first[2:7])
        text = "\n".join([*table(columns), *(["", *first] if first else [])])
        return {"summary": summary, **answer, "text": text}
    order = chosen(head, [asked.sort.removesuffix(" desc")])[0] if asked.sort else ""
    groups = groups_of((head, body), by, names, "" if order in keys - {by} else order, asked, comma=comma)
    shown_groups = groups[: int(asked.top) if asked.top else GROUPS]
    numbers = [each for each in names if any(group["columns"][each]["type"] == "number" for group in groups)]
    about = about or ([order] if order and order not in keys else [])
    numbers = (
        [each for each in about if each in numbers] or without_keys({n: columns[n] for n in numbers}, keys) or numbers
    )
    lead = extremes(order, groups, asked) if order in numbers and order not in keys else ""
    return {
        "summary": sentence_of_groups(name, by, shown_groups, numbers, len(groups), figures_of(asked), lead),
        **answer,
        "group": by,
        "groups": shown_groups,
        "text": "\n".join(table_of_groups(by, shown_groups, numbers)),
    }


def parts_of(listed: str) -> list[str]:
    """The names of a list with commas between."""
    return [name.strip() for name in re.split("[,，、]", listed) if name.strip()]


def figures_of(asked: argparse.Namespace) -> list[str]:
    """The figures of a column of numbers that the summary tells: those that are asked for, else sum and mean."""
    order = {"min", "max"} if asked.group and asked.sort else set()  # "which city has the highest sum"
    return [name for name in parts_of(asked.figures) if name in FIGURE.keys() - order - {"distinct"}] or ["sum", "mean"]


def extremes(column: str, groups: list[dict[str, Any]], asked: argparse.Namespace) -> str:
    """The group with the highest or lowest value of a column, if that is asked for: what is highest may be one value of
    a group or its sum, by which the groups are in order."""
    wanted = parts_of(asked.figures)
    key = next((name for name in wanted if name in {"min", "max"}), "")
    having = [group for group in groups if key in group["columns"][column]]
    if not key or not {"sum", "mean", "median"}.isdisjoint(wanted) or not having:
        return ""
    group = (max if key == "max" else min)(having, key=lambda group: group["columns"][column][key])
    value = shown(group["columns"][column][key], group["columns"][column].get("unit", ""))
    word = say({"max": "highest", "min": "lowest"}[key], FIGURE[key])
    return say(f"{word} {column} {value}: {group['value']}", f"{column} {word} {value}：{group['value']}")


def is_key(name: str, cells: Sequence[str]) -> bool:
    """Whether a column numbers the rows, so that its sum means nothing."""
    numbers = [int(cell) for cell in cells if cell.isascii() and cell.isdecimal() and len(cell) < 10]
    counts = len(numbers) == len(cells) > 4 and numbers == [*range(numbers[0], numbers[0] + len(numbers))]
    return counts or NAME_OF_KEY.search(name) is not None


def without_keys(columns: dict[str, Figures], keys: set[str]) -> list[str]:
    """The first columns of numbers without those that only number the rows; if there are no others, with them."""
    numbers = [name for name, column in columns.items() if column["type"] == "number"]
    return ([name for name in numbers if name not in keys] or numbers)[:IN_SUMMARY]


def of_period(
    head: list[str], body: list[list[str]], about: Sequence[str], asked: argparse.Namespace
) -> tuple[list[list[str]], str]:
    """The rows whose date is from `since` to `until`, and how this limit is told. The date is in the first column of
    dates, or in the one that is asked about."""
    since, until = (date.fromisoformat(day) if day else None for day in (asked.since, asked.until))
    days = say(f"{since or '…'} to {until or '…'}", f"{since or '…'} 至 {until or '…'}")
    for at in sorted(range(len(head)), key=lambda at: head[at] not in about):
        dates = dates_of(head[at], [row[at].strip() for row in body])
        if dates:
            inside = [row for row, day in zip(body, dates, strict=True) if day and is_inside(day, since, until)]
            if not inside:
                known = sorted(day for day in dates if day)
                there = say(f"it holds {known[0][0]} to {known[-1][1]}", f"它的范围是 {known[0][0]} 至 {known[-1][1]}")
                return inside, f"{head[at]} {days}{say(f' ({there})', f'（{there}）')}"
            return inside, f"{head[at]} {days}"
    message = f"no column holds dates, so the rows cannot be limited to {days}"
    raise SystemExit(say(message, f"没有日期列，无法只看 {days} 的行"))


def with_unit(
    head: list[str], body: list[list[str]], about: Sequence[str], name: str, unit: str
) -> tuple[list[str], list[list[str]]]:
    """The table with one more column `name`: the day, week, month, quarter or year of each row's date."""
    for at in sorted(range(len(head)), key=lambda at: head[at] not in about):
        if dates := dates_of(head[at], [row[at].strip() for row in body]):
            units = [unit_of(day[0], unit) if day else "" for day in dates]
            return [*head, name], [[*row[: len(head)], label] for row, label in zip(body, units, strict=True)]
    raise SystemExit(say(f"no column holds dates, so there are no groups by {name}", f"没有日期列，无法按{name}分组"))


def unit_of(day: date, unit: str) -> str:
    """`2026-06-30`, `2026-W27`, `2026-06`, `2026-Q2` or `2026`."""
    year, week, _ = day.isocalendar()
    names = {"day": day.isoformat(), "week": f"{year}-W{week:02}", "month": day.isoformat()[:7], "year": str(day.year)}
    return names.get(unit, f"{day.year}-Q{(day.month + 2) // 3}")


def is_inside(days: tuple[date, date], since: date | None, until: date | None) -> bool:
    return (since is None or days[0] >= since) and (until is None or days[1] <= until)


def dates_of(name: str, cells: Sequence[str]) -> list[tuple[date, date] | None]:
    """The first and the last day of each cell, None for an empty one; an empty list if one cell is no date. What may be
    3 April or 4 March is a date only if another cell of the column tells the order."""
    hits = [YEAR_LAST.match(cell) for cell in cells]
    day_first = any(hit and (int(hit[1]) > 12 or hit[2] == ".") for hit in hits)
    month_first = any(hit and int(hit[3]) > 12 for hit in hits)
    dates: list[tuple[date, date] | None] = []
    for cell, hit in zip(cells, hits, strict=True):
        whole = YEAR_FIRST.match(cell)
        try:
            if not cell:
                dates.append(None)
            elif whole and whole[3]:
                dates.append((date(*map(int, whole.groups())),) * 2)
            elif whole:
                year, month = int(whole[1]), int(whole[2])
                dates.append((date(year, month, 1), date(year + month // 12, month % 12 + 1, 1) - timedelta(1)))
            elif hit and day_first != month_first:
                day, month = (int(hit[1]), int(hit[3])) if day_first else (int(hit[3]), int(hit[1]))
                dates.append((date(int(hit[4]), month, day),) * 2)
            elif re.fullmatch(r"(?:19|20)\d\d", cell) and re.search(r"year|年", name, re.IGNORECASE):
                dates.append((date(int(cell), 1, 1), date(int(cell), 12, 31)))
            else:
                return []
        except ValueError:
            return []
    return dates if any(dates) else []


def condition(head: list[str], body: list[list[str]], written: str) -> tuple[int, str, str]:
    """The place of the column, the sign and the value of `amount>5` or `port=Oslo`; a value alone may be in any."""
    hit = CONDITION.fullmatch(written)
    name, sign, value = (part.strip() for part in hit.groups()) if hit else ("", "=", written.strip())
    if not name:
        sign = "!=" if sign == "!=" else "="
        places = [at for at in range(len(head)) if any(is_met(row[at].strip(), "=", value) for row in body)]
        if not places:
            raise SystemExit(no_value(value, [row[at] for row in body for at in range(len(head))], ""))
        cells = [row[places[0]].strip() for row in body]
        return places[0], sign, next((cell for cell in cells if cell.casefold() == value.casefold()), value)
    at = head.index(chosen(head, [name])[0])
    cells = [row[at].strip() for row in body]
    if sign in {"=", "!="} and not any(is_met(cell, "=", value) for cell in cells):
        others = [place for place in range(len(head)) if any(is_met(row[place].strip(), "=", value) for row in body)]
        if len(others) != 1:
            raise SystemExit(no_value(value, cells, head[at]))
        at, cells = others[0], [row[others[0]].strip() for row in body]  # "how many loans are open"
    if sign in {">", "<", ">=", "<="} and not any(map(number_in, cells)):
        raise SystemExit(say(f"the column {head[at]!r} holds no numbers", f"{head[at]!r} 这一列不是数字"))
    return at, sign, next((cell for cell in cells if cell.casefold() == value.casefold()), value)


def alternatives_of(conditions: Sequence[tuple[int, str, str]]) -> dict[int, list[str]]:
    """The values that each column may have, by its place."""
    values: dict[int, list[str]] = {}
    for at, sign, value in conditions:
        if sign == "=":
            values.setdefault(at, []).append(value)
    return values


def is_wanted(
    row: Sequence[str], conditions: Sequence[tuple[int, str, str]], alternatives: dict[int, list[str]]
) -> bool:
    """Whether a row fulfils every condition, of those with `=` for the same column any."""
    others = (is_met(row[at].strip(), sign, value) for at, sign, value in conditions if sign != "=")
    return all(others) and all(
        any(is_met(row[at].strip(), "=", value) for value in values) for at, values in alternatives.items()
    )


def is_measure(head: list[str], body: list[list[str]], name: str) -> bool:
    """Whether all values of a column are numbers, so that groups by it compare nothing."""
    cells = [row[head.index(name)].strip() for row in body]
    return any(cells) and all(map(number_in, filter(None, cells)))


def no_value(value: str, cells: Sequence[str], column: str) -> str:
    """The message for a value that no cell holds, with the values that are like it, else the most frequent ones."""
    kinds = [cell for cell, _ in Counter(plain(cell) for cell in cells if cell.strip()).most_common(1_000)]
    words = [cell for cell in kinds if not number_in(cell)] or kinds
    near = words if len(words) <= 8 else get_close_matches(value, words, 3, 0.6) or words[:8]
    listed, chinese = ", ".join(map(repr, near)), f"{column!r} 这一列" if column else "表中"
    message = f"there is no {value!r} in {f'the column {column!r}' if column else 'the table'}: there are {listed}"
    return say(message, f"{chinese}没有 {value!r}，有 {listed}")


def is_met(cell: str, sign: str, value: str) -> bool:
    """Whether the cell fulfils the condition; letter case says nothing, and `5` is `5.0`."""
    left, right = number_in(cell), number_in(value)
    if sign in {"=", "!="}:
        same = cell.casefold() == value.casefold() or (left is not None and left == right)
        return same is (sign == "=")
    if left is None or right is None:
        return False
    return {">": left > right, "<": left < right, ">=": left >= right, "<=": left <= right}[sign]


def number_in(cell: str) -> list[float] | None:
    """The number of a cell, also with a currency or percent sign, as a list of it; None where it is none."""
    bare = without_unit([cell])[0][0]
    return [number for number in (as_number(bare), with_comma(bare)) if number is not None][:1] or None


def groups_of(
    rows: Table, by: str, names: Sequence[str], column: str, asked: argparse.Namespace, *, comma: bool
) -> list[dict[str, Any]]:
    """`{value, rows, columns: {name: figures}}` of each value of the column `by`, in the order of the means or medians
    of `column` if they are asked for, else of its sums; without a column, but with an order, of the numbers of rows."""
    head, body = rows
    rows_with: dict[str, list[list[str]]] = {}
    for row in body:
        rows_with.setdefault(plain(row[head.index(by)]), []).append(row)
    groups: list[dict[str, Any]] = []
    for value, some in rows_with.items():
        columns = {name: figures([row[head.index(name)] for row in some], comma=comma) for name in names}
        groups.append({"value": value, "rows": len(some), "columns": columns})
    figure = next((name for name in parts_of(asked.figures) if name in {"sum", "mean", "median"}), "sum")
    if column and column != by:
        sums = {group["value"]: group["columns"].get(column, {}).get(figure, 0.0) for group in groups}
        return sorted(groups, key=lambda group: sums[group["value"]], reverse=" desc" in asked.sort)
    if not column and (asked.top or asked.sort):
        falls = not asked.sort or " desc" in asked.sort
        return sorted(groups, key=lambda group: (-group["rows"] if falls else group["rows"], group["value"]))
    return sorted(groups, key=lambda group: group["value"], reverse=" desc" in asked.sort)


def sentence_of_groups(
    source: str, by: str, groups: list[dict[str, Any]], numbers: list[str], total: int, keys: Sequence[str], lead: str
) -> str:
    """The `lead`, and the figures `keys` of each group, in the person's language."""
    clauses = [lead] if lead else []
    for group in groups[:GROUPS_IN_SUMMARY]:
        parts = [say(many(group["rows"], "row"), f"{group['rows']:,} 行")]
        columns = [
            (name, group["columns"][name])
            for name in numbers[:IN_SUMMARY]
            if group["columns"][name]["type"] == "number"
        ]
        parts += [f"{name} {told(column, keys)}" for name, column in columns]
        clauses.append(f"{group['value'] or '?'}{say(': ', '：')}{say(', ', '，').join(parts)}")
    clauses += (
        [say(f"and {more:,} more", f"还有 {more:,} 个")] if (more := total - len(groups[:GROUPS_IN_SUMMARY])) else []
    )
    return say(f"{source} by {by}: {'; '.join(clauses)}", f"{source} 按{by}：{'；'.join(clauses)}")


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |" for cells in (heads, *rows)]
    return [lines[0], "|---" * len(heads) + "|", *lines[1:]]


def table_of_groups(by: str, groups: list[dict[str, Any]], numbers: list[str]) -> list[str]:
    """The lines of a Markdown table, a row for each group."""
    words = say("sum mean min max", "合计 平均 最小 最大").split()
    rows = []
    for group in groups:
        cells = [group["value"], f"{group['rows']:,}"]
        for column in (group["columns"][name] for name in numbers):
            cells += [shown(column[key], column.get("unit", "")) if key in column else "" for key in FIGURES]
        rows.append(cells)
    return markdown([by, say("rows", "行数"), *(f"{name} {word}" for name in numbers for word in words)], rows)


def first_rows(rows: Table, asked: argparse.Namespace, *, comma: bool) -> list[str]:
    """The lines of a Markdown table of the rows themselves, if an order or a number of them is asked for."""
    head, body = rows
    if not asked.sort and not asked.top:
        return []
    if asked.sort:
        at = head.index(chosen(head, [asked.sort.removesuffix(" desc")])[0])
        full = [row for row in body if row[at].strip()]
        numbers = numbers_of(without_unit([row[at].strip() for row in full])[0], comma=comma)
        keyed = list(zip(numbers or [row[at].strip() for row in full], full, strict=True))
        ordered = [row for _, row in sorted(keyed, key=lambda item: item[0], reverse=" desc" in asked.sort)]
        body = ordered + [row for row in body if not row[at].strip()]
    return markdown(head, [[plain(cell) for cell in row[: len(head)]] for row in body[: int(asked.top or LISTED)]])


def sentence(
    source: str,
    rows: int,
    width: int,
    columns: dict[str, Figures],
    about: Sequence[str],
    complete: Sequence[str],
    asked: argparse.Namespace,
) -> str:
    """Rows, columns, the figures of the columns `about`, and where values of the columns `complete` are missing, in the
    person's language."""
    clauses = [say(f"{many(rows, 'row')}, {many(width, 'column')}", f"{rows:,} 行、{width:,} 列")]
    for name in about:
        column, distinct = columns[name], "distinct" in parts_of(asked.figures)
        if column["type"] == "number" and not distinct:
            clauses.append(f"{name}{say(': ', '：')}{told(column, figures_of(asked))}")
        elif "distinct" in column and column["top"]:
            top = ", ".join(f"{each['value']} ({each['count']:,})" for each in column["top"][:IN_SUMMARY])
            kinds = column["distinct"]
            clauses.append(
                say(f"{name}: {kinds:,} different, most often {top}", f"{name}：{kinds:,} 种，最多的是 {top}")
            )
    empty = [(name, columns[name]["missing"]) for name in complete]
    if "missing" in parts_of(asked.figures) and not any(number for _, number in empty):
        clauses.append(say("no missing values", "没有缺失值"))
    if empty := [(name, number) for name, number in empty if number]:
        listed = ", ".join(f"{name} {number:,}" for name, number in empty[:IN_SUMMARY])
        clauses.append(say(f"missing values: {listed}", f"缺失值：{listed}"))
    return say(f"{source}: {'; '.join(clauses)}", f"{source}：{'；'.join(clauses)}")


def told(column: Figures, keys: Sequence[str]) -> str:
    """The figures `keys` of a column of numbers: `sum 12, mean 3`."""
    names = [say(key, FIGURE[key]) for key in keys]
    figures = [shown(column[key], column.get("unit", "")) for key in keys]
    return say(", ", "，").join(f"{name} {figure}" for name, figure in zip(names, figures, strict=True))


def table(columns: dict[str, Figures]) -> list[str]:
    """The lines of a Markdown table, a row for each column of the file."""
    heads = say(
        "column type missing sum mean median min max frequent", "列 类型 缺失 合计 平均 中位数 最小 最大 常见值"
    ).split()
    rows = []
    for name, column in columns.items():
        kind = say(column["type"], "数字" if column["type"] == "number" else "文本")
        keys = ("sum", "mean", "median", "min", "max")
        numbers = [shown(column[key], column.get("unit", "")) if key in column else "" for key in keys]
        common = ", ".join(f"{top['value']} ({top['count']})" for top in column.get("top", ()))
        rows.append([name, kind, f"{column['missing']:,}", *numbers, common])
    return markdown(heads, rows)


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
        message = f"there is no column {unknown!r}: there are {there}"
        raise SystemExit(say(message, f"没有 {unknown!r} 这一列，只有 {there}"))
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
    filled = [cell.strip() for cell in cells if cell.strip()]
    missing = len(cells) - len(filled)
    bare, unit = without_unit(filled)
    if numbers := numbers_of(bare, comma=comma):
        total = fsum(numbers)
        found: Figures = {"type": "number", "missing": missing, "min": min(numbers), "max": max(numbers), "sum": total}
        found |= {"mean": total / len(numbers), "median": median(numbers)}
        return {**found, "unit": unit} if unit else found
    common = sorted(Counter(filled).items(), key=lambda item: (-item[1], item[0]))[:FREQUENT]
    top = [{"value": plain(value), "count": number} for value, number in common]
    return {"type": "text", "missing": missing, "distinct": len(set(filled)), "top": top}


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
    parser.add_argument("--group", default="", help="the column by whose values the rows are summed up")
    parser.add_argument(
        "--where", default="", help="conditions that the rows meet, as port=Oslo or amount>5, one a line"
    )
    parser.add_argument(
        "--sort",
        default="",
        help="the column that orders rows or groups; `desc` behind it for the largest first",
    )
    parser.add_argument("--top", default="", help="how many rows or groups")
    parser.add_argument("--about", default="", help="the columns that the summary tells, with commas between")
    parser.add_argument("--figures", default="", help=f"the figures that it tells: {', '.join(FIGURE)}, missing")
    parser.add_argument("--since", default="", help="the first day that counts, as 2026-11-30")
    parser.add_argument("--until", default="", help="the last day that counts")
    given = parser.parse_args()
    if not re.fullmatch(r"(?:[1-9][0-9]{0,5})?", given.top):
        raise SystemExit(say(f"{given.top!r} is no number of rows", f"{given.top!r} 不是行数"))
    try:
        found = report(*place(given.input), given)
    except OSError as error:
        reason = say(f"{given.input!r} cannot be read: {error.strerror}", f"不能读取 {given.input!r}：{error.strerror}")
        raise SystemExit(reason) from error
    Path("report.md").write_text(f"{found['text']}\n", encoding="utf-8")
    sys.stdout.write(json.dumps(found, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
