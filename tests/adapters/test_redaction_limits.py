"""The search for secrets ends in time, whatever the text; a text not searched to its end is withheld (SAF-8)."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.secret_examples import Example, examples
from cpu_time import thread_seconds
from navigator_kernel.adapters.secrets.redaction import AT_ONCE, REDACTED, Redactor, found, search
from navigator_kernel.adapters.secrets.shapes import PLACES, Shape, services

pytestmark = pytest.mark.sample(1)

EXAMPLES, SHAPES = examples(), (*PLACES, *services())
NEEDLES = sorted({needle for shape in SHAPES for needle in shape.needles})
TOKEN = "ghp_" + "".join(random.Random(1).choices(string.ascii_letters, k=36))
FILLERS = ("", " ", "`a ", "=", ': "', "a" * 197)
SLOWER, NOISE = 4, 0.1  # highest factor for twice the text; seconds below which a time is noise
FAR_TOO_LONG = 5.0  # seconds of processor time for a text that is searched in this process


def cpu_time(look: Callable[[str], object], text: str, tries: int = 1) -> float:
    return thread_seconds(lambda: look(text), tries)


def filled(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


def near_misses(shape: Shape, example: Example) -> Iterator[str]:
    """Units to repeat that begin like the shape and break off."""
    secret, before = example.secret, example.before
    for kept in (secret[:-1], secret[: len(secret) // 2], secret[:6]):
        yield from (before + kept + end for end in ("", " ", "-", "\n", '"'))
    yield from (before or secret[:4], before + before + secret, example.text)
    for needle in shape.needles:
        yield from (needle, needle.upper() + "=", needle + "a" * 400)


def slowest(shape: Shape) -> str:
    """The near miss on which the shape takes longest; each one ends in time."""
    example = next(one for one in EXAMPLES if shape.found.search(one.text))
    taken = {unit: cpu_time(_looks(shape), filled(unit, AT_ONCE // 4)) for unit in near_misses(shape, example)}
    assert max(taken.values()) < FAR_TOO_LONG, taken
    return max(taken, key=lambda unit: taken[unit])


def _looks(shape: Shape) -> Callable[[str], object]:
    return lambda text: [None for _ in shape.found.finditer(text)]


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.kind}-{shape.needles[0]}")
def test_texts_that_nearly_match_a_shape_take_time_in_proportion(shape: Shape) -> None:
    unit = slowest(shape)
    once, twice = (cpu_time(_looks(shape), filled(unit, length), 3) for length in (AT_ONCE, 2 * AT_ONCE))
    assert twice < SLOWER * max(once, NOISE), (unit, once, twice)


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("filler", FILLERS, ids=repr)
def test_every_needle_with_filler_takes_time_in_proportion(filler: str) -> None:
    unit = "".join(needle + filler for needle in NEEDLES)
    once, twice = (cpu_time(search, filled(unit, length), 3) for length in (AT_ONCE, 2 * AT_ONCE))
    assert twice < SLOWER * max(once, NOISE) and once < FAR_TOO_LONG, (once, twice)


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("unit", ["`password`a ", "PASSWORD", "eyJ", "-----BEGIN ", "://a:b@ ", 'key=" '], ids=repr)
def test_a_megabyte_that_nearly_contains_secrets_is_done_or_withheld_in_time(unit: str) -> None:
    text, began = filled(unit, 900_000) + f" {TOKEN}", time.monotonic()
    shown = Redactor().text(text)
    assert TOKEN not in shown and (REDACTED in shown or "withheld" in shown)
    assert time.monotonic() - began < 60


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(
        st.one_of(st.sampled_from(NEEDLES), st.text(max_size=12), st.sampled_from(EXAMPLES).map(lambda one: one.text)),
        min_size=1,
        max_size=6,
    )
)
def test_any_text_is_searched_in_bounded_time_and_its_redaction_is_idempotent(pieces: list[str]) -> None:
    unit = "".join(pieces) or "a"
    assert cpu_time(search, filled(unit, AT_ONCE // 4)) < FAR_TOO_LONG
    once = Redactor().text(unit)
    assert Redactor().text(once) == once
    assert [(one.begin, one.end) for one in found(unit) if not 0 <= one.begin < one.end <= len(unit)] == []


# ---- in its own process


@pytest.mark.wide
@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("given", [{"seconds": 1}, {"memory": 16 * 1024 * 1024}], ids=["time", "memory"])
def test_a_text_that_was_not_looked_at_to_its_end_is_withheld_whole(given: dict[str, Any]) -> None:
    text = filled("`password`a ", 8_000_000) + TOKEN
    shown = Redactor(**given).text(text)
    assert shown == f"[withheld: {len(text):,} characters that could not be checked for secrets]"


@pytest.mark.requirement("SAF-8")
def test_only_what_could_not_be_looked_at_is_withheld() -> None:
    held = {"short": f"x {TOKEN}", "plain": "nothing of note. " * 9_000, "long": TOKEN + " pass" * 40_000}
    shown = Redactor(memory=16 * 1024 * 1024).value(held)
    assert (shown["short"], shown["plain"]) == (f"x {REDACTED}", held["plain"])
    assert shown["long"].startswith("[withheld: 200,040 characters")


@pytest.mark.requirement("SAF-8")
def test_many_texts_of_one_value_are_limited_together() -> None:
    held = [f"{'word ' * 4_000}{TOKEN} \ud800 密码：hunter{at}" for at in range(9)]
    shown = Redactor().value(held)
    assert shown == [f"{'word ' * 4_000}{REDACTED} \ud800 密码：{REDACTED}" for _ in range(9)]


def test_a_long_text_without_a_needle_starts_no_process() -> None:
    text = "nothing of note. " * 90_000
    assert Redactor(memory=1).text(text) == text
