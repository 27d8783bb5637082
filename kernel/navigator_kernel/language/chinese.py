"""Says in Chinese what the kernel wrote in English: errors, hints, notes and help.

Errors are written in English where they are raised. `chinese.tsv` has their templates (`no skill called {name!r} is
installed`), each with its Chinese form; `tests/maintenance/sentences.py` collects them from the code, and a test fails
for one that is missing. Nothing here is loaded for a person who reads English.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from navigator_kernel.text import Language, lazy_compile

FILE = Path(__file__).with_name("chinese.tsv")
SHORT = 12  # characters of a template that begins with one word, and not with any text that ends like it
DEPTH = 6  # sentences inside sentences
# Values that may be sentences themselves; all others, such as a command to approve, are shown as they are
_SENTENCES = frozenset(
    """asked body cause choice detail digest error every files found gone hint holder how loss lost message more msg
    name names number_type offered problem problems reason reasons said served skills told value what where
    why""".split()
)
_QUOTED = lazy_compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|[(\[{\d-].*", re.DOTALL)  # the `repr` of a value
_BETWEEN = {": ": "：", "; ": "；"}  # what stands between two sentences


class _Template(NamedTuple):
    """The texts around the values of an English sentence, the names of the values, which of them are quoted, and the
    Chinese sentence. A value called `count` is a number, alone or with what is counted."""

    fixed: tuple[str, ...]
    names: tuple[str, ...]
    quoted: tuple[bool, ...]
    chinese: str


def in_language(text: str, language: Language) -> str:
    """The kernel's own English sentence in the language; any other text is returned unchanged."""
    return (_translated(text, DEPTH) or text) if language == "zh" else text


def approval_in(text: str, language: Language) -> str:
    """The question whether a command may run, in the language; the command itself is shown exactly."""
    if language != "zh" or not text.startswith("run "):
        return text
    more, known = "", _catalogue()[0]
    while " let it " in text:
        before, _, allowed = text.rpartition("; let it ")
        what, packages, names = allowed.partition(" (")
        if what not in known:
            break
        text, more = before, f"；并允许它{known[what]}{packages}{names}{more}"
    subject, _, command = text.removeprefix("run ").partition(": ")
    return f"运行 {known.get(subject, subject)}：{command}{more}"


def which_begins(english: str) -> str:
    """The Chinese form of the sentence that begins with this text; empty where there is none."""
    return next((chinese for text, chinese in _catalogue()[0].items() if text.startswith(english)), "")


def chinese_forms() -> Mapping[str, str]:
    """English template → Chinese template."""
    rows = (line.split("\t") for line in FILE.read_text("utf-8").splitlines() if not line.startswith("# "))
    return {_unescaped(english): _unescaped(chinese) for english, chinese in rows}


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t")


def _translated(text: str, depth: int) -> str | None:
    """The Chinese form; None where there is none."""
    if not depth or not text or (not text.isprintable() and "\n" not in text):
        return None
    plain, templates, _ = _catalogue()
    if text in plain:
        return plain[text]
    for template in templates:  # the one that says most first
        if (values := _values(template, text)) is not None:
            values_by_name = {
                name: (_translated(value, depth - 1) if name in _SENTENCES or name[:5] == "count" else None) or value
                for name, value in zip(template.names, values, strict=True)
            }
            return template.chinese.format(**values_by_name)
    for sign, chinese in _BETWEEN.items():
        before, found, after = text.partition(sign)
        if found and (parts := (_translated(before, depth - 1), _translated(after, depth - 1))) != (None, None):
            return f"{parts[0] or before}{chinese}{parts[1] or after}"
    return None


def _values(template: _Template, text: str) -> Sequence[str] | None:
    """What stands in the sentence where the template has values; None where the sentence is another one."""
    first, *others = template.fixed
    if not text.startswith(first) or not text.endswith(others[-1]):
        return None
    at, values = len(first), []
    for count, fixed in enumerate(others, 1):
        end = len(text) - len(fixed) if count == len(others) else text.find(fixed, at + 1)
        if not fixed and count < len(others):  # the next value follows at once
            quoted = _QUOTED.match(text, at) if template.quoted[count - 1] else None
            end = quoted.end() if quoted else len(text) - len(others[-1])
        if end < at:
            return None
        value = text[at:end]
        if template.quoted[count - 1] and not _QUOTED.fullmatch(value):
            return None
        is_count = template.names[count - 1][:5] == "count"
        if is_count and (not value[:1].isdecimal() or value.lstrip("0123456789,") not in _catalogue()[2]):
            return None
        begins = count == 1 and not (first or template.quoted[0] or is_count)
        if begins and " " in value and sum(map(len, template.fixed)) < SHORT:
            return None
        values.append(value)
        at = end + len(fixed)
    return values


@cache
def _catalogue() -> tuple[Mapping[str, str], Sequence[_Template], Collection[str]]:
    """The sentences without values; the templates, of which the ones with the most fixed text come first; what is
    counted (` skills`)."""
    from string import Formatter

    plain, templates = dict[str, str](), list[_Template]()
    for english, chinese in chinese_forms().items():
        parts = [*Formatter().parse(english)]
        fixed, names, quoted = [""], list[str](), list[bool]()
        for text, name, _, conversion in parts:
            fixed[-1] += text
            if name is not None:
                names.append(name)
                quoted.append(conversion == "r")
                fixed.append("")
        if names:
            templates.append(_Template(tuple(fixed), tuple(names), tuple(quoted), chinese))
        else:
            plain[fixed[0]] = chinese.format()
    counted = {"", *(one.fixed[1] for one in templates if one.names == ("count",) and not one.fixed[0])}
    return plain, sorted(templates, key=lambda template: -sum(map(len, template.fixed))), counted
