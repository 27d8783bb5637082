"""Finds two actions that belong together, however far apart: a file is fetched or decoded, and then run."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from navigator_kernel.skills.scan.context import is_aside
from navigator_kernel.skills.scan.finding import Level
from navigator_kernel.skills.scan.passages import Kind, Passage, warned_of
from navigator_kernel.skills.scan.rule import Hit
from navigator_kernel.text import lazy_compile

KINDS: frozenset[Kind] = frozenset({"code", "fence", "config", "comment"})
# Extensions of data files, which no command runs
_DATA = (
    r"(?:p8|p12|pem|key|pub|cer|crt|der|pfx|jks|keystore|mobileprovision"
    r"|plist|json|ya?ml|toml|csv|txt|md|pdf|png|jpe?g|gif|svg)"
)
_FLAGS = re.IGNORECASE | re.MULTILINE
_FILE = r"[\"']?(?P<file>[\w./~][\w./~@:-]{1,200}|\$[({]?\w{1,40}[)}]?(?:/[\w./-]{1,80})?)"
_SAVED = lazy_compile(
    r"\b(?:curl|wget|fetch|iwr|invoke-webrequest)\b[^\n]{0,300}?"
    rf"(?:\s-(?:\w{{0,8}}o|-output|-output-document|outfile)[ =]?\s{{0,4}}|>\s{{0,4}}){_FILE}",
    _FLAGS,
)
_NAMED = lazy_compile(
    r"\b(?:curl\s[^\n]{0,80}?-\w{0,8}O\b|wget\s)[^\n]{0,200}?https?://[^\s\"']{1,200}/(?P<file>[\w.-]{2,80})", _FLAGS
)
_DECODED = lazy_compile(
    rf"(?:base64\s+(?:-\w{{0,8}}d\w{{0,8}}|--decode)|xxd\s+-\w{{0,8}}r)[^\n]{{0,160}}?>\s{{0,4}}{_FILE}", _FLAGS
)
# Modes that make a file executable
_STARTS = (
    r"(?:[ugoa]{0,4}[+=][rw]{0,2}x\w{0,4}(?:,[\w+=-]{1,20})?"
    r"|[0-7]?(?:[1357][0-7]{2}|[0-7][1357][0-7]|[0-7]{2}[1357])(?=\s))"
)
_RUNNERS = rf"(?:(?:ba|z|da|k)?sh|python[\d.]*|node|perl|ruby|source|start-process|chmod\s+{_STARTS})"
_RUN = lazy_compile(
    rf"(?:(?<!\.)\b{_RUNNERS}\s+(?:-\w+\s+){{0,4}}|(?:^|[;&|({{@])[ \t]{{0,40}}[@-]{{0,2}}(?:\.\s+)?(?!{_RUNNERS}\s)"
    rf"|[\s\"'`](?=\./|/tmp/|~/|\$\{{?\w+\}}?/)(?!\S{{1,200}}\.{_DATA}\b)){_FILE}",
    _FLAGS,
)
_DEEDS = (
    (_SAVED, "fetch-execute", "fetched"),
    (_NAMED, "fetch-execute", "fetched"),
    (_DECODED, "encoded-execute", "decoded"),
)
SOURCES = tuple(held.pattern for held, _, _ in _DEEDS)


def hits(passage: Passage, may: Container[str]) -> Iterator[Hit]:
    """The first hit of each level for each kind of action; `may` contains the patterns that may match."""
    deeds = [deed for deed in _DEEDS if deed[0].pattern in may] if passage.kind in KINDS else []
    made = [(code, how, held.finditer(passage.body)) for held, code, how in deeds if held.search(passage.body)]
    last = {_name(hit): hit.start("file") for hit in _RUN.finditer(passage.body)} if made else {}
    for code, how, found in made:
        seen: set[Level] = set()
        for hit in found:
            if last.get(_name(hit), -1) > hit.end():
                mild = how == "fetched" or is_aside(passage.path) or warned_of(passage, hit.start())
                level: Level = "warning" if mild and passage.kind != "comment" else "error"
                if level not in seen:
                    yield Hit(code, hit.start(), level, f"it runs a file that it has just {how}", whole=True)
                seen.add(level)
                if level == "error":
                    break


def _name(hit: re.Match[str]) -> str:
    """The name by which the same file is recognised later: its own name, or the variable that contains it."""
    return hit["file"].rstrip("./").rpartition("/")[2] or hit["file"]
