"""Pairs of similar texts: one occurs in honest skills and is not blocked, the other does harm and is blocked."""

from __future__ import annotations

import pytest

from scanning.test_content_rules import found_in
from tables import table

AZURE = "TOKEN=$(az account get-access-token --query accessToken -o tsv)\n"

# The subject, a file name, an honest text, a harmful text
PAIRS = table(__file__, "PAIRS")


@pytest.mark.parametrize(("path", "text"), [pytest.param(p, t, id=i) for i, p, t, _ in PAIRS])
def test_an_honest_text_that_looks_like_harm_is_not_blocked(path: str, text: str) -> None:
    assert "error" not in {one.level for one in found_in(text, path)}


# Harmful texts with additions that make them look like an honest text
DISGUISED = table(__file__, "DISGUISED")


@pytest.mark.parametrize(("path", "text"), [pytest.param(p, t, id=i) for i, p, _, t in PAIRS if t])
def test_the_harmful_text_beside_it_is_blocked(path: str, text: str) -> None:
    assert "error" in {one.level for one in found_in(text, path)}


@pytest.mark.parametrize(("path", "text"), [pytest.param(p, t, id=i) for i, p, t in DISGUISED])
def test_a_harmful_text_that_is_disguised_as_an_honest_one_is_blocked(path: str, text: str) -> None:
    assert "error" in {one.level for one in found_in(text, path)}


def test_a_name_of_two_scripts_is_a_warning_in_a_test_and_blocks_elsewhere() -> None:
    text = "const d\u0435lve = 1;\n"
    assert [one.level for path in ("a.test.js", "a.js") for one in found_in(text, path)] == ["warning", "error"]
