"""Says whether a part of a message is an order of its own: one that begins with an imperative, in either language."""

from __future__ import annotations

import re
from collections.abc import Collection

from navigator_kernel.language.sources import SOURCES
from navigator_kernel.text import lazy_compile

_SOURCES = SOURCES["orders"]
_VERBS_EN = frozenset(_SOURCES["_VERBS_EN"].split())
_POLITE = lazy_compile(_SOURCES["_POLITE"], re.IGNORECASE)
# A word that is not a known verb, directly followed by an object: `whisk the eggs`
_WITH_OBJECT = lazy_compile(_SOURCES["_WITH_OBJECT"], re.IGNORECASE)
_LED_BY = lazy_compile(_SOURCES["_LED_BY"])
_WORD = lazy_compile(r"[a-z]+(?:-[a-z]+)*", re.IGNORECASE)
# Chinese has no word boundaries: an order begins with one of these, longest first
_ZH_VERB = lazy_compile("|".join(sorted(_SOURCES["_VERBS_ZH"].split(), key=len, reverse=True)))
# A verb directly followed by 的, or an ending such as 的过程, names a thing, not an order.
_THING = lazy_compile(_SOURCES["_THING"])
_NAMED_BY_FORM = lazy_compile(
    r"mcp\s*(?:run|list|read|tools|call|运行|执行|列出|读取|工具|调用)(?![a-z])", re.IGNORECASE
)
_USE_TO = lazy_compile(r"^(?:with|using|in|for|on|from)\b[^,]*,\s*", re.IGNORECASE)
_CONTINUES = lazy_compile(r"[\w']")
# What an order is about that works on the result of the one before
_OF_RESULT = lazy_compile(_SOURCES["_OF_RESULT"], re.IGNORECASE)
_MAKES = lazy_compile(_SOURCES["_MAKES"], re.IGNORECASE)
# Orders that ask for more of the same work: `add a title`, `说明原因`
_CONTINUES_TASK = lazy_compile(_SOURCES["_CONTINUES_TASK"], re.IGNORECASE)
_APART = lazy_compile(_SOURCES["_APART"], re.IGNORECASE)
_OBJECT = lazy_compile(r"^[a-z-]+\s+\S|[\u4e00-\u9fff]{3}", re.IGNORECASE)
_NEW_OBJECT = lazy_compile(_SOURCES["_NEW_OBJECT"], re.IGNORECASE)
_WANTED = lazy_compile(_SOURCES["_WANTED"], re.IGNORECASE)
_MOVED = lazy_compile(r"(?:把|将(?![来军近要会]))\S.")


def is_order(clause: str) -> bool:
    """Whether `clause` begins with an imperative, after polite words. A question, a report or a condition does not."""
    order = _USE_TO.sub("", _POLITE.sub("", clause.strip()))
    if _NAMED_BY_FORM.match(order):
        return True
    word = _WORD.match(order)
    if word is not None:
        if _WITH_OBJECT.match(order):
            return True
        return is_verb(word.group()) and not _CONTINUES.match(order[word.end() : word.end() + 1])
    verb = _ZH_VERB.match(order)
    if verb is not None:
        return not order.startswith("的", verb.end())
    if _MOVED.match(order):
        return True
    led = _LED_BY.match(order)
    if led is None:
        return False
    return _ZH_VERB.search(order, led.end()) is not None or any(map(is_verb, _WORD.findall(order)))


def leading_verb(clause: str) -> str:
    """The verb that an order begins with, empty if it is none."""
    order = _POLITE.sub("", clause.strip())
    hit = _ZH_VERB.match(order) or _WORD.match(order)
    return hit.group() if hit and is_order(order) else ""


def is_apart(clause: str) -> bool:
    """Whether `clause` is an order that is not about the result of another."""
    return is_order(clause) and not _OF_RESULT.search(_POLITE.sub("", clause.strip()))


def is_wanted(clause: str) -> bool:
    """Whether `clause` says which thing is wanted: `I want a spreadsheet`, `我要一张表`."""
    return _WANTED.match(clause) is not None


def has_new_object(clause: str) -> bool:
    """Whether an order is about a thing that nobody spoke of: `book a flight`, `写一首诗`."""
    return _NEW_OBJECT.search(_POLITE.sub("", clause.strip())) is not None


def has_own_object(clause: str, joint: str, files: Collection[str]) -> bool:
    """Whether an order after `joint` is about something else than what comes before it: about one of `files`, which are
    named here first, or a new thing: `book a flight`. After a word like `also`, a known thing is enough: `water the
    plants`. What an order does with a result, as `save it`, or asks of it, as `add a title`, is a part of the order
    before."""
    order = _POLITE.sub("", clause.strip())
    if not is_apart(clause):
        return False
    if any(file in order for file in files) and not _MAKES.match(order):
        return True
    if _CONTINUES_TASK.match(order):
        return False
    return _OBJECT.search(order) is not None if _APART.search(joint) else has_new_object(order)


def is_verb(word: str) -> bool:
    """Whether an English word is a known base form of a verb that orders begin with."""
    return word.lower() in _VERBS_EN


def is_thing(clause: str) -> bool:
    """Whether a Chinese clause ends like the name of a thing: `解析内容的过程`."""
    return _THING.search(clause) is not None
