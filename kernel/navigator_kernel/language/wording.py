"""Says the fixed sentences of `sentences.tsv` in English or Chinese (X-31); programs read codes instead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from navigator_kernel.text import Language, escape_controls
from navigator_kernel.values.rights import EVERYWHERE, Right
from navigator_kernel.values.route import RouteDecision

FILE = Path(__file__).with_name("sentences.tsv")
BETWEEN: Mapping[Language, str] = {"en": ", ", "zh": "、"}  # between names
APART: Mapping[Language, str] = {"en": ", ", "zh": "，"}  # between parts of a sentence
COLON: Mapping[Language, str] = {"en": ": ", "zh": "："}
SEMICOLON: Mapping[Language, str] = {"en": "; ", "zh": "；"}


@cache
def sentences() -> Mapping[str, tuple[str, str]]:
    """Key → the sentence in English and in Chinese."""
    rows = (line.split("\t") for line in FILE.read_text("utf-8").split("\n") if line and line[0] != "#")
    return {key: (_read(english), _read(chinese)) for key, english, chinese in rows}


@cache
def linter_rules() -> Mapping[str, Sequence[str]]:
    """Rule of the linter → what is wrong, the fix, both in Chinese, and an example."""
    rows = FILE.with_name("linter.tsv").read_text("utf-8").split("\n")
    return {row[0]: row[1:] for row in (line.split("\t") for line in rows if line and line[0] != "#")}


def fixes(codes: Iterable[str], language: Language) -> list[str]:
    """The fix of each rule of the linter among `codes`."""
    rules, column = linter_rules(), 1 if language == "en" else 3
    return [f"{code}{COLON[language]}{rules[code][column]}" for code in sorted({*codes} & rules.keys())]


def _read(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\\\", "\\") if "\\" in text else text


_COUNTED = "skill step line byte token request file message call character second".split()  # what sentences count


def right_in(right: Right, language: Language) -> str:
    """What the right allows, in words; the folder to edit, or the packages, as they are."""
    kind, _, _ = right.word.partition(":")
    return say(f"right.{kind}", language, skill=escape_controls(right.skill), what=object_of(right.word, language))


def object_of(word: str, language: Language) -> str:
    """What the word of a right names: a folder, packages or a host; empty if it names nothing."""
    return say("right.project", language) if word == EVERYWHERE else escape_controls(word.partition(":")[2])


def say(key: str, language: Language, **values: Any) -> str:
    """The sentence `key` in `language`, with `values` filled in once; a number of one has a singular."""
    sentence = sentences()[key][language == "zh"]
    for name in [name for name, value in values.items() if value in (1, "1")]:
        for word in _COUNTED:
            sentence = sentence.replace(f"{{{name}}} {word}s", f"{{{name}}} {word}")
    return sentence.format(**values)


def between(names: Iterable[str], language: Language) -> str:
    """The names as a list in a sentence."""
    return BETWEEN[language].join(names)


def worded(kind: str, code: str, language: Language) -> str:
    """The word for a code of one kind; an unknown code is returned unchanged."""
    key = f"{kind}.{code}"
    return say(key, language) if key in sentences() else code


def because(decision: RouteDecision, language: Language) -> str:
    """The reason of a decision as a sentence."""
    facts = {"name": decision.entity or "", "confidence": f"{decision.confidence:.2f}"}
    return because_of(decision.reason, language, **facts)


def because_of(code: str, language: Language, **facts: str) -> str:
    """The sentence of a reason's code, for readers of the run log."""
    key = f"reason.{code}"
    return say(key, language, **facts) if key in sentences() else code
