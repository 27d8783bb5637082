"""csv-report: the figures match the generated table."""

from __future__ import annotations

import csv
import io
import random
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from shipped.place import ESCAPES, Place

pytestmark = pytest.mark.sample(2)

WORDS = ("Bonn", "Kiel", "北京", "a,b", 'say "so"', "two\nlines", "x|y", "")


def table(seed: int, delimiter: str) -> tuple[str, list[list[str]]]:
    """A made-up table of two columns of numbers and two of words."""
    dice = random.Random(seed)
    rows = [
        [str(dice.randint(-99, 99)), dice.choice(("", f"{dice.randint(0, 10**6) / 100:.2f}")), dice.choice(WORDS), "k"]
        for _ in range(dice.randint(1, 200))
    ]
    held = io.StringIO(newline="")
    writer = csv.writer(held, delimiter=delimiter)
    writer.writerows([["whole", "price", "城市", "same"], *rows])
    return held.getvalue(), rows


@pytest.mark.parametrize("delimiter", list(",;\t|"))
@pytest.mark.parametrize("seed", range(3))
def test_every_figure_is_that_of_its_column(place: Place, delimiter: str, seed: int) -> None:
    text, rows = table(seed, delimiter)
    place.write("t.csv", text)
    data = place.data("/csv-report @t.csv")
    assert (data["rows"], list(data["columns"])) == (len(rows), ["whole", "price", "城市", "same"])
    for at, name in enumerate(("whole", "price")):
        held = [Fraction(row[at]) for row in rows if row[at]]
        assert_figures(data["columns"][name], held, len(rows))
    words = Counter(row[2] for row in rows if row[2])
    town = data["columns"]["城市"]
    assert (town["distinct"], town["missing"]) == (len(words), len(rows) - words.total())
    shown = {" ".join(word.split()): number for word, number in words.items()}
    assert all(shown[top["value"]] == top["count"] for top in town["top"])
    assert [top["count"] for top in town["top"]] == sorted(words.values(), reverse=True)[:5]


def assert_figures(told: Any, held: list[Fraction], rows: int) -> None:
    assert told["missing"] == rows - len(held)
    if held:
        assert (told["type"], told["min"], told["max"]) == ("number", float(min(held)), float(max(held)))
        assert told["sum"] == pytest.approx(float(sum(held)))
        assert told["mean"] == pytest.approx(float(sum(held) / len(held)))


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["1,234", "1,234,567.5"], 1_235_801.5),
        (["1,5", "2"], None),
        (["1_000"], None),
        (["nan"], None),
        (["1e308", "1e308"], None),
        (["1e3", " 2 ", "+3", "-.5"], 1_004.5),
        (["٣"], 3.0),
    ],
)
def test_a_column_of_plain_numbers_is_summed_and_any_other_is_text(
    place: Place, cells: list[str], total: float | None
) -> None:
    path = place.write("t.csv", "n;x\n" + "".join(f'"{cell}";1\n' for cell in cells))
    column = place.script("csv-report", path).data["columns"]["n"]
    assert (column["type"], column.get("sum")) == (("text", None) if total is None else ("number", total))


def test_columns_with_the_same_name_or_without_a_name_get_distinct_names(place: Place) -> None:
    path = place.write("t.csv", "a,a,,\n1,2,3,4\n")
    assert list(place.script("csv-report", path).data["columns"]) == ["a", "a (2)", "column 3", "column 4"]


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "the file is empty"), (b"\xef\xbb\xbf", "the file is empty"), (b"a," * 600, "601 columns, more than 500")],
)
def test_an_empty_or_too_wide_csv_file_is_reported_in_one_line(place: Place, content: bytes, said: str) -> None:
    assert said in place.script("csv-report", place.write("t.csv", content)).complaint


def test_a_file_that_is_not_there_is_named(place: Place) -> None:
    assert "'nowhere.csv' cannot be read" in place.script("csv-report", "nowhere.csv").complaint


@pytest.mark.parametrize(
    "content",
    [b"a,b\n1", b"a\n" + b"x" * 300_000, b"\xff\xfe,b\n1,2", b'a\n"never closed\n', b"a\0b,c\n1,2", b"a\rb\r"],
)
def test_a_malformed_csv_file_still_gets_a_report_with_columns(place: Place, content: bytes) -> None:
    assert place.script("csv-report", place.write("t.csv", content)).data["columns"]


def test_nothing_that_steers_a_terminal_or_breaks_the_page_is_left(place: Place) -> None:
    data = place.script("csv-report", place.write("t.csv", f"a|b{ESCAPES},c\nx|{ESCAPES}y,\n")).data
    assert list(data["columns"]) == ["a|bred ", "c"]
    assert [line.count(" | ") for line in place.written("report.md").splitlines()] == [3, 0, 3, 3]


def test_its_own_eval_is_right(place: Place) -> None:
    place.write("sales.csv", "city,amount,note\nBonn,3,\nKiel,5.5,late\nBonn,4,ok\nUlm,8,ok\n")
    columns = place.data("/csv-report @sales.csv")["columns"]
    assert (columns["amount"]["sum"], columns["amount"]["mean"], columns["note"]["missing"]) == (20.5, 5.125, 1)
    assert columns["city"]["top"][0] == {"value": "Bonn", "count": 2}
