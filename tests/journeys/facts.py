"""What is true of a made project, read from its files and from git with the standard library: no code of the kernel, none of
`project.py`.

A fact of `requests.tsv` is a text in quotes, or the name of a method and its arguments: `total: data/a.csv, price`. Each fact is a list
of patterns of which one must be in the answer, because a question may have several fair answers (words with or without numbers).
"""

from __future__ import annotations

import csv
import datetime as dt
import itertools
import json
import math
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

LEVEL = re.compile(r"\[([A-Z]+)\] (.*)|level=([A-Z]+) msg=\"(.*?)\"")
MARK = re.compile(r"(?<![A-Za-z_])(TODO|FIXME|XXX|HACK)(?![A-Za-z_])|待办")
IN_TEXT = {"ERROR": "errors?|错误", "WARNING": "warn(?:ing)?s?|警告|告警", "WARN": "warn(?:ing)?s?|警告|告警"}
BETWEEN = "counts?|times|commits?|changes?|by|with|has|made|occurs|appears|is|出现|提交|改动|共|有|次|了|个"
NOT_THERE = r"\bno\b|\bnot\b|n't\b|没有|找不到|不存在|未找到|不在"
OTHER_LISTS = "newest|latest|duplicate|最新|最近|重复"
LEFT_OUT = ("node_modules/", "build/", ".claude/", ".git/", "mybox/")


@dataclass(frozen=True)
class Facts:
    root: Path
    today: dt.date

    def of(self, cell: str) -> dict[str, list[str]]:
        """The facts of a cell, between which is `; `, each with its patterns; `{today}` and `{yesterday}` are dates."""
        yesterday = self.today - dt.timedelta(days=1)
        items = cell.format(today=self.today, yesterday=yesterday).split("; ") if cell else []
        return {item: [re.escape(item[1:-1])] if item.startswith('"') else self.named(item) for item in items}

    def named(self, item: str) -> list[str]:
        name, _, arguments = item.partition(": ")
        patterns: list[str] = getattr(self, name)(*(arguments.split(", ") if arguments else ()))
        return patterns

    # Texts
    def words(self, name: str) -> list[str]:
        text = self.text(name)
        latin, marked = re.findall(r"[A-Za-z]+", text), [word for word in text.split() if re.search(r"\w", word)]
        fair = [len(text.split()), len(re.findall(r"\w+", text)), len(latin), len(marked)]
        if han := len(re.findall(r"[\u4e00-\u9fff]", text)):
            fair = [han, han + len(latin)]
        return beside(r"words?|词|字|han", *fair)

    def lines(self, name: str) -> list[str]:
        return beside("lines?|行", self.text(name).count("\n"))

    def frequent(self, name: str, rank: str) -> list[str]:
        word, count = ranked(Counter(re.findall(r"[a-z]+", self.text(name).lower())), int(rank))
        return spoken(word, count)

    def spoken_in_marks(self, folder: str, word: str) -> list[str]:
        return spoken(word, sum(len(re.findall(rf"\b{word}\b", line)) for *_, line in self.marked(folder)))

    def in_each_mark(self, folder: str, key: str) -> list[str]:
        """The name of a field of the list of marks."""
        return spoken(key, len(self.marked(folder)))

    # Tables
    def rows(self, name: str) -> list[str]:
        return beside("rows?|records?|lines?|行|条", len(self.table(name)))

    def total(self, name: str, column: str) -> list[str]:
        return number(round(sum(self.column(name, column)), 6))

    def total_of(self, name: str, column: str, key: str, value: str) -> list[str]:
        """The sum of a column in the rows whose `key` is the value."""
        rows = [row for row in self.table(name) if row[key] == value]
        return number(round(sum(float(str(row[column]).replace(",", ".")) for row in rows if row[column] != ""), 6))

    def mean(self, name: str, column: str) -> list[str]:
        values = self.column(name, column)
        return number(sum(values) / len(values))

    def most(self, name: str, column: str) -> list[str]:
        return spoken(*ranked(Counter(str(row[column]) for row in self.table(name)), 1))

    def in_each(self, name: str, key: str) -> list[str]:
        """The name of a column, which stands in each record of a JSON file but once in a table."""
        return spoken(key, len(self.table(name)))

    # Logs
    def level(self, name: str, level: str) -> list[str]:
        return beside(IN_TEXT[level], sum(level == found for found, _ in self.log(name)))

    def error(self, name: str, rank: str) -> list[str]:
        errors = Counter(re.sub(r"\d+", "0", text) for level, text in self.log(name) if level == "ERROR")
        text, count = ranked(errors, int(rank))
        return beside(re.escape(text).replace("0", r"\S+"), count)

    # Marks in code
    def marks(self, folder: str) -> list[str]:
        """Every mark, or TODO and FIXME; in the whole project with the vendored code or without it."""
        fair = []
        for found in (self.marked(folder), [one for one in self.marked(folder) if not one[0].startswith("vendor/")]):
            tags = Counter(tag for _, tag, _ in found)
            fair += [len(found), tags["TODO"] + tags["FIXME"]]
        return beside("todos?|marks?|total|comments?|待办|标记|注释|处|个|条", *fair)

    def tag(self, name: str, tag: str) -> list[str]:
        return beside(f"{tag}s?", sum(tag == found for _, found, _ in self.marked(name)))

    # History
    def commits(self, *period: str) -> list[str]:
        return beside("commits?|提交|次", *(len(authors) for authors in self.authors(*period)))

    def author(self, rank: str, *period: str) -> list[str]:
        fair = [spoken(*ranked(Counter(authors), int(rank))) for authors in self.authors(*period) if authors]
        return [*itertools.chain(*fair)] or beside("commits?|提交|次", 0)

    def by(self, author: str) -> list[str]:
        """How many commits that person made in all."""
        return spoken(author, self.authors()[0].count(author))

    def changed(self, rank: str) -> list[str]:
        names = self.git("log", "--name-only", "--format=").split("\n")
        return spoken(*ranked(Counter(filter(None, names)), int(rank)))

    # Folders
    def largest(self, folder: str, rank: str) -> list[str]:
        """The file's name, but not in a list of the newest files or of duplicates."""
        sizes = {path.name: path.stat().st_size for path in (self.root / folder).rglob("*") if path.is_file()}
        return [rf"^(?!.*(?:{OTHER_LISTS})).*{re.escape(ranked(Counter(sizes), int(rank))[0])}"]

    def same(self, folder: str) -> list[str]:
        """The names of files with the same bytes, in one line, from the project or from the folder."""
        groups: dict[bytes, list[str]] = {}
        for path in sorted(path for path in (self.root / folder).rglob("*") if path.is_file()):
            groups.setdefault(path.read_bytes(), []).append(re.escape(path.relative_to(self.root / folder).as_posix()))
        (group,) = (names for names in groups.values() if len(names) > 1)
        return [r"[^\n]*".join(names) for names in itertools.permutations(group)]

    # Refusals
    def absent(self) -> list[str]:
        return [NOT_THERE]

    # What the facts are computed from
    def text(self, name: str) -> str:
        data = (self.root / name).read_bytes()
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("gb18030")
        return text.replace("\r\n", "\n")

    def table(self, name: str) -> list[dict[str, object]]:
        text = self.text(name)
        if name.endswith(".json"):
            return list(json.loads(text))
        if name.endswith(".jsonl"):
            return [json.loads(line) for line in text.splitlines()]
        return list(csv.DictReader(text.splitlines(), delimiter=";" if ";" in text.split("\n")[0] else ","))

    def column(self, name: str, column: str) -> list[float]:
        """The numbers of a column, in which a comma is a decimal comma; empty cells are left out."""
        return [float(str(row[column]).replace(",", ".")) for row in self.table(name) if row[column] != ""]

    def log(self, name: str) -> list[tuple[str, str]]:
        """Level and message of each line that has them."""
        found = filter(None, map(LEVEL.search, self.text(name).splitlines()))
        return [(hit[1] or hit[3], hit[2] or hit[4]) for hit in found]

    def marked(self, folder: str) -> list[tuple[str, str, str]]:
        """File, tag and line of each mark of the code in a file or folder."""
        top = self.root / folder
        names = [path.relative_to(self.root).as_posix() for path in sorted(top.rglob("*") if top.is_dir() else [top])]
        code = [name for name in names if name.endswith((".py", ".go", ".sh")) and not name.startswith(LEFT_OUT)]
        lines = [(name, MARK.search(line), line) for name in code for line in self.text(name).splitlines()]
        return [(name, mark[0], line) for name, mark, line in lines if mark]

    def authors(self, period: str = "") -> list[list[str]]:
        """The author of each commit of a period, for each fair reading of that period."""
        commits = [line.split("\t") for line in self.git("log", "--format=%as\t%an").splitlines()]
        return [[who for day, who in commits if first <= day < after] for first, after in self.periods(period)]

    def periods(self, period: str) -> list[tuple[str, str]]:
        """First day, and the day after the last, as ISO dates."""
        month = self.today.replace(day=1)
        before = (month - dt.timedelta(days=1)).replace(day=1)
        june = dt.date(self.today.year - (self.today.month < 6), 6, 1)
        quarter = month.replace(month=(month.month - 1) // 3 * 3 + 1)
        last_quarter = (quarter - dt.timedelta(days=80)).replace(day=1)
        named = {
            "": [(dt.date.min, dt.date.max)],
            "june": [(june, dt.date.max)],
            "last month": [(before, month)],
            "last quarter": [(last_quarter, quarter), (self.today - dt.timedelta(days=91), dt.date.max)],
        }
        if period not in named:  # a month, such as 2026-07
            first = dt.date.fromisoformat(f"{period}-01")
            named[period] = [(first, (first + dt.timedelta(days=31)).replace(day=1))]
        return [(str(first), str(after)) for first, after in named[period]]

    def git(self, *words: str) -> str:
        command = ["git", "-c", "core.quotepath=off", "-C", str(self.root), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def number(value: float) -> list[str]:
    """Ways to write a number: with or without commas between thousands, rounded to one, two or three decimals, or with
    more; not the number of a line."""
    if value == int(value):
        fair = [rf"{value:,.0f}(?:\.0+)?"]
    else:
        fair = [rf"{value:,.{digits}f}0*" for digits in (3, 2, 1)] + [rf"{math.floor(value * 1000) / 1000:,.3f}\d+"]
        fair = [text.replace(".", r"\.") for text in fair]
    return [rf"(?<![A-Za-z0-9_.,-])(?<!line: ){text.replace(',', '[, ]?')}(?!\d|[.,:-]\d)" for text in fair]


def beside(label: str, *values: float) -> list[str]:
    """A number and its label in one line, in either order."""
    patterns = [pattern for value in dict.fromkeys(values) for pattern in number(value)]
    return [way for one in patterns for way in (rf"(?:{label})[^\n]{{0,60}}?{one}", rf"{one}[^\n]{{0,60}}?(?:{label})")]


def spoken(word: str, count: int) -> list[str]:
    """A word or name close to its number, with no other number or word between but those of `BETWEEN`."""
    between = rf"[^\w\n]{{0,8}}(?:(?:{BETWEEN})[^\w\n]{{0,8}}){{0,4}}"
    label, (one,) = rf"(?<![A-Za-z]){re.escape(word)}(?![A-Za-z])", number(count)
    return [f"{label}{between}{one}", f"{one}{between}{label}"]


def ranked(counts: Counter[str], rank: int) -> tuple[str, int]:
    """The entry of a rank, from 1, which must not depend on how ties are sorted."""
    word, count = counts.most_common()[rank - 1]
    assert list(counts.values()).count(count) == 1, (word, count)
    return word, count


def stands_in(patterns: Iterable[str], text: str) -> bool:
    return any(re.search(pattern, text, re.IGNORECASE | re.MULTILINE) for pattern in patterns)
