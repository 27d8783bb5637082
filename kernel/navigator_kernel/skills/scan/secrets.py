"""Finds secrets in a skill without showing them: a real one is a warning, an example a note. Also the patterns for the
places where programs keep secrets."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from navigator_kernel.skills.scan.context import is_aside, line_at
from navigator_kernel.skills.scan.finding import MOST, SHOWN, Level, finding
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from navigator_kernel.values.resource import Diagnostic


_STORES = (
    r"\.ssh/(?!config\b|known_hosts\b|authorized_keys\b)[\w*.]{1,40}(?<!\.pub)(?!\w*\.pub)|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.aws/credentials|\.(?:netrc|git-credentials|pgpass|vault-token|pypirc|npmrc)\b(?!\.example)|\.gnupg\b|\.kube/config|\.docker/config\.json"
    r"|\.config/(?:gh/hosts|gcloud/|solana/)|application_default_credentials|\.claude/\.credentials|\.codex/auth"
    r"|\bLogin Data\b|\bcookies\.sqlite\b|\bkey4\.db\b|\blogins\.json\b|google-chrome/\S{0,40}Cookies"
    r"|\bwallet\.dat\b|\.ethereum/keystore"
    r"|\.electrum\b|/proc/(?:self|1|\d+|\*)/environ|/etc/shadow\b|\.(?:bash|zsh)_history\b"
)
STORE = lazy_compile(_STORES, re.IGNORECASE)
# In a shell, a store can be named without its folder
SHELL_STORE = lazy_compile(
    _STORES + r"|(?:\$HOME|~|\$\{HOME\})[\"'/]*\s{1,4}(?:\S{1,40}\s{1,4}){0,4}\.(?:ssh|aws|gnupg|kube)\b"
    r"|[\"']\.(?:npmrc|pypirc|netrc|git-credentials)[\"']"
    r"|security\s+(?:find|dump|export)-[\w-]*(?:password|keychain)|secret-tool\s+(?:lookup|search)|cmdkey\s+/list"
    r"|(?:\bcat\b|<|@)\s{0,4}[\"']?(?:\./)?\.env\b(?!\.example|\.sample)",
    re.IGNORECASE,
)
ENVIRONMENT = lazy_compile(
    # Only as a command: `fnm env`, `handle(env)` and `env: Env` are something else
    r"(?-i:(?:(?:^|\$\(|`|[|;!\"'{]|&&)\s{0,4}|\b(?:sudo|then|do|else|exec|command|run|RUN)\s{1,4})(?:env|printenv)\s*(?:\||>|$)"
    r"|(?:\$\(|`)\s{0,4}(?:sudo\s{1,4})?(?:env|printenv)\s*[)`]|\(\s{0,4}(?:env|printenv)\s*\|)|JSON\.stringify\s*\(\s*process\.env\s*[,)]|Object\.(?:entries|values)\s*\(\s*process\.env\s*\)"
    r"|\.\.\.process\.env\b|\bENV\.to_h\b|\bENV\.to_a\b|Get-ChildItem\s+env:",
    re.IGNORECASE | re.MULTILINE,
)
# Commands that print a token, each with the hosts that the token is for
TOKENS = (
    (lazy_compile(r"\bgh auth token\b"), lazy_compile(r"github\.com|githubusercontent\.com|ghcr\.io")),
    (
        lazy_compile(r"\bgcloud auth (?:application-default )?print-\w+-token\b"),
        lazy_compile(r"google|run\.app|\.goog\b|gcr\.io"),
    ),
    (lazy_compile(r"\baz account get-access-token\b"), lazy_compile(r"azure|microsoft|windows\.net|visualstudio")),
    (lazy_compile(r"\bgit credential fill\b"), lazy_compile(r"(?!)")),
)
# Git writes a name and a password before the host
ADDRESS = lazy_compile(r"\b(?:https?|wss?|ftp)://(?:[^\s/@\"'<>]{1,120}@)?([\w.-]{3,200})", re.IGNORECASE)
LOCAL = lazy_compile(r"^(?:localhost|127\.|0\.0\.0\.0|\[?::1)", re.IGNORECASE)


# Kinds that only say that a word like "password" is next to a value
_GUESSED = lazy_compile(r"keyword|basic auth|authori[sz]ation|header|entropy|password|url|cookie|option", re.IGNORECASE)
_EXAMPLE = lazy_compile(
    r"example|sample|dummy|fake|test|your|my[-_]|xxx|\.\.\.|…|[<{$%]|change.?me|placeholder|password|secret|redacted|1234|abcd|todo|foo|bar|demo|mock"
    r"|(.)\1{4}",
    re.IGNORECASE,
)
AROUND = SHOWN // 2  # characters of a line that are shown before and after the beginning of a secret
_SHORT, _EVEN = 12, 3.2  # characters, and bits per character, below which a value is not random


class Place(Protocol):
    """The place of a secret in a text, and its kind."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def kind(self) -> str: ...


def findings(path: str, text: str, found: Iterable[Place]) -> Iterator[Diagnostic]:
    """Yields one finding per line, of the first kind there, and at most `MOST` per level; the line is shown with
    secrets cut out."""
    places = sorted(found, key=lambda one: (one.begin, -one.end))
    spans = _joined(places)
    told, left = 0, dict.fromkeys(("note", "warning", "error"), MOST)
    for one in places:
        line = line_at(text, one.begin)
        if line == told:
            continue
        told = line
        level = _level(path, text, one)
        left[level] -= 1
        if left[level] >= 0:
            yield finding("secret", level, path, f"holds a secret ({one.kind})", line, _redacted(text, one, spans))


def _joined(places: Iterable[Place]) -> list[tuple[int, int]]:
    """Beginning and end of the text that the places cover together, in order."""
    spans: list[tuple[int, int]] = []
    for one in places:
        if spans and one.begin < spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], one.end)
        else:
            spans.append((one.begin, one.end))
    return spans


def _level(path: str, text: str, one: Place) -> Level:
    value = text[one.begin : one.end]
    if _GUESSED.search(one.kind) or is_aside(path) or _EXAMPLE.search(value):
        return "note"
    return "note" if len(value) < _SHORT or _bits(value) < _EVEN else "warning"


def _bits(value: str) -> float:
    """The Shannon entropy per character."""
    return -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())


def _redacted(text: str, one: Place, spans: Sequence[tuple[int, int]]) -> str:
    """The line of a secret, or the part of a long one around its beginning, with secrets cut out."""
    low, high = max(one.begin - AROUND, 0), min(one.begin + AROUND, len(text))
    begin, end = max(text.rfind("\n", low, one.begin) + 1, low), text.find("\n", one.begin, high)
    end = high if end < 0 else end
    shown, at = [], begin
    for held in spans[bisect_right(spans, begin, key=lambda span: span[1]) :]:
        if held[0] >= end:
            break
        shown += [text[at : max(held[0], at)], "[secret]"]
        at = min(held[1], end)
    return "".join([*shown, text[at:end]]) or "[secret]"
