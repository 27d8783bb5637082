"""Every fixed sentence, in both languages with the same places to fill (X-31)."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest

from navigator_kernel.language.wording import because_of, say, sentences
from tables import cases

CHINESE = re.compile(r"[\u4e00-\u9fff]")


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_a_sentence_has_both_languages_with_the_same_places_to_fill() -> None:
    assert [key for key, (english, chinese) in sentences().items() if fields(english) != fields(chinese)] == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_sentence_is_filled_once_and_whole(language: Any) -> None:
    for key, (english, _) in sentences().items():
        names = fields(english)
        text = say(key, language, **dict.fromkeys(names, "{0} {x}"))
        assert text, key
        assert text.count("{0} {x}") >= len(names), key


def test_the_chinese_sentence_is_chinese_and_the_english_one_is_not() -> None:
    both = {key: said for key, said in sentences().items() if key not in {"agent.crashed", "trace.tier"}}
    assert [key for key, (english, _) in both.items() if CHINESE.search(english)] == []
    assert {key for key, (_, chinese) in both.items() if not CHINESE.search(chinese)} <= {
        "agent.timeout",
        "why.quoted",
        "change.changed",
    }


@cases("code")
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


@pytest.mark.requirement("OUT-6")
def test_the_three_lines_go_from_a_link_over_a_source_to_a_name() -> None:
    link, source, name = say("capabilities", "en").split("\n")
    assert ("repository" in link, "see its skills" in link) == (True, True)
    assert ("Name a source" in source, "search for skills" in source) == (True, True)
    assert ("Name a skill" in name, "run or uninstall" in name) == (True, True)


@pytest.mark.requirement("OUT-4")
def test_no_sentence_is_a_pleasantry() -> None:
    pleasant = re.compile(
        r"\b(?:sorry|apolog|thank|happy to|glad|great question|unfortunately)|抱歉|对不起|很高兴|感谢|不好意思"
    )
    assert [key for key, said in sentences().items() if pleasant.search(" ".join(said).lower())] == []
