"""Finds text that a reader does not see: invisible characters, reversed order, terminal sequences; and two actions that
belong together, however far apart: a file is fetched or decoded, and then run.

Sources: Unicode TR36 and TR39; "Trojan Source", CVE-2021-42574; smuggling by tag characters and variation selectors.
"""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING

from navigator_kernel.skills.scan.context import Kind, Passage, is_aside, kind_of, warned_of
from navigator_kernel.skills.scan.rule import Hit
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from navigator_kernel.skills.scan.finding import Level


_BEYOND = lazy_compile(r"[^\x00-\x7f]+")
_FLAG = "\U0001f3f4"  # the only use of tag characters: flags of regions
_TAGS = lazy_compile("[\U000e0000-\U000e007f]+")
_SELECTORS = lazy_compile("[\U000e0100-\U000e01ef]{2,}|[\ufe00-\ufe0f]{2,}")
_NOTHING = "\u180e\u200b-\u200d\u2060-\u2064\u206a-\u206f\ufeff\u115f\u1160\u3164\uffa0\u17b4\u17b5\u00ad\u034f"
_RUN = lazy_compile(f"[{_NOTHING}]{{3,}}")
_UNSEEN = lazy_compile(f"[\U000e0000-\U000e007f\U000e0100-\U000e01ef\ufe00-\ufe0f{_NOTHING}]")
_BETWEEN = lazy_compile(f"(?<=[!-~])[{_NOTHING}]+(?=[!-~])")
_BIDI = lazy_compile("[\u202a-\u202e\u2066-\u2069]")
_OVERRIDE = lazy_compile("[\u202d\u202e]")
# Greek letters that look like Latin ones, and Cyrillic letters
_ALIKE = "\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bf\u0400-\u052f"
_LOOKS = frozenset("АВЕКМНОРСТХаеорсухіїјѕԁԛԝһӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧο")  # indistinguishable from Latin letters
_BEFORE, _AFTER = lazy_compile(r"\w{1,80}\Z"), lazy_compile(r"\w+")
_ANY_ALIKE = lazy_compile(f"[{_ALIKE}]")
_SCRIPTS = lazy_compile(f"[A-Za-z][{_ALIKE}]|[{_ALIKE}][A-Za-z]")
_ESCAPES = lazy_compile(r"(?:\x1b[\[\]P_^X()c78=>NO#]|[\x9b\x9d\x90])[^\n]{0,40}")
_STEERS = lazy_compile(r"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]|\r(?!\n|\Z)")
_RECORDED = (".log", ".cast", ".ans", ".typescript")
_RTL = frozenset({"R", "AL"})
_MESSAGE = 8  # invisible characters in a row, one bit each, that can encode a letter
_SPREAD = 40  # places between visible characters from which single ones cannot be an accident of copying
# Colours, and keys as sent to a program (CSI u)
_HARMLESS = lazy_compile(r"\x1b\[(?:(?!8m)(?:(?!8[;m])\d{1,3};?){0,8}m|\d{1,3}(?:;\d{1,3}){0,2}u)")
_EMBEDDED = lazy_compile("^[^\u202d\u202e\u2066-\u2069]*$")


def findings(path: str, text: str) -> Iterator[Hit]:
    """Yields the findings in a whole text file; `at` counts from its beginning."""
    begin = 1 if text.startswith("\ufeff") else 0
    if not text.isascii():
        held = "".join(frozenset("".join(_BEYOND.findall(text))))  # each once: most texts have few different ones
        yield from _invisible(text, begin) if _UNSEEN.search(held) else ()
        yield from _reversed(path, text) if _BIDI.search(held) else ()
        yield from _mixed(path, text) if _ANY_ALIKE.search(held) else ()
    if not text.replace("\n", "").replace("\t", "").isprintable():
        yield from _steering(path, text)


def _invisible(text: str, begin: int) -> Iterator[Hit]:
    for hit in _TAGS.finditer(text, begin):
        if not (hit.start() and text[hit.start() - 1] == _FLAG and hit.group().endswith("\U000e007f")):
            told = "".join(chr(ord(mark) - 0xE0000) for mark in hit.group() if 0x20 <= ord(mark) - 0xE0000 < 0x7F)
            yield Hit("hidden-tags", hit.start(), "error", f"invisible tag characters say {told[:80]!r}")
    for hit in _SELECTORS.finditer(text, begin):
        yield Hit(
            "hidden-selectors", hit.start(), "error", f"{len(hit.group())} variation selectors in a row carry data"
        )
    runs = list(_RUN.finditer(text, begin))
    for hit in runs:
        hidden: Level = "error" if len(hit.group()) >= _MESSAGE else "warning"
        yield Hit("hidden-characters", hit.start(), hidden, f"{len(hit.group())} invisible characters in a row")
    single = [hit.start() for hit in _BETWEEN.finditer(text, begin)]
    if single and not runs:
        kinds = {text[at] for at in single}  # one kind alone encodes nothing
        level: Level = "error" if len(single) >= _SPREAD and len(kinds) > 1 else "warning"
        message = f"invisible characters between visible ones, {len(single)} times"
        yield Hit("hidden-characters", single[0], level, message)


def _reversed(path: str, text: str) -> Iterator[Hit]:
    """Reports the first character that changes the text order: code needs none, and prose only beside letters of
    scripts that are written from right to left."""
    begin, kind = 0, kind_of(path, text)
    prose = kind == "prose"
    for line in text.split("\n"):
        if hit := _BIDI.search(line):
            mixed = prose and any(unicodedata.bidirectional(mark) in _RTL for mark in line)
            override = _OVERRIDE.search(line)
            if not mixed or override:
                copied = kind != "code" and _EMBEDDED.match(line)  # some programs put such marks around a copied path
                level: Level = "warning" if mixed or copied else "error"
                at = begin + (override or hit).start()
                yield Hit("bidi", at, level, "a control character changes the order in which text is shown")
                return
        begin += len(line) + 1


def _mixed(path: str, text: str) -> Iterator[Hit]:
    """Reports a name in code with letters of several scripts, which is not the name that it seems to be."""
    for hit in _SCRIPTS.finditer(text) if kind_of(path, text) == "code" else ():
        before, after = _BEFORE.search(text, max(hit.start() - 80, 0), hit.start()), _AFTER.match(text, hit.start())
        word = (before.group() if before else "") + (after.group() if after else "")
        if any(not mark.isascii() and mark not in _LOOKS for mark in word):
            continue  # a word in a language that also uses Latin letters
        around = " ".join(text[max(hit.start() - 20, 0) : hit.end() + 20].split("\n"))
        level: Level = "warning" if is_aside(path) else "error"
        yield Hit("mixed-scripts", hit.start(), level, f"a name mixes letters that look alike: {around!r}")
        return


def _steering(path: str, text: str) -> Iterator[Hit]:
    """Reports terminal sequences and control characters, except in a recording of a terminal."""
    if path.lower().endswith(_RECORDED):
        return
    text = _HARMLESS.sub(lambda hit: " " * len(hit.group()), text)
    for held, message in ((_ESCAPES, "a terminal sequence"), (_STEERS, "a control character")):
        if hit := held.search(text):
            level: Level = "error" if held is _ESCAPES or "\b\b\b" in text else "warning"
            yield Hit("terminal", hit.start(), level, f"{message} can hide or fake what is shown")
            return


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
_SEQUENCES_RUN = lazy_compile(
    rf"(?:(?<!\.)\b{_RUNNERS}\s+(?:-\w+\s+){{0,4}}|(?:^|[;&|({{@])[ \t]{{0,40}}[@-]{{0,2}}(?:\.\s+)?(?!{_RUNNERS}\s)"
    rf"|[\s\"'`](?=\./|/tmp/|~/|\$\{{?\w+\}}?/)(?!\S{{1,200}}\.{_DATA}\b)){_FILE}",
    _FLAGS,
)
_DEEDS = (
    (_SAVED, "fetch-execute", "fetched"),
    (_NAMED, "fetch-execute", "fetched"),
    (_DECODED, "encoded-execute", "decoded"),
)


def hits(passage: Passage) -> Iterator[Hit]:
    """The first hit of each level for each kind of action."""
    deeds = _DEEDS if passage.kind in KINDS else ()
    made = [(code, how, deed.finditer(passage.body)) for deed, code, how in deeds if deed.search(passage.body)]
    last = {_name(hit): hit.start("file") for hit in _SEQUENCES_RUN.finditer(passage.body)} if made else {}
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
