"""The shapes of secrets: tokens of services, from the table beside this file, and those known by their context.

Most text has none, so each shape has words without which it cannot match, and is searched for only if one is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from navigator_kernel.text import lazy_compile

TABLE = "secret_shapes.tsv"
WORD = 14  # least characters of a secret that is recognised without its name
NAMES = ("key", "token", "secret", "pass", "pwd")  # if the table requires a name for a secret, it contains one of these


class Shape(NamedTuple):
    """`kind` is its name; one of `needles`, in lower case, is in every match of `found`. The secret itself is
    the group `value`. If `shows_itself`, it is a single word of WORD characters or more."""

    kind: str
    needles: tuple[str, ...]
    found: re.Pattern[str]
    shows_itself: bool = False


def _any_case(*words: str) -> str:
    """A pattern for one of the words in any case. It begins with a set of characters, which Python finds several times
    faster than words in any case."""
    heads = "".join(dict.fromkeys(word[0] for word in words))
    return rf"[{heads}{heads.upper()}](?i:{'|'.join(f'(?<={word[0]}){word[1:]}' for word in words)})"


def _shape(kind: str, needles: str, pattern: str, flags: int = 0) -> Shape:
    return Shape(kind, tuple(needles.split(" ")), lazy_compile(pattern, re.ASCII | flags))


_KEYS = "api auth access service account db database priv private client shared encryption signing master".split()
_ASSIGNED = r"[\"'\]]{0,2}\s{0,30}"  # between a name and its operator
_PLACEHOLDER = r"(?!\$[A-Z_{(]|\{\{|<[a-z]|%\(|https?://)"  # excludes a placeholder for a value that is elsewhere
_NO_VALUE = r"(?!(?i:string|none|null|true|false|required|optional|password|secret|token)\b)"
_LOOSE = re.IGNORECASE
_PASSWORD = (r"passw(?:or)?d", "passphrase", r"pwd(?![\"']?\s{0,3}[:=]\s{0,3}[\"']?/)")  # PWD=/home is a folder

PLACES: tuple[Shape, ...] = (
    _shape(
        "Private Key",
        "private",
        r"(?P<value>-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}.*?"  # without END, matches to the end
        r"(?:-{4,5} ?END [A-Z0-9 ]{1,60}-{4,5}|\Z))",
        re.DOTALL,
    ),
    _shape("PuTTY Key", "private-lines:", r"Private-Lines: \d{1,4}(?P<value>(?:\r?\n[A-Za-z0-9+/=]{1,80}){1,200})"),
    _shape(
        "Secret Keyword",  # environment variables: DB_PASSWORD=
        "pass secret token key",
        r"(?:PASSWORD|PASSWD|PASSPHRASE|SECRET|TOKEN|_PASS\b"
        r"|(?:API|ACCESS|PRIVATE|ENCRYPTION|SIGNING|MASTER|AUTH|ACCOUNT)_?KEY)[A-Z0-9_]{0,40}="
        r"[\"']?(?P<value>[^\s\"'$]{6,2000})",
    ),
    _shape(
        "Secret Keyword",  # settings: a value without quotes that is not a name in code
        "pass pwd secret token key",
        _any_case(*_PASSWORD, "secret", "token", "api[_-]?key", "access[_-]?key", "private[_-]?key")
        + r"[\"']?\s{0,3}[:=]\s{0,3}(?=\S{0,200}\d)(?=\S{0,200}[A-Za-z])"
        r"(?P<value>[\w~+/@!#%^&*-]{8,2000}+={0,2})(?![(.\[])",
    ),
    _shape(
        "Password",  # shorter values with an unambiguous name
        "pass pwd",
        _any_case(*_PASSWORD) + r"[\"']?\s{0,3}[:=]\s{0,3}"
        r"(?=[\w~+@!#%^&*-]{0,20}[\d!#%^&*])(?=[\w~+@!#%^&*-]{0,20}[A-Za-z])(?P<value>[\w~+@!#%^&*-]{5,20}+)(?![(.\[/])",
    ),
    _shape(
        "Password",  # after a user name, on the line before or in a connection string
        "pass pwd",
        r"(?:\buser(?:_?name)?|\buid|\blogin)\s{0,3}[:=]\s{0,3}[^\s;]{1,100}(?:\s{1,8}|;\s{0,3})(?:passw(?:or)?d|pwd|pass)"
        rf"\s{{0,3}}[:=]\s{{0,3}}{_PLACEHOLDER}(?![\w.]{{1,80}}[.(\[]){_NO_VALUE}[\"']?(?P<value>[^\s;\"'(){{}}]{{4,200}})",
        _LOOSE,
    ),
    _shape(
        "Secret Keyword",  # in quotes after its name
        "pass pwd secret contrase key token",
        _any_case(*_PASSWORD, r"_pass\b", "secret", "contrase(?:ñ|n)a", "token", *(f"{one}[_-]?key" for one in _KEYS))
        + rf"[\w-]{{0,20}}(?:{_ASSIGNED}(?:=>|:=|[=!]==?|[:=(<])\s{{0,3}}|\s{{1,3}}(?=[\"'`][^\s\"'`]{{6,200}}[\"'`];))"
        rf"(?P<sign>[\"'`]){_PLACEHOLDER}{_NO_VALUE}(?P<value>(?:\\.|(?!(?P=sign))[^\\\s]){{6,400}})(?P=sign)",
    ),
    _shape(
        "Secret Keyword",  # in quotes before its name
        "pass secret token key",
        r"[\"'`](?P<value>[^\"'`\s]{6,200})[\"'`]\s{0,3}[=!]==?\s{0,3}[\w.]{0,40}?(?:passw|secret|token|api_?key)",
        _LOOSE,
    ),
    _shape(
        "Password",  # in a sentence
        "pass token secret key",
        _any_case("password", "passphrase", "passcode", "token", "secret", "api[ _-]?key")
        + r"\s{1,3}(?:is|was)\s{0,2}:?\s{1,3}[\"'`]?"
        r"(?=[!-~]{0,200}\d)(?=[!-~]{0,200}[A-Za-z])(?P<value>[!-~]{6,400}?)(?=[\"'`.,;)]{0,2}(?:\s|\Z|[^!-~]))",
    ),
    _shape(
        "Password",  # in Chinese
        "密码 口令 密钥 密匙 令牌 私钥 授权码 访问码",
        r"(?:密码|口令|密钥|密匙|令牌|私钥|授权码|访问码)(?:[\s\u3000]{0,3}(?:是|为|[:：=＝])){1,2}[\s\u3000]{0,3}[\"'`“‘「]?"
        r"(?!(?:AES|RSA|SHA|DES|SM|ECC?)-?\d)(?=[!-~]{0,60}[\d!@#$%^&*_]|[A-Za-z]{10})(?P<value>[!-~]{5,400}?)"
        r"(?=[\"'`.,;)]{0,2}(?:\s|\Z|[^!-~]))",
    ),
    _shape(
        "Authorization Header",
        "authorization",
        r"\bauthorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?:bearer|basic|token|bot|digest|apikey)\s{1,3}"
        r"(?P<value>[\w.~+/=:-]{8,4000})",
        _LOOSE,
    ),
    _shape("Bearer Token", "bearer", r"\bbearer\s{1,3}(?=[\w.~+/=-]{0,200}\d)(?P<value>[\w.~+/=-]{20,4000})", _LOOSE),
    _shape(
        "Cookie",
        "cookie",
        r"\b(?:set-)?cookie[\"']?\s{0,2}:\s{0,3}[\"']?[\w.-]{1,60}=(?P<value>[^\r\n\"']{8,2000})",
        _LOOSE,
    ),
    _shape(
        "Basic Auth Credentials",
        "://",
        rf"://[^\s:@/]{{0,200}}:{_PLACEHOLDER}(?P<value>[^\s/@]{{3,400}})@(?=[\w.\[-])",
    ),
    _shape("Token in an Address", "://", r"://(?=[^\s:@/]{0,200}\d)(?P<value>[\w.~%-]{20,400})@(?=[\w.\[-])"),
    _shape(
        "Token in an Address",
        "token key sig secret pass pwd code=",
        r"[?&;](?:amp;)?(?:[\w-]{0,30}(?:token|secret|password|passwd|api_?key|signature)|key|sig|pwd|pass|code)="
        rf"{_PLACEHOLDER}(?=[^\s&#\"'<>]{{0,200}}\d)(?P<value>[^\s&#\"'<>]{{8,2000}})",
        _LOOSE,
    ),
    _shape(
        "Password of curl",
        "curl",
        r"\bcurl\b(?:(?!\bcurl\b)(?:[^\n\\]|\\[\s\S])){0,400}?\s(?:-[A-Za-z]{0,6}[uU]|--(?:proxy-)?user)[ =]{0,2}[\"']?"
        rf"{_PLACEHOLDER}[^\s:\"'/]{{1,80}}:{_PLACEHOLDER}(?P<value>[^\s\"']{{1,200}})",
    ),
    _shape(
        "Option of a Command",
        "pass token secret key",
        r"-(?<![\w-]-)-?[\w-]{0,30}?(?:password|passwd|pass|passphrase|token|secret|api-?key|access-?key|auth-?key)"
        rf"(?:=(?=[^\s]{{4}})|\s{{1,3}}(?=[\"'][^\s\"']{{4}}|[^\s\"']{{0,60}}[\dA-Z!@#%^&*+_]))(?![A-Z_]{{1,30}}(?:[\s\])]|\Z))"
        rf"[\"']?{_PLACEHOLDER}(?!\$|id=)(?P<value>[^\s\"'<\[-][^\s\"']{{3,400}})",
    ),
    _shape(
        "Option of a Command",
        "mysql mariadb 7z sshpass login redis-cli",
        r"\b(?:(?:mysql\w{0,10}|mariadb\w{0,10}|7za?)\b(?:(?!mysql|mariadb|7z)[^\n]){0,200}?\s-p(?=\S)"
        r"|(?:sshpass|(?:docker|podman|helm) (?:registry )?login)\b(?:(?!sshpass|login)[^\n]){0,200}?\s-p\s{0,3}"
        r"|redis-cli\b(?:(?!redis-cli)[^\n]){0,200}?\s-a\s{1,3})"
        rf"[\"']?{_PLACEHOLDER}(?!\$)(?P<value>[^\s\"']{{4,200}})",
    ),
    _shape("Option of a Command", "pass", r"\s-pass(?:in|out|word)?\s{1,3}[\"']?pass:(?P<value>[^\s\"'$]{3,200})"),
    _shape(
        "Password of netrc",
        "pass",
        r"\b(?:machine\s{1,5}(?=\S{0,200}[.\d]|localhost)\S{1,200}|default(?=\s{1,5}login\s))"
        r"(?:\s{1,5}(?:login|account)\s{1,5}\S{1,200}){0,2}\s{1,5}password\s{1,5}(?P<value>\S{3,400})",
    ),
    _shape(
        "Password of pgpass",
        ":5432: :5433: :6432: :*:",
        r"^[^\s:#]{1,100}:(?:5432|5433|6432|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<value>\S{1,200})$",
        re.MULTILINE,
    ),
    _shape(
        "Registry Password",
        "_auth _password",
        r"(?:(?<=:)|(?<![^\n]))_(?:authToken|auth|password)\s{0,3}=\s{0,3}[\"']?(?P<value>[^\s\"'$]{6,2000})",
    ),
)
_TAIL = lazy_compile(r"[\w=-]*", re.ASCII)  # the rest of the same word
_HEAD = lazy_compile(r"(?:\(\?P<value>)?(?:[A-Za-z0-9]|\[[^\]]+\])(?![{?|])")
_NO_WORD = "(?<![A-Za-z0-9]"  # the character before is not part of a word
_BETWEEN = r"[\w.-]{0,20}[\"'\]]{0,2}\s{0,3}[:=]{1,2}>?\s{0,3}[\"'`]?"


@cache
def services() -> tuple[Shape, ...]:
    """The rows of the table."""
    text = Path(__file__).with_name(TABLE).read_text(encoding="utf-8")
    return tuple(_service(*line.split("\t")) for line in text.splitlines() if not line.startswith("#"))


def _service(kind: str, needles: str, name: str, value: str) -> Shape:
    if name:
        return _shape(kind, needles, rf"(?i:{name}){_BETWEEN}(?P<value>{value})(?![\w-])")
    pattern = value if "(?P<value>" in value else f"(?P<value>{value})"
    if "(?<!" not in value:
        head = _HEAD.match(pattern)  # Python finds a pattern that begins with a character several times faster
        pattern = f"{pattern[: head.end()]}{_NO_WORD}.){pattern[head.end() :]}" if head else f"{_NO_WORD}){pattern}"
    return _shape(kind, needles, pattern)._replace(shows_itself=True)


@cache
def every() -> tuple[Shape, ...]:
    """All shapes."""
    return (*PLACES, *services())


def possible(text: str) -> list[Shape]:
    """The shapes that have a needle in the text."""
    lowered = text.lower()
    shapes = _with_needles("places", lowered)
    words = "\n".join(word for word in lowered.split() if len(word) >= WORD)
    if words:
        shapes += _with_needles("alone", words)
        if any(word in lowered for word in NAMES):
            shapes += _with_needles("named", lowered)
    return shapes


_Group = Literal["places", "alone", "named"]  # PLACES, and the services whose secrets show themselves, and the others


def _with_needles(group: _Group, lowered: str) -> list[Shape]:
    there = [shapes for needle, shapes in _by_needle(group) if needle in lowered]
    return list({id(shape): shape for shapes in there for shape in shapes}.values())


@cache
def _by_needle(group: _Group) -> Sequence[tuple[str, Sequence[Shape]]]:
    """Each needle of the group once, with the shapes that have it."""
    needles: dict[str, list[Shape]] = {}
    for shape in PLACES if group == "places" else services():
        for needle in shape.needles if group == "places" or shape.shows_itself == (group == "alone") else ():
            needles.setdefault(needle, []).append(shape)
    return tuple(needles.items())


def spans(shapes: Iterable[Shape], text: str) -> Iterator[tuple[int, int, str]]:
    """The start, end and kind of each match, extended to the end of the word that it is in."""
    for shape in shapes:
        at = 0
        while hit := shape.found.search(text, at):
            begin, end = hit.span("value")
            tail = _TAIL.match(text, end)
            end = tail.end() if tail else end
            yield begin, end, shape.kind
            at = max(end, hit.start() + 1)
