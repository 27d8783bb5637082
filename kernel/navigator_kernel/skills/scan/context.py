"""Finds the contexts that lower the level of a hit: a warning, a quotation, a condition, a test, a placeholder address.

Each lowers a level by one step at most once: an error becomes a warning, and a warning a note.
"""

from __future__ import annotations

import re
from functools import lru_cache

from navigator_kernel.skills.scan.comments import FAR, is_comment
from navigator_kernel.skills.scan.passages import Passage, warned_of
from navigator_kernel.text import lazy_compile

# Files that describe or test a program, and that agents do not follow
_ASIDE = lazy_compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|fixtures?|testdata|mocks?|__mocks__|templates?|node_modules|vendor|third[-_]party)/"
    r"|(?:^|/)(?:test_[^/]*|[^/]*[._-](?:test|spec)s?\.\w+|conftest\.py|[^/]*\.template)$"
    r"|(?:^|/)(?:change(?:s|log)|history|release[-_]notes|licen[cs]e|copying|notice|authors|contributing|security|[\w-]*OFL)"
    r"(?:[.-][^/]*)?$|\.(?:lock|sum|map|snap|min\.js)$|(?:^|/)package-lock\.json$",
    re.IGNORECASE,
)
_CONDITION = lazy_compile(
    r"\b(?:not|n[o’']t|cannot|never|avoid|until|unless|if|whether|when|once|after|before|refuse|reject|prevent\w*"
    r"|against|instead of"
    r"|rather than|ensure|confirm|verify|check|make sure|only|wait|ask(?:s|ed|ing)?|e\.g\.|such as|like|example"
    r"|says?|said|says|claims?"
    r"|attempts?|tries|detect\w*|flag|treat\w*)\b[^.!?\n]{0,90}$|(?:如果|除非|只有|仅当|之前|之后|等到|是否|直到|当|切勿|禁止|避免)[^。！？\n]{0,30}$",
    re.IGNORECASE,
)
_SEARCHES = lazy_compile(
    r"\b(?:[ef]?grep|rg|ag|ack|findstr|select-string)\b(?:[^\n|;&]{0,200}|[^\n|;&\"']{0,120}[\"'][^\n\"']{0,200})$",
    re.IGNORECASE,
)
_IMAGE = lazy_compile(r"(?:^|/)(?:Docker|Container)file(?:\.[\w.-]+)?$|\.(?:docker|container)file$", re.IGNORECASE)
# An instruction to run the text after it
_ORDERS = lazy_compile(
    r"\b(?:run|execute|type|paste|enter|issue|invoke|use)\b[^.!?\n]{0,60}$"
    r"|(?:执行|运行|输入|使用|调用)[^。！？\n]{0,30}$",
    re.IGNORECASE,
)
_OPENING = "\"'“‘«`「『"
_CLOSING = "\"'”’»`」』"
_SAYS = lazy_compile(
    r"^\s*@?(?:echo|printf|print|puts|cat\s*<<|type\s+[\"']|write-(?:host|output)|console\.\w+|log\w*[.(\s]|logger\.|warn|error|info|die"
    r"|help\s*=|description\s*=|raise|throw|typer\.|click\.echo|sys\.exit|parser\.|say\b|note\b)",
    re.IGNORECASE,
)
_LISTED = lazy_compile(r"(?:[\[,({|:=-]|=>|\breturn|\bcase|\bin)\s*(?:re\.compile\(\s*)?[rbfu]{0,2}$", re.IGNORECASE)
_RUNS = lazy_compile(
    r"\b(?:exec\w*|eval|spawn\w*|system|popen|run\w*|shell\w*|call|check_\w+|bash|sh|child_process|command|invoke-\w+|iex)\b\s*[(\[=\s]",
    re.IGNORECASE,
)
_COMMAND_KEY = lazy_compile(
    r"(?:install|command|cmd|run|exec\w{0,40}|prepare|scripts?|args|shell|entrypoint|build|start)[\"']?\s*+[:=]\s*+(?:\[[^\]\n]{0,200})?[\"']?[^\"'\n]{0,300}$",
    re.IGNORECASE,
)
# A placeholder for a machine, or an address that only this machine or network can reach
_NOBODY = lazy_compile(
    r"\b(?:attacker|victim|target|your|my|listener|evil|malicious|lhost|rhost)[\w-]*|<[\w .-]{2,40}>|\{\{?\w+\}?\}"
    r"|\b(?:127|10)(?:\.\d{1,3}){3}\b|\b192\.168(?:\.\d{1,3}){2}\b|\b172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}\b"
    r"|\blocalhost\b|\[::1\]|\b0\.0\.0\.0\b|\b(?:x|y)\.(?:x|y)\.|\b(?:AAAA\w*|xxx+)?\.\.\.",
    re.IGNORECASE,
)


@lru_cache(maxsize=4096)
def is_aside(path: str) -> bool:
    return bool(_ASIDE.search(path))


def is_image(path: str) -> bool:
    """Whether the file builds the image of a container, so that it does not change this machine."""
    return bool(_IMAGE.search(path))


def excused(passage: Passage, hit: re.Match[str], *, strings: bool) -> bool:
    """Whether its context shows that it is not an action; with `strings`, one in a string counts as an action."""
    if is_aside(passage.path) or warned_of(passage, hit.start()) or _is_searched(passage, hit):
        return True
    return _is_said(passage, hit, strings=strings)


def is_conditional(passage: Passage, at: int) -> bool:
    """Whether the sentence forbids it or sets a condition for it, which reverses its meaning."""
    return bool(_CONDITION.search(passage.body, max(at - 120, 0), at))


def is_mentioned(passage: Passage, at: int) -> bool:
    """Whether it appears in prose, or between backticks in prose, without words before it that say to run it. A line of
    its own counts as an order to run it."""
    inline = passage.kind == "fence" and passage.text[passage.start - 1 : passage.start] == "`"
    if passage.kind != "prose" and (not inline or "\n" in passage.body):
        return False
    place = passage.start + at
    before = passage.text[max(place - 100, 0) : place]
    if not before.rpartition("\n")[2].strip(" \t$>`"):
        return False
    return not _ORDERS.search(before) or bool(_CONDITION.search(before))


def is_quoted(passage: Passage, hit: re.Match[str]) -> bool:
    """Whether it is inside a pair of quotation marks on its line."""
    begin, end = _line(passage.body, hit.start())
    before = passage.body[max(begin, hit.start() - 160) : hit.start()]
    after = passage.body[hit.end() : min(end, hit.end() + 160)]
    for opening, closing in zip(_OPENING, _CLOSING, strict=True):
        inside = before.count(opening) % 2 == 1 if opening == closing else before.rfind(opening) > before.rfind(closing)
        if inside and closing in after and not (opening == "'" and before[-1:].isalpha()):
            return True
    return False


def names_nobody(passage: Passage, hit: re.Match[str]) -> bool:
    """Whether the other machine is a placeholder or a private one."""
    begin, _ = _line(passage.body, hit.start())
    _, end = _line(passage.body, hit.end())
    return bool(_NOBODY.search(passage.body, max(begin, hit.start() - 200), min(end, hit.end() + 300)))


def _is_searched(passage: Passage, hit: re.Match[str]) -> bool:
    """Whether it is the text that a search command looks for."""
    begin, _ = _line(passage.body, hit.start())
    return is_quoted(passage, hit) and bool(_SEARCHES.search(passage.body, begin, hit.start()))


def _is_said(passage: Passage, hit: re.Match[str], *, strings: bool) -> bool:
    """Whether it is in a comment, or in a string of a code file that is printed or compared, not run."""
    if passage.kind in {"code", "config", "fence"} and is_comment(passage, hit.start()):
        return True
    if passage.kind not in {"code", "config"} or strings or not is_quoted(passage, hit):
        return False
    body = passage.body
    begin, end = _line(body, hit.start())
    line, before = body[begin:end], body[begin : hit.start()]
    begins = not begin or body[begin - 1] == "\n"
    if passage.kind == "config":
        return not _COMMAND_KEY.search(passage.body, max(hit.start() - 400, 0), hit.start())
    if begins and _SAYS.match(line):
        return True
    mark = max(before.rfind('"'), before.rfind("'"), before.rfind("`"))
    return bool(_LISTED.search(before, 0, mark)) and not _RUNS.search(before, 0, mark + 1)


def line_of(body: str, at: int) -> str:
    """The line at position `at`, or the part of a long one around it."""
    begin, end = _line(body, at)
    return body[begin:end]


def _line(body: str, at: int) -> tuple[int, int]:
    """The beginning and end of the line at position `at`, or of the part of a long one around it."""
    low, high = max(at - FAR, 0), min(at + FAR, len(body))
    end = body.find("\n", at, high)
    return max(body.rfind("\n", low, at) + 1, low), high if end < 0 else end
