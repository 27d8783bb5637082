"""The table of shapes of secrets: each shape has an example, and each example is replaced whole (SAF-8)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from adapters.secret_examples import Example, examples
from navigator_kernel.adapters.secrets import shapes as secret_shapes
from navigator_kernel.adapters.secrets.redaction import REDACTED, Redactor, found
from navigator_kernel.adapters.secrets.shapes import PLACES, Shape, services

pytestmark = pytest.mark.sample(20)

EXAMPLES = examples()
SHAPES = (*PLACES, *services())
PART = 5  # characters; no part of a secret this long may remain


def name_of(example: Example) -> str:
    return f"{example.kind}-{example.before[-12:]}{example.secret[:4]}"


def shown_as(text: str) -> str:
    return Redactor().text(text)


@pytest.mark.requirement("SAF-8")
@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_the_secret_is_removed_and_the_text_around_it_stays(example: Example) -> None:
    shown = shown_as(f"first\n{example.text}\nlast")
    secret = example.secret
    assert [part for at in range(len(secret) - PART + 1) if (part := secret[at : at + PART]) in shown] == []
    words = example.before.split()[:1] + example.behind.split()[-1:]
    assert shown.startswith("first\n") and shown.endswith("\nlast") and REDACTED in shown
    assert [word for word in words if word not in shown and word not in secret] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_it_is_found_as_what_it_is(example: Example) -> None:
    begin = len(example.before)
    kinds = {one.kind for one in found(example.text) if one.begin <= begin and one.end >= begin + len(example.secret)}
    assert example.kind in kinds


def test_at_least_150_services_are_known_and_each_shape_has_an_example() -> None:
    texts = [example.text for example in EXAMPLES]
    unseen = [shape.kind for shape in SHAPES if not any(shape.found.search(text) for text in texts)]
    assert unseen == []
    assert len({shape.kind.split()[0] for shape in services()}) >= 150


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape.kind}-{shape.needles[0]}")
def test_each_match_of_a_shape_contains_one_of_its_needles(shape: Shape) -> None:
    hits = [hit for example in EXAMPLES if (hit := shape.found.search(example.text))]
    assert hits
    for hit in hits:
        assert any(needle in hit.group().lower() for needle in shape.needles), hit
        assert not shape.shows_itself or len(hit["value"].split()) == 1


@pytest.mark.parametrize("example", EXAMPLES, ids=name_of)
def test_a_secret_is_found_behind_a_long_text(example: Example) -> None:
    assert example.secret[:20] not in shown_as("word " * 4_000 + "\n" + example.text)


def test_no_pattern_of_the_table_repeats_without_a_bound() -> None:
    text = Path(secret_shapes.__file__).with_name(secret_shapes.TABLE).read_text(encoding="utf-8")
    rows = [line.split("\t") for line in text.splitlines() if not line.startswith("#")]
    plain = {tuple(row): [re.sub(r"\[(?:\\.|[^\]])*\]|\\.", "x", part) for part in row[2:]] for row in rows}
    assert [row[0] for row, parts in plain.items() if any(re.search(r"[*+]|\{\d*,\}", part) for part in parts)] == []


def test_redaction_of_examples_other_than_private_keys_is_idempotent() -> None:
    once = shown_as("\n".join(example.text for example in EXAMPLES if not example.kind.startswith("Private")))
    assert REDACTED in once and shown_as(once) == once
