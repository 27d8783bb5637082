"""Finds secrets in a skill without showing them: a real one is a warning, an example a note. Also the patterns for the
places where programs keep secrets."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Protocol

from navigator_kernel.skills.scan.context import is_aside, line_around, line_at
from navigator_kernel.skills.scan.finding import MOST, SHOWN, Level, finding
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from navigator_kernel.values.resource import Diagnostic


_STORES = (
    r"\.ssh/(?!config\b|known_hosts\b|authorized_keys\b|[\w*.]{1,40}\.pub\b)[\w*.]{1,40}|\bid_(?:rsa|ed25519|ecdsa|dsa)\b(?!\.pub)"
    r"|\.aws/credentials|\.(?:netrc|git-credentials|pgpass|vault-token|pypirc|npmrc)\b(?!\.example)|\.gnupg\b|\.kube/config|\.docker/config\.json"
    r"|\.config/(?:gh/hosts|gcloud/|solana/)|application_default_credentials|\.claude/\.credentials|\.codex/auth"
    r"|\bLogin\\? Data\b|\bcookies\.sqlite\b|\bkey4\.db\b|\blogins\.json\b|(?:google-)?chrome/[\w /-]{0,40}Cookies\b"
    r"|\bwallet\.dat\b|\.ethereum/keystore"
    r"|\.electrum\b|/proc/(?:self|1|\d+|\*)/environ|/etc/shadow\b|\.(?:bash|zsh)_history\b"
)
STORE = lazy_compile(_STORES, re.IGNORECASE)
# In a shell, a store can be named without its folder
SHELL_STORE = lazy_compile(
    _STORES + r"|(?:\$HOME|~|\$\{HOME\})[\"'/]*\s{1,4}(?:\S{1,40}\s{1,4}){0,4}\.(?:ssh|aws|gnupg|kube)\b"
    r"|[\"']\.(?:npmrc|pypirc|netrc|git-credentials)[\"']"
    r"|security\s+(?:find|dump|export)-[\w-]*(?:password|keychain)|secret-tool\s+(?:lookup|search)|cmdkey\s+/list"
    r"|(?:\bcat\b|<|@|\s-T\b|--upload-file\b)[\s=]{0,4}[\"']?(?:\./|\$PWD/)?\.env\b(?!\.example|\.sample)",
    re.IGNORECASE,
)
ENVIRONMENT = lazy_compile(
    # Only as a command: `fnm env`, `handle(env)` and `env: Env` are something else
    r"(?-i:(?:(?:^|\$\(|`|[|;!\"'{]|&&)\s{0,4}|\b(?:sudo|then|do|else|exec|command|run|RUN)\s{1,4})(?:env|printenv)\s*(?:\||>|$)"
    r"|(?:\$\(|`)\s{0,4}(?:sudo\s{1,4})?(?:env|printenv)\s*[)`]|\(\s{0,4}(?:env|printenv)\s*\||(?:^|[;&(`]|\bdo)\s{0,4}(?:set\s{0,4}\||(?:export\s-p|declare\s-p?xp?)\s{0,4}[|>)]))|JSON\.stringify\s*\(\s*process\.env\s*[,)]|Object\.(?:entries|values)\s*\(\s*process\.env\s*\)"
    r"|\.\.\.process\.env\b|\bENV\.to_h\b|\bENV\.to_a\b|Get-ChildItem\s+env:",
    re.IGNORECASE | re.MULTILINE,
)
# Commands that print a token and files that hold one, each with the hosts that the token is for
_TOKENS = (
    (r"\bgh auth token\b|\.config/gh/hosts\b", r"github\.com|githubusercontent\.com|ghcr\.io"),
    (
        r"\bgcloud auth (?:application-default )?print-\w+-token\b",
        r"(?:google|googleapis|googleusercontent)\.com|cloudfunctions\.net|run\.app|goog|gcr\.io|pkg\.dev",
    ),
    (r"(?:\.config/gcloud/)?application_default_credentials", r"oauth2\.googleapis\.com|accounts\.google\.com"),
    (
        r"\baz account get-access-token\b",
        r"(?:azure|microsoft|microsoftonline|windows|visualstudio)\.(?:com|net|us|cn)",
    ),
    (r"\bgit credential fill\b", r"(?!)"),
    (r"\.claude/\.credentials", r"anthropic\.com|claude\.(?:ai|com)"),
    (r"\.codex/auth", r"openai\.com|chatgpt\.com"),
    (r"\.npmrc\b", r"npmjs\.(?:org|com)|npm\.pkg\.github\.com"),
    (r"\.pypirc\b", r"pypi\.org"),
    (r"\.docker/config\.json", r"docker\.(?:com|io)"),
)
# Entries of a keychain and of `.env` that the name of a service stands for
_ENTRY = (
    r"security\s+find-[\w-]+\s[^\n|;)]{0,80}?-s\s?[\"']?(?P<chain>[\w. -]{3,40})"
    r"|\bmachine[\s=\"']{1,4}(?P<machine>[\w-]+(?:\.[\w-]+)+)[^\n|)]{0,120}\.netrc\b|\bnetrc\.netrc\([^()\n]{0,60}\)\.(?:authenticators\(|hosts\[)\s?[\"'](?P<login>[\w.-]+)[\"']"
    r"|secret-tool\s+lookup\s+service\s[\"']?(?P<ring>[\w.-]{3,40})"
    r"|(?:\bcat\b|<)\s{0,4}[\"']?(?:\./)?\.env\b[^\n]{0,40}?(?-i:\b(?P<line>[A-Z][A-Z0-9]{2,20})_[A-Z_]{0,20}(?:KEY|TOKEN|SECRET)\b)"
)
TOKENS = lazy_compile("|".join((*(named for named, _ in _TOKENS), _ENTRY)), re.IGNORECASE)
_UPLOADED = lazy_compile(r"(?:@|\s-T\s?|--upload-file[ =])[\"']?[\w~$/{}.-]{0,60}$")
_WORD = lazy_compile(r"[a-z0-9]{3,}")
_NO_SERVICE = frozenset(
    "api key token auth login password credentials safe storage vault service account user main".split()
)


def tokens_read(text: str) -> list[re.Match[str]]:
    """Where the text reads a token of a known service; a whole file that is sent is none."""
    return [hit for hit in TOKENS.finditer(text) if not _UPLOADED.search(text, max(hit.start() - 70, 0), hit.start())]


@cache
def hosts_of(token: str) -> re.Pattern[str]:
    """The hosts that a token is for, from the command or the file that it is read with."""
    hosts = next((hosts for named, hosts in _TOKENS if lazy_compile(named, re.IGNORECASE).match(token)), "")
    if not hosts and (entry := TOKENS.match(token)):
        if host := entry["machine"] or entry["login"]:
            return lazy_compile(rf"(?:^|\.){re.escape(host)}\.?$", re.IGNORECASE)
        words = _WORD.findall(next(filter(None, entry.groups()), "").lower())
        names = [word for word in words if word not in _NO_SERVICE] + ["anthropic"] * ("claude" in words)
        hosts = rf"(?:{'|'.join(names)})(?:api|app|hq)?\.(?:com|io|app|dev|so|net|org|ai|co)" if names else "(?!)"
    return lazy_compile(rf"(?:^|\.)(?:{hosts})\.?$", re.IGNORECASE)


# Git writes a name and a password before the host
ADDRESS = lazy_compile(r"\b(?:https?|wss?|ftp)://(?:[^\s/@\"'<>]{1,120}@)?([\w.-]{3,200})", re.IGNORECASE)
LOCAL = lazy_compile(r"^(?:localhost|127\.|169\.254\.|0\.0\.0\.0|\[?::1)", re.IGNORECASE)


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
    places = sorted(found, key=lambda place: (place.begin, -place.end))
    spans: list[tuple[int, int]] = []  # beginning and end of the text that the places cover together, in order
    for place in places:
        if spans and place.begin < spans[-1][1]:
            spans[-1] = spans[-1][0], max(spans[-1][1], place.end)
        else:
            spans.append((place.begin, place.end))
    last, count = 0, Counter[Level]()
    for place in places:
        line = line_at(text, place.begin)
        if line == last:
            continue
        last = line
        level = _level(path, text, place)
        count[level] += 1
        if count[level] <= MOST:
            shown = _redacted(text, place.begin, spans)
            yield finding("secret", level, path, f"holds a secret ({place.kind})", line, shown)


def _level(path: str, text: str, place: Place) -> Level:
    value = text[place.begin : place.end]
    if _GUESSED.search(place.kind) or is_aside(path) or _EXAMPLE.search(value) or len(value) < _SHORT:
        return "note"
    # The Shannon entropy per character
    bits = -sum(count / len(value) * math.log2(count / len(value)) for count in Counter(value).values())
    return "note" if bits < _EVEN else "warning"


def _redacted(text: str, at: int, spans: Sequence[tuple[int, int]]) -> str:
    """The line of a secret at `at`, or the part of a long one around it, with all `spans` of secrets cut out."""
    begin, end = line_around(text, at, AROUND)
    pieces, at = [], begin
    for span in spans[bisect_right(spans, begin, key=lambda span: span[1]) :]:
        if span[0] >= end:
            break
        pieces += [text[at : max(span[0], at)], "[secret]"]
        at = min(span[1], end)
    return "".join([*pieces, text[at:end]]) or "[secret]"
