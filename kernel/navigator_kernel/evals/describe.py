"""Proposes additions to a skill's description by rules: words of its text that the description lacks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.text import clean, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

LONGEST = 1_024  # characters of a description (Agent Skills specification)
HEADINGS, TYPES, PHRASES, WORDS = 6, 8, 4, 6  # most additions of each kind
_HEADING = lazy_compile(r"(?m)^#{2,3}[ \t]+([^\n#`]{3,40})[ \t]*$")
_PLAIN = frozenset(
    "overview introduction installation setup usage quick start reference references notes examples example output "
    "workflow steps step instructions troubleshooting requirements prerequisites resources purpose guidelines tips "
    "when how to use this skill it works".split()
)
_TYPE = lazy_compile(
    r"(?<![\w.])\.(pdf|docx?|xlsx?|pptx?|csv|tsv|json|ya?ml|html?|md|png|jpe?g|svg|mp4|mp3|wav|ipynb|sql|xml)\b"
)
_PHRASE = lazy_compile(r"[\"“「]([^\"”」\n]{6,60})[\"”」]")
_WHEN = lazy_compile(r"(?ims)^#{1,3}(?=[^\n]*\b(?:when|trigger))[^\n]*+\n(.*?)(?=^#|\Z)")


class Addition(NamedTuple):
    """A sentence that a description could have; `rule` names its source."""

    rule: str
    sentence: str


def additions(skill: SkillDef, translated: Callable[[Sequence[str]], Sequence[str]]) -> Iterator[Addition]:
    """At most one addition for each rule; `translated` returns the words of texts in the other language."""
    said, text = skill.description.casefold(), clean(skill.sop)
    for rule, begin, found in (
        ("file types", "Works with", _new(said, (f".{one.lower()}" for one in _TYPE.findall(text)))[:TYPES]),
        ("headings", "Covers", _new(said, _headings(text))[:HEADINGS]),
        ("phrases", "For requests such as", [f'"{one}"' for one in _new(said, _phrases(text))[:PHRASES]]),
        ("other language", "", _new(said, translated([skill.name, *skill.tags]))[:WORDS]),
    ):
        if found:
            yield Addition(rule, f"{begin} {', '.join(found)}.".strip() if begin else f"({', '.join(found)})")


def joined(description: str, more: Sequence[Addition]) -> str:
    """The description with these sentences added at its end."""
    text = description.rstrip()
    text = text if not text or text[-1] in ".!?。！？)）" else f"{text}."
    return " ".join([text, *(one.sentence for one in more)]).strip()


def _new(said: str, found: Iterator[str] | Sequence[str]) -> list[str]:
    return [one for one in dict.fromkeys(found) if one.casefold() not in said]


def _headings(text: str) -> Iterator[str]:
    for heading in _HEADING.findall(text):
        words = heading.strip(" :*").casefold().split()
        if words and not all(word.strip(":&-") in _PLAIN for word in words):
            yield " ".join(words)


def _phrases(text: str) -> Iterator[str]:
    """The quoted phrases below a heading about when the skill is used."""
    for part in _WHEN.findall(text):
        yield from (one.strip() for one in _PHRASE.findall(part))
