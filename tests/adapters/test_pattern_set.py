"""A set of patterns says which of them may match: it may name too many, but never omits one that does (SAF-1)."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, example, given, seed, settings
from hypothesis import strategies as st

from navigator_kernel.adapters.pattern_set import PatternSet
from navigator_kernel.adapters.secrets.shapes import every
from navigator_kernel.skills.scan import hidden
from navigator_kernel.skills.scan.flow import hits as flows
from navigator_kernel.skills.scan.rule import rules
from tables import table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

QUICK = settings(
    max_examples=20, database=None, deadline=None, phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
FLAGS = re.IGNORECASE | re.MULTILINE
PARTS: Sequence[tuple[str, str]] = table(__file__, "PARTS")


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(("source", "text"), PARTS, ids=[source for source, _ in PARTS])
def test_a_matching_pattern_is_reported_as_possible(source: str, text: str) -> None:
    assert re.search(source, text, FLAGS)
    assert PatternSet([source], None).possible(text) == {source}


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    ("source", "text"), [("curl.*sh", "nothing"), (r"a\sb", "ab"), (r"[a-c]{3}", "abxc"), ("密", "口")]
)
def test_a_pattern_that_cannot_match_is_left_out(source: str, text: str) -> None:
    assert PatternSet([source, "other"], None).possible(f"{text} other") == {"other"}


@pytest.mark.requirement("SAF-1")
def test_it_holds_where_line_breaks_became_spaces() -> None:
    """A paragraph, and a command that spans several lines, are read as one line."""
    assert PatternSet([r"rm\s+-rf\n*x"], None).possible("rm -rf x")


@pytest.mark.requirement("SAF-1")
def test_without_hyperscan_every_pattern_may_match(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hyperscan", None)
    assert PatternSet(["a", "b"], None).possible("x") == {"a", "b"}


@pytest.mark.requirement("SAF-1")
def test_a_compiled_pattern_set_is_kept_and_rebuilt_when_damaged(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    for _ in range(2):
        assert PatternSet(["a+b", "c"], folder).possible("xaab") == {"a+b"}
    (kept,) = folder.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    whole = kept.read_bytes()
    for damaged in (b"", whole[: len(whole) // 2], whole[:-9] + bytes(9), b"x" * len(whole)):
        kept.write_bytes(damaged)
        assert PatternSet(["a+b", "c"], folder).possible("xaab") == {"a+b"}
        assert (kept.read_bytes() == whole, len(list(folder.iterdir()))) == (True, 1)


@pytest.mark.requirement("SAF-1")
def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert PatternSet(["a"], tmp_path / "file" / "kept").possible("a") == {"a"}


def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    own = (*(source for rule in rules() for source in rule.any), *flows.SOURCES, *hidden.SOURCES)
    shapes = {shape.found.pattern: re.compile(shape.found.pattern, shape.found.flags) for shape in every()}
    return [*((source, re.compile(source, FLAGS)) for source in dict.fromkeys(own)), *shapes.items()]


@pytest.mark.ci
@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(("source", "held"), _patterns(), ids=lambda one: one[:30] if isinstance(one, str) else "")
def test_no_pattern_of_the_scanner_is_left_out_where_it_matches(source: str, held: re.Pattern[str]) -> None:
    """In texts made from the pattern: alone, among others, in upper and lower case, and on one line."""
    asked = PatternSet([source], None)

    @seed(1)
    @QUICK
    @given(st.from_regex(held))
    @example("")
    def found(text: str) -> None:
        for one in (text, f"é {text}\n", text.upper(), text.lower()):
            if held.search(one):
                assert asked.possible(one) == asked.possible(one.replace("\n", " ")) == {source}

    found()
