"""Edits JSON with comments as text: whatever is not edited stays byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from navigator_kernel.text import lazy_compile


class Node(NamedTuple):
    """A value with the place of its text; `children` are the members of an object or the elements of a list."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...] = ()


class Child(NamedTuple):
    """A member, or an element, which has no key. It begins at `start`, with its key; `comma` is the place after the
    comma that follows it, or 0."""

    key: str | None
    start: int
    node: Node
    comma: int


def parse(text: str) -> Node:
    """The document. A byte order mark, comments and commas before a closing bracket are allowed; ValueError for
    anything else, and for a key that stands twice in an object."""
    reader = _Reader(text)
    root = reader.node()
    if _SPACE.match(text, reader.at).end() < len(text):  # type: ignore[union-attr]  # it matches everywhere
        raise ValueError("text follows the document")
    return root


def add(text: str, node: Node, new: Sequence[tuple[str | None, Any]]) -> str:
    """The text with `new` members or elements at the end of `node`, on lines of their own if `node` is written so."""
    body = text[node.start + 1 : node.end - 1]
    at = node.start + 1 + len(body.rstrip())
    last = node.children[-1] if node.children else None
    is_long = "\n" in body or (last is None and ("\n" in text.strip() or node.end - node.start == len(text.strip())))
    unit = found.group() if (found := _INDENT.search(text)) else "  "
    line = "\r\n" if "\r\n" in text else "\n"
    outer = line + _margin(text, node.start)
    inner = line + _margin(text, last.start) if last and "\n" in text[: last.start] else outer + unit
    pieces = []
    for key, value in new:
        dumped = json.dumps(value, indent=unit if is_long else None, ensure_ascii=False)
        named = dumped if key is None else f"{json.dumps(key, ensure_ascii=False)}: {dumped}"
        pieces.append(inner + named.replace("\n", inner) if is_long else f" {named}")
    added = ",".join(pieces) if last or is_long else ",".join(pieces)[1:]
    if last and last.comma:
        added += ","
    if is_long and "\n" not in body:
        added += outer
    text = text[:at] + added + text[at:]
    return text[: last.node.end] + "," + text[last.node.end :] if last and not last.comma else text


def remove(text: str, node: Node, gone: Collection[int]) -> str:
    """The text without the children of `node` at these positions, without their lines, and without a comma that would
    then stand at the end and was not there before them."""
    rest = [child for at, child in enumerate(node.children) if at not in gone]
    cuts = []
    for child in (node.children[at] for at in gone):
        before = text[: child.start].rstrip(" \t")
        start, end = len(before.removesuffix("\n").removesuffix("\r")), child.comma or child.node.end
        if start == node.start + 1 == child.start and child.comma:  # the next one follows the bracket, too
            end += len(text[end:]) - len(text[end:].lstrip(" "))
        cuts.append((start, end))
    if not rest and is_bare(text, node):
        last = node.children[-1]
        end, outer = last.comma or last.node.end, "\n" + _margin(text, node.start)
        after = text[end : node.end - 1].replace("\r", "")
        if after.startswith(outer) and not after.strip():  # the line that `add` wrote for the closing bracket
            cuts.append((end, node.end - 1 - (len(after) - len(outer))))
    elif rest and not node.children[-1].comma and rest[-1] is not node.children[-1]:
        cuts.append((rest[-1].comma - 1, rest[-1].comma))
    for start, end in sorted(cuts, reverse=True):
        line, rest_of_line = text[text.rfind("\n", 0, start) + 1 : start], text[end:].lstrip(" \t\r")
        if "//" in line and text[start] in "\r\n" and not rest_of_line.startswith("\n"):
            start = end - len(text[start:end].lstrip())  # else what follows would become a part of the comment
        text = text[:start] + text[end:]
    return text


def is_bare(text: str, node: Node) -> bool:
    """Whether `node` has one child and nothing beside it, such as a comment."""
    if len(node.children) != 1:
        return False
    child = node.children[0]
    return not (text[node.start + 1 : child.start] + text[child.comma or child.node.end : node.end - 1]).strip()


def _margin(text: str, at: int) -> str:
    """The white space at the beginning of the line of `at`."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


_SPACE = lazy_compile(r"(?:[\s\ufeff]++|//[^\n]*+|(?s:/\*.*?\*/))*")
_WORD = lazy_compile(r'"(?:[^"\\\x00-\x1f]|\\.)*+"|[-+.\w]++|[][{}:,]')
_INDENT = lazy_compile(r"^[ \t]+(?=[\"{[])", re.MULTILINE)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text, int(text.startswith("\ufeff"))

    def word(self) -> tuple[str, int]:
        start = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]  # it matches everywhere
        found = _WORD.match(self.text, start)
        if found is None:
            raise ValueError(f"unexpected text in line {self.text.count(chr(10), 0, start) + 1}")
        self.at = found.end()
        return found.group(), start

    def node(self) -> Node:
        word, start = self.word()
        if word not in "{[":
            return Node(start, self.at, json.loads(word))
        children: list[Child] = []
        closing, keys = ("}", set[str]()) if word == "{" else ("]", None)
        while True:
            word, at = self.word()
            if word == closing:
                break
            key = None
            if keys is None:
                self.at = at
            else:
                key = json.loads(word)
                if not isinstance(key, str) or self.word()[0] != ":":
                    raise ValueError(f"unexpected {word!r}")
                if key in keys:
                    raise ValueError("a key stands twice")
                keys.add(key)
            node = self.node()
            word, comma = self.word()
            children.append(Child(key, at, node, comma + 1 if word == "," else 0))
            if word == closing:
                break
            if word != ",":
                raise ValueError(f"unexpected {word!r}")
        values = [child.node.value for child in children]
        value = values if keys is None else {child.key: child.node.value for child in children}
        return Node(start, self.at, value, tuple(children))
