"""Cuts a skill's files into passages for content rules: code, settings, prose, and hidden parts of prose."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from navigator_kernel.text import lazy_compile

Kind = Literal["code", "prose", "fence", "config", "comment"]
KINDS: frozenset[Kind] = frozenset(("code", "prose", "fence", "config", "comment"))

_ABOVE = 16  # lines that are searched for a warning: the hit's own line and those above it
_BLOCK = 65_536  # characters of a block that is searched for line breaks
_PROSE = (".md", ".markdown", ".mdx", ".txt", ".rst", ".html", ".htm", ".adoc")
_CONFIG = (".json", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".plist", ".env", ".xml", ".service")
_DATA = (".csv", ".tsv", ".svg", ".css", ".po", ".ics", ".geojson", ".lock", ".sum", ".map", ".log")
_CODE = (
    ".py", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd",
    ".lua",
)  # fmt: skip
_REQUIREMENTS = lazy_compile(r"^requirements[\w.-]*\.txt$|^constraints\.txt$")
_FRONT = lazy_compile(r"\A(?:\ufeff)?---[ \t]*\r?\n(.*?)^---[ \t]*$", re.MULTILINE | re.DOTALL)
_COMMAND = lazy_compile(r"^[ \t]*[\w-]*command[ \t]*:((?:.*\n)(?:[ \t].*\n)*)", re.MULTILINE)
_REMARK = lazy_compile(r"(?:^|[ \t])#[ \t]+([^\n]{20,})$", re.MULTILINE)
_SUBJECT = lazy_compile(  # the subject of a document can make its code an example
    r"^(?:description|title|name)[ \t]*:[^\n]*?\b(?:penetration|pen-?test\w*|attack\w*|exploit\w*|malware"
    r"|red[- ]team\w*|privilege[- ]escalation"
    r"|xss|injection|vulnerabilit\w+|threats?|security (?:scan\w*|audit\w*|review\w*))\b",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = lazy_compile(
    r"^[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t>]+)?(`{3,}+|~{3,}+)[^\n]*\n(.*?)(?:^[ \t>]*\1[`~]*[ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_NAMED = lazy_compile(r"[`~]{3}[ \t]*\{?\.?([\w+#-]++)[^\n`~]*+\n\Z")
_SHOWN_OPENING = lazy_compile(r"(?<=`)<!--[^`\n]*(?=`)")
_UNFENCED = lazy_compile(
    r"(?:\A|(?<=\n))(?:[ \t>]*\n|\A)((?:(?: {4}|\t)[^\n]*(?:\n|\Z))+)|<(?:pre|code)\b[^<>]{0,200}>(.*?)(?:</|\Z)",
    re.DOTALL | re.IGNORECASE,
)
_WRAPPED = lazy_compile(r"(?<=[^\n])\n(?=[^\S\n]{0,12}[^\s#>*|+`-])")
_CONTINUED = lazy_compile(r"\\\n|([|&])\n")
_BREAK = lazy_compile(r"\n[ \t]*\n")
_INLINE = lazy_compile(r"`([^`\n]{3,400})`")
_UNSEEN = lazy_compile(  # each form begins with one of a few marks; searching for the marks first halves the time
    r"[<\[!\]](?:"
    r"(?<=<)(?:!--(.*?)(?:-->|\Z)"  # an HTML comment
    r"|(?:\w{1,20})[^<>]{0,400}?(?:display\s?:\s?none|visibility\s?:\s?hidden|opacity\s?:\s?0(?!\.[1-9])"
    r"|(?:font-size|line-height|max-height|height|width)\s?:\s?[01](?:px|pt|em)?\b|clip\s?:|\bhidden\b|aria-hidden"
    r"|color\s?:\s?(?:#(?:f[a-f]?){3}\b|white|transparent|rgba?\([^()]{0,40},\s?0\s?\))|(?:left|text-indent)\s?:\s?-\d{3})"
    r"[^<>]{0,400}>(.*?)(?:</|\Z)"
    r"|(?:template|noscript|metadata|desc|title)\b[^<>]{0,200}>([^<]{40,})</"
    r"|meta\b[^<>]{0,200}?content\s?=\s?[\"']([^\"'<>]{60,2000})[\"'])"
    r"|(?<=^\[)[^\]\n]{1,40}\]:\s{0,9}(?:#|<>|about:blank)\s{0,9}[\"'(]([^\n]*)"  # a definition that no link uses
    r"|(?:(?<=!)\[|(?<=\[))((?!https?://[^\s\[\]]+\])[^\[\]\n]{60,})\]\("  # a link text, too long for one
    r"|(?<=\])\([^()\s]{1,400}\s{1,9}[\"']([^\"'\n]{40,})[\"']\)"  # a link's title
    r")",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
# Words of a warning: the text that it quotes is an example
_WARNS = lazy_compile(
    r"\b(?:avoid|dangerous|unsafe|insecure|malicious|suspicious|attack(?:s|er|ers)?|vulnerab\w+|red flags?|detect\w*"
    r"|anti-?patterns?|exploit\w*|injections?|reject|flag(?:ged|s)?|look for|watch (?:out )?for|patterns?|signatures?"
    r"|regex(?:es)?|never run|bad example|forbidden|blocked|threats?|phishing|indicators?|compromised?|malware"
    r"|intrusions?|forensics?|must be reported|payloads?|xss|csrf|sqli|pen-?test\w*|penetration|reverse shells?"
    r"|privilege escalation|blocks|denied|denylist|ctf)\b"
    r"|危险|恶意|可疑|攻击|避免使用|漏洞|检测|不安全|禁止|危険|悪意|攻撃|脆弱|検知|検出|悪い例|使わない|しないこと",
    re.IGNORECASE,
)

_WARNS_IN_CODE = lazy_compile(  # comments often speak of detecting and avoiding, so those words do not count here
    r"\b(?:malicious|suspicious|attack(?:s|er|ers)?|vulnerab\w+|red flags?|exploit\w*|signatures?|indicators?|malware"
    r"|compromised?|intrusions?|forensics?|phishing)\b|恶意|可疑|攻击|漏洞|悪意|攻撃|脆弱",
    re.IGNORECASE,
)


class Passage(NamedTuple):
    """A piece of a file of one kind; `start` is where it begins in `text`, the whole file."""

    path: str
    kind: Kind
    body: str
    start: int
    text: str

    def line(self, at: int) -> int:
        """The line of the file, from 1, of place `at` in the body."""
        return line_at(self.text, self.start + at)


def passages(path: str, text: str, kinds: Container[Kind] = KINDS) -> Iterator[Passage]:
    """The passages of `kinds`: a file of code or settings is one; prose is cut into metadata, code in fences and
    backticks, text that is not shown, and the rest."""
    kind = kind_of(path, text)
    if kind == "prose":
        yield from (one for one in _of_prose(path, text, kinds) if one.kind in kinds)
    elif kind in kinds:
        yield Passage(path, kind, _joined(text), 0, text)


def is_named_text(path: str) -> bool:
    return path.lower().endswith((*_PROSE, *_CONFIG, *_DATA, *_CODE))


def kind_of(path: str, text: str) -> Kind:
    """The kind of a file by its name; code if the name is not known or the text begins with `#!`."""
    name = path.rpartition("/")[2].lower()
    if text.startswith("#!"):
        return "code"
    if (name.endswith((*_PROSE, *_DATA)) and not _REQUIREMENTS.search(name)) or name in {
        "license",
        "notice",
        "authors",
        "changelog",
        "readme",
        "copying",
    }:
        return "prose"
    return "config" if name.endswith(_CONFIG) or _REQUIREMENTS.search(name) else "code"


def warned_of(passage: Passage, at: int) -> bool:
    """Whether the text at `at` is quoted in a warning, judged by the words on its line and above it."""
    if passage.kind == "comment":
        return False  # a person who warns does not hide the text
    if passage.kind == "fence" and _is_of_security(passage.text):
        return True
    place = passage.start + at
    low, high = max((place // _BLOCK - 1) * _BLOCK, 0), (place // _BLOCK + 2) * _BLOCK  # bounds for a very long line
    begin, end = place, passage.text.find("\n", place, high)
    for _ in range(_ABOVE):
        begin = passage.text.rfind("\n", low, begin)
        if begin < 0:
            break
    return _warns_between(passage.text, max(begin, low), end if end >= 0 else high, passage.kind)


@lru_cache(maxsize=1)
def _is_of_security(text: str) -> bool:
    """Whether the metadata of `text` says that it is about attacks."""
    front = _FRONT.match(text)
    return bool(front and _SUBJECT.search(text, 0, front.end()))


@lru_cache(maxsize=64)  # many hits on one long line need the same answer
def _warns_between(text: str, begin: int, end: int, kind: Kind) -> bool:
    return bool((_WARNS_IN_CODE if kind == "code" else _WARNS).search(text, begin, end))


def language_of(passage: Passage) -> str:
    """The language that a fence names, in lower case; empty if it names none."""
    named = _NAMED.search(passage.text, max(passage.start - _BLOCK, 0), passage.start)
    return named[1].lower() if named else ""


def line_at(text: str, at: int) -> int:
    """The line of `text`, from 1, of place `at`."""
    block = at // _BLOCK
    return _breaks_before(text)[block] + text.count("\n", block * _BLOCK, at) + 1


@lru_cache(maxsize=1)
def _breaks_before(text: str) -> Sequence[int]:
    """The number of line breaks before each block."""
    before = [0]
    for begin in range(0, len(text), _BLOCK):
        before.append(before[-1] + text.count("\n", begin, begin + _BLOCK))
    return before


def _of_prose(path: str, text: str, kinds: Container[Kind]) -> Iterator[Passage]:
    """The passages of a text, of any kind; those that are not in `kinds` may be missing."""
    if front := _FRONT.match(text):
        for hit in _REMARK.finditer(text, 0, front.end()):
            yield Passage(path, "comment", hit[1], hit.start(1), text)
        for hit in _COMMAND.finditer(text, 0, front.end()):
            yield Passage(path, "code", hit[1], hit.start(1), text)
    fences = list(_FENCE.finditer(text))
    for hit in fences if "fence" in kinds else ():
        yield Passage(path, "fence", _joined(hit[2]), hit.start(2), text)
    rest = _blanked(text, fences)
    rest = _blanked(rest, [hit for hit in _SHOWN_OPENING.finditer(rest) if _is_shown(rest, hit)])
    unseen = [hit for hit in _UNSEEN.finditer(rest) if not _is_shown(rest, hit)]
    for hit in unseen:
        group = hit.lastindex or 0
        yield Passage(path, "comment", _unwrapped(hit[group]), hit.start(group), text)
    rest = _blanked(rest, unseen) if "fence" in kinds or "prose" in kinds else ""
    for hit in _INLINE.finditer(rest) if "fence" in kinds else ():
        yield Passage(path, "fence", hit[1], hit.start(1), text)
    for hit in _UNFENCED.finditer(rest) if "fence" in kinds else ():
        group = hit.lastindex or 0
        if not hit[group].isspace():  # a fence that was blanked out
            yield Passage(path, "fence", _joined(hit[group]), hit.start(group), text)
    if "prose" in kinds:
        yield Passage(path, "prose", _unwrapped(rest), 0, text)


def _is_shown(text: str, hit: re.Match[str]) -> bool:
    """Whether the match is between backticks, which show it. False if backticks before it in its paragraph come in
    runs, are escaped, or are not in pairs on their line: then the pairs are not known."""
    if text[hit.start() - 1 : hit.start()] != "`" or text[hit.end() : hit.end() + 1] != "`":
        return False
    breaks = [gap.end() for gap in _BREAK.finditer(text, max(hit.start() - _BLOCK, 0), hit.start())]
    before = text[breaks[-1] if breaks else 0 : hit.start()]
    if "``" in before or "\\`" in before:
        return False
    return all(line.count("`") % 2 == 0 for line in before[:-1].split("\n"))


def _joined(text: str) -> str:
    """`text` with each command on one line, and every character in its place."""
    if not any(mark in text for mark in ("\\\n", "|\n", "&\n")):
        return text
    return _CONTINUED.sub(lambda hit: " " * len(hit.group()) if hit[1] is None else f"{hit[1]} ", text)


def _unwrapped(text: str) -> str:
    """`text` with each paragraph on one line, and every character in its place."""
    return _WRAPPED.sub(" ", text)


def _blanked(text: str, cut: Iterable[re.Match[str]]) -> str:
    """`text` with blanks in place of each of `cut`, so that places and lines stay the same."""
    pieces, at = [], 0
    for hit in cut:
        pieces += [text[at : hit.start()], "\n".join(" " * len(line) for line in hit.group().split("\n"))]
        at = hit.end()
    return "".join([*pieces, text[at:]])
