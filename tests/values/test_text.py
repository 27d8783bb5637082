from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from navigator_kernel.text import clean, numbered
from tables import cases

STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
)
# Default_Ignorable_Code_Point of Unicode 16, without U+FE0F, which turns the state marks into emoji
IGNORABLE = (
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u200f\u202a\u202e\u2060\u206f\u3164"
    "\ufe00\ufe0e\ufeff\uffa0\ufff0\ufff8\U0001bca0\U0001bca3\U0001d173\U0001d17a\U000e0000\U000e0001\U000e007f\U000e0100"
)
PIECES = st.sampled_from(
    [
        *["\x1b", "\x1b[", "\x1b]", "\x9b", "\x9d", "\x07", "\x1b\\", "\x1bP", "31m", "0;t", "\r", "\n", "\r\n"],
        *["\u2028", "\x00", "\x85", "\u200b", "\u202e", "\ufeff", "\ud800", "\U000e0041"],
        *["a", "é", "中", "\t", " ", "❌", "⚠️"],
    ]
)
TEXT = st.text(max_size=40) | st.lists(PIECES, max_size=16).map("".join)


@settings(max_examples=500)
@given(TEXT)
def test_cleaned_text_steers_nothing(text: str) -> None:
    assert STEERING.search(clean(text)) is None


@pytest.mark.wide
@settings(max_examples=500)
@given(TEXT)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert clean(clean(text)) == clean(text)


@pytest.mark.wide
@settings(max_examples=300)
@given(TEXT)
def test_cleaned_text_for_a_line_is_one_line(text: str) -> None:
    assert len(clean(text, lines=False).splitlines()) <= 1


@settings(max_examples=300)
@given(
    st.text(st.characters(categories=("L", "N", "P", "Zs")), max_size=40).filter(lambda t: not set(t) & set(IGNORABLE))
)
def test_readable_text_is_not_changed_by_cleaning(text: str) -> None:
    assert clean(text) == text


@cases("text, cleaned")
def test_each_kind_of_control_is_removed(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


@pytest.mark.parametrize("mark", IGNORABLE, ids=lambda mark: f"U+{ord(mark):04X}")
def test_a_character_that_nobody_sees_is_removed(mark: str) -> None:
    assert clean(f"a{mark}b") == "ab"


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [(0, "skill", "0 skills"), (1, "skill", "1 skill"), (1, "entry", "1 entry"), (2, "entry", "2 entries")],
)
def test_a_count_of_one_has_a_singular(count: int, noun: str, text: str) -> None:
    assert numbered(count, noun) == text
