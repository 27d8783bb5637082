"""Every fixed sentence, in both languages with the same places to fill (X-31)."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest

from navigator_kernel.language.wording import SENTENCES, because_of, say


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("key", list(SENTENCES))
def test_a_sentence_has_both_languages_with_the_same_places_to_fill(key: str) -> None:
    english, chinese = SENTENCES[key]
    assert fields(english) == fields(chinese)


@pytest.mark.parametrize("key", list(SENTENCES))
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sentence_is_filled_once_and_whole(key: str, language: Any) -> None:
    names = fields(SENTENCES[key][0])
    text = say(key, language, **dict.fromkeys(names, "{0} {x}"))
    assert text
    assert text.count("{0} {x}") >= len(names)


@pytest.mark.parametrize("key", [key for key in SENTENCES if key not in {"agent.crashed", "trace.tier"}])
def test_the_chinese_sentence_is_chinese_and_the_english_one_is_not(key: str) -> None:
    english, chinese = SENTENCES[key]
    assert not re.search(r"[\u4e00-\u9fff]", english)
    assert re.search(r"[\u4e00-\u9fff]", chinese) or key == "agent.timeout"


@pytest.mark.parametrize(
    "code",
    [
        "leader",
        "equal",
        "unlikely",
        "nothing_known",
        "instruction",
        "exact",
        "follow_up",
        "released",
        "unreadable",
        "approved",
        "declined",
    ],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_reason_that_the_stages_give_has_words(code: str, language: Any) -> None:
    assert because_of(code, language, name="x", confidence="0.9") != code


@pytest.mark.requirement("OUT-1", "OUT-2", "OUT-3")
@pytest.mark.parametrize(
    ("key", "title"),
    [("logic_trace", "[Logic Trace]"), ("action_vector", "[Action Vector]"), ("state_update", "[State Update]")],
)
@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_section_has_its_documented_title_in_both_languages(key: str, title: str, language: Any) -> None:
    assert say(f"section.{key}", language).startswith(title)
