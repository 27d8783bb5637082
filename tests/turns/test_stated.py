"""What a message states of time, of how many, and of columns is read in English and in Chinese, and nothing else is."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.language.stated import chosen, columns, day, endings, limits, number, period

MONTHS = "January February March April May June July August September October November December".split()
DAYS = st.dates(date(1971, 1, 1), date(2098, 12, 31))


def cases(name: str) -> list[list[str]]:
    """The cells of each line of a table beside this file; `-` is an empty one."""
    lines = (Path(__file__).parent / f"stated_{name}.tsv").read_text("utf-8").splitlines()
    return [
        ["" if cell == "-" else cell for cell in line.split("\t")]
        for line in lines
        if line and not line.startswith("#")
    ]


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(("today", "message", "first", "last"), cases("periods"))
def test_the_period_that_a_message_states(today: str, message: str, first: str, last: str) -> None:
    assert period(message, date.fromisoformat(today)) == (first, last)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("which error shows up most in yesterday's log", "2026-11-27"),
        ("昨天的日志里有多少个错误", "2026-11-27"),
        ("the log of 3 September", "2026-09-03"),
        ("11月27日的日志", "2026-11-27"),
        ("errors of last week", None),
        ("errors since yesterday", None),
        ("until today", None),
        ("2026年9月", None),
        ("the nightly log", None),
    ],
)
def test_the_single_day_that_a_message_means(message: str, expected: str | None) -> None:
    assert day(message, date(2026, 11, 28)) == (date.fromisoformat(expected) if expected else None)


@pytest.mark.parametrize(("message", "expected"), cases("numbers"))
def test_how_many_are_asked_for(message: str, expected: str) -> None:
    assert number(message) == expected


@pytest.mark.parametrize(("header", "message", "expected"), cases("columns"))
def test_the_columns_to_which_a_message_limits_the_output(header: str, message: str, expected: str) -> None:
    assert columns(message, header.split(",")) == tuple(expected.split(",") if expected else ())


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(("header", "values", "message", "expected"), cases("limits"))
def test_the_limits_that_a_message_sets(header: str, values: str, message: str, expected: str) -> None:
    names, cells = header.split(",") if header else [], values.split(",") if values else []
    assert "; ".join(f"{limit.kind} {limit.value}" for limit in limits(message, names, cells)[0]) == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("errors only", "ERROR"),
        ("how many warnings and errors", "ERROR,WARN"),
        ("the log without the warnings", "ERROR,INFO"),
        ("只看错误", "ERROR"),
        ("more info about the log", ""),
        ("only info", "INFO"),
        ("terrors", ""),
    ],
)
def test_the_declared_values_that_a_message_names(message: str, expected: str) -> None:
    assert ",".join(chosen(message, "ERROR=error, errors, 错误; WARN=warning, warnings; *INFO=info")) == expected


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(("message", "expected"), cases("endings"))
def test_the_endings_of_the_files_to_which_a_message_limits_itself(message: str, expected: str) -> None:
    assert ",".join(endings(message)) == expected


@given(on=DAYS, later=st.integers(0, 400))
def test_a_written_date_is_read_as_that_day(on: date, later: int) -> None:
    today = on + timedelta(later)
    month = MONTHS[on.month - 1]
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(on.day % 10 if on.day not in (11, 12, 13) else 0, "th")
    for written in (
        f"the log of {on}",
        f"errors on {on.day} {month} {on.year}",
        f"errors on {month} {on.day}{suffix}, {on.year}",
        f"errors on {on:%d %b %Y}",
        f"entries of {on:%Y/%m/%d}",
        f"{on.year}年{on.month}月{on.day}日的日志",
        f"统计{on.year}年{on.month:02}月{on.day:02}号的错误",
    ):
        assert day(written, today) == on, written


@given(on=DAYS, later=st.integers(0, 364))
def test_a_date_without_a_year_is_the_last_one_that_has_begun(on: date, later: int) -> None:
    if (on.month, on.day) != (2, 29):
        today = on + timedelta(later)
        expected = on if (today.month, today.day) != (on.month, on.day) else date(today.year, on.month, on.day)
        assert day(f"on {MONTHS[on.month - 1]} {on.day}", today) == expected
        assert day(f"{on.month}月{on.day}日的日志", today) == expected


@given(one=DAYS, other=DAYS)
def test_a_written_range_has_both_ends(one: date, other: date) -> None:
    first, last = sorted((one, other))
    for written in (
        f"commits from {first} to {last}",
        f"commits between {first.day} {MONTHS[first.month - 1]} {first.year} and {MONTHS[last.month - 1]} {last.day}, {last.year}",
        f"从{first.year}年{first.month}月{first.day}日到{last.year}年{last.month}月{last.day}日的提交",
    ):
        assert period(written, last) == (first.isoformat(), last.isoformat()), written


WORDS = st.sampled_from(
    "since until before after between and to from in on the of last past this 30 3 2026 may march september q3 first half quarter week "
    "friday yesterday ago days 从 到 至 最近 去年 上 个 月 周 日 年 号 前 后 以来 之前 三 十二 底 旬 2026-09-03 9/31/2026 - , 、 . ' \"".split()
)


@given(
    text=st.one_of(st.text(), st.lists(WORDS, max_size=14).map(" ".join), st.lists(WORDS, max_size=14).map("".join)),
    today=DAYS,
)
def test_any_text_gives_a_period_that_does_not_end_before_it_begins(text: str, today: date) -> None:
    first, last = period(text, today)
    assert not first or not last or date.fromisoformat(first) <= date.fromisoformat(last)
    assert number(text) == "" or int(number(text)) > 0
    assert set(columns(text, ["name", "order_id", "姓名", ""])) <= {"name", "order_id", "姓名"}
