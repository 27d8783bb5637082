"""Follows names through scripts in shell, JavaScript and other languages, statement by statement.

A statement is a line, or several lines that open brackets join. A name that is set from a secret or from decoded data
carries it; a statement that sends or runs such a name, or does both steps at once, is a hit.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from navigator_kernel.skills.scan.rule import Hit
from navigator_kernel.skills.scan.secrets import ADDRESS, ENVIRONMENT, LOCAL, SHELL_STORE, TOKENS, hosts_of, tokens_read
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from navigator_kernel.skills.scan.finding import Level

LONG = 2_500  # characters of one statement; a longer one is cut into several
WITHIN = 12  # statements that one line can belong to
NEAR = 500  # characters around a call that are searched for a fetch, and half as many after it for a decoder

_DECODES = lazy_compile(
    r"\batob\s*\(|Buffer\.from\s*\([^\n]{0,400}[\"'](?:base64|hex)[\"']|String\.fromC(?:har|ode)\w*|\bunescape\s*\(|\.reverse\(\)\s*\.join"
    r"|Base64\.(?:strict_)?decode64|\.unpack1?\(\s*[\"'](?:m|H\*)|base64_decode\s*\(|str_rot13\s*\(|gzinflate\s*\(|FromBase64String"
    r"|\bbase64\s+(?:-\w*d\b|-D\b|--decode)|\bxxd\s+-\w*r"
)
_FETCHES = lazy_compile(
    r"\bfetch\s*\(\s*[^)\s]|\bhttps?\.get\s*\(|\baxios\b|\bURI\.open|\bfile_get_contents\s*\(\s*[\"']https?:|\bLWP::Simple|DownloadString"
)
_RUNS = lazy_compile(
    r"(?<![.\w$])eval\s*\(\s*(?![\"'`]|\))|\bnew\s+(?-i:Function)\s*\(\s*(?![\"'`][^\"'`]*[\"'`]\s*\)|\))|(?<![.\w])(?-i:Function)\s*\(\s*(?![\"'`][^\"'`]*[\"'`]\s*\)|\))"
    r"|\bvm\.run\w*\s*\(|\b(?:execSync|execFileSync)\s*\(\s*(?![\"'`])|(?<![.\w])exec\s*\(\s*(?![\"'`])|\binstance_eval\b|\bclass_eval\b"
    r"|\b(?:shell_exec|passthru|proc_open)\s*\(\s*(?![\"'])|\b(?:iex|invoke-expression)\b|\beval\s+[\"']?\$|\|\s*(?:ba|z|da)?sh\b",
    re.IGNORECASE,
)
SENDS = lazy_compile(
    r"\bcurl\b[^\n]{0,400}?(?:\s-\w{0,6}[dFT]\b|--data\S*|--form|--upload-file|--json\b|\$\(|\s-H\s)|\bwget\b[^\n]{0,300}?--(?:post|body)-(?:file|data)|\bwget\b[^\n]{0,200}\$\("
    r"|\|\s*(?:sudo\s+)?(?:nc|ncat|netcat|socat|mailx?|sendmail|mutt|msmtp|openssl\s+s_client|ssh(?=\s)|sftp)\b|\bsocat\s[^\n<|]{0,120}<|\brsync\b[^\n]{0,200}\srsync://|\bn(?:c|cat|etcat)\s+(?:-\w{1,8}\s{1,4}(?:\d+\s)?){0,6}[\w.$-]+\s+\d+\s{0,4}<"
    r"|\b(?:rsync|scp|sftp)\b[^\n]{0,200}\s[\w.@-]{2,80}:(?!//)|/dev/tcp/|\bgit\s+push\s+https?://|\b(?:nslookup|dig|host)\s[^\n]{0,80}\$"
    r"|\bfetch\s*\([\s\S]{0,400}?\b(?:body|method)\b|\baxios\.(?:post|put|request)|sendBeacon\s*\(|XMLHttpRequest|\bhttps?\.request\s*\("
    r"|Invoke-(?:WebRequest|RestMethod)\b[^\n]{0,200}-Body|\b(?:irm|iwr)\b[^\n]{0,200}-Body|Net::HTTP\.post|\bUploadString\b"
)
_HOST = lazy_compile(r"\bhost(?:name)?\s?:\s?[\"']([\w.-]{3,80})[\"']")
_OPENS = lazy_compile(
    r"\bhttps?\.request\s*\(|\bnet\.(?:connect|createConnection)\s*\(|\bnew\s+WebSocket\s*\(|\bnew\s+net\.Socket"
)
_SET = lazy_compile(
    r"(?:^|[;{(,\s&|])(?:(?:export|local|declare|readonly|const|let|var|my|our)\s+)?(?:-\w+\s+)?[$@]?(?P<one>[A-Za-z_]\w{0,40})\s{0,4}(?::[^=\n]{1,30})?\+?=(?![=>~])"
    r"|\bfor\s+(?:\(?(?:const|let|var)\s+)?(?P<each>\w{1,40})\s+(?:in|of)\b|\bread\s+(?:-\w+\s+)?(?P<read>\w{1,40})|\{(?P<many>[\w\s,:.]{1,200})\}\s{0,4}="
)
_PRINTS = lazy_compile(r"(?:\bconsole\.\w+|\bprint\w*)\s*\(\s*[\"'`][^\"'`\n]*$")  # a command in a printed text
_CONSTRUCTOR = lazy_compile(r"\b(\w{1,40})\s*=\s*[^\n;]{0,120}\.constructor\b")
_CALL = lazy_compile(r"(?<![.\w])([A-Za-z_]\w*)\s*\(")
_WRITTEN = lazy_compile(r"\b([A-Za-z_]\w*)\.(?:write|end|send)\s*\(")
_NAME = lazy_compile(r"[A-Za-z_]\w*")
_DEEP = lazy_compile(r"[{(\[]|[})\]]")
_UNREAD = lazy_compile(r"\b(?:touch|mkdir|chmod|chown|rm)\s[^\n|;&]{0,120}$")  # it changes a file, and does not read it
_KEY_OPTION = lazy_compile(r"(?:\s-i\s*|IdentityFile[ =]|--key[ =]|--cert[ =]|--netrc-file[ =])[\"']?\S{0,20}$")
_STARTS_PROGRAM = lazy_compile(r"sh$|exec|iex|invoke-", re.IGNORECASE)


_READS = (SHELL_STORE, ENVIRONMENT, TOKENS)
# Of each flow, what it ends with and what it begins with; the first is rarer
_HALVES = (((SENDS, _OPENS), _READS), ((_RUNS, _CONSTRUCTOR), (_DECODES, _FETCHES)))


class Statement(NamedTuple):
    at: int
    text: str


class _Tokens:
    """Tracks tokens of known services, each with its own hosts, and the addresses that names are set to."""

    def __init__(self, body: str) -> None:
        self._made = bool(TOKENS.search(body))
        self._hosts: dict[str, frozenset[re.Pattern[str]]] = {}
        self._places: dict[str, frozenset[str]] = {}
        self._stored: set[str] = set()  # names of tokens from files, which no honest skill sends to an unknown place

    def goes(self, text: str, names: set[str], channels: set[str]) -> Literal["", "home", "away", "unknown"]:
        """Whether a token in the statement goes to its own hosts, elsewhere, or to an unknown place; "" for a statement
        without one. It also remembers the names that the statement sets to a token or an address."""
        if not self._made:
            return ""
        given, reads = names_set(text), tokens_read(text)
        named = frozenset((*ADDRESS.findall(text), *_HOST.findall(text)))
        if named:
            self._places |= dict.fromkeys(given, named)
        hosts = frozenset(hosts_of(hit[0]) for hit in reads)
        hosts = hosts.union(*(self._hosts[name] for name in names & self._hosts.keys()))
        if not hosts:
            return ""
        named = named.union(*(self._places[name] for name in names & self._places.keys()))
        if not all(own.search(host) for own in hosts for host in named):
            return "away"
        is_stored = bool(names & self._stored) or any(SHELL_STORE.search(hit[0]) for hit in reads)
        if is_stored and not named and (SENDS.search(text) or _through(text, channels)):
            return "away"
        self._hosts |= dict.fromkeys(given, hosts)
        self._stored |= given if is_stored else set()
        return "home" if named else "unknown"


def hits(body: str) -> Iterator[Hit]:
    """A hit for each statement that completes a flow."""
    if not any(_is_in(body, ends) and _is_in(body, begins) for ends, begins in _HALVES):
        return  # the text does not have both halves of any flow
    secret, decoded, channels, runners = set[str](), set[str](), set[str](), set[str]()
    tokens = _Tokens(body)
    for one in statements(body):
        text = one.text
        names = set(_NAME.findall(text))
        store, apart = _secret(text)
        store, goes = store or bool(names & secret), tokens.goes(text, names, channels)
        if goes and names & decoded:  # a decoded value hides the address
            goes = "away"
        carries = store or goes == "away" or (goes == "unknown" and bool(SENDS.search(text)))
        if carries or _DECODES.search(text) or names & decoded:
            given = names_set(text)
            if carries and goes != "unknown":
                secret |= given
            if _DECODES.search(text) or names & decoded:
                decoded |= given
        if _OPENS.search(text):
            channels |= names_set(text)
        runners |= {hit[1] for hit in _CONSTRUCTOR.finditer(text)}
        if carries and not apart:
            sends, hosts = SENDS.search(text), ADDRESS.findall(text)
            is_local = bool(hosts) and all(LOCAL.search(host) for host in hosts)
            if (sends or _through(text, channels)) and not is_local:
                level: Level = "error" if store or goes == "away" else "warning"
                message = "reads secrets and sends them to another machine"
                yield Hit("credential-flow", one.at + (sends.start() if sends else 0), level, message, whole=True)
        yield from _runs(one, names & decoded, runners)


def _is_in(body: str, half: Sequence[re.Pattern[str]]) -> bool:
    return any(pattern.search(body) for pattern in half)


def _runs(one: Statement, decoded: set[str], runners: set[str]) -> Iterator[Hit]:
    """The hit of a statement that runs decoded or fetched text."""
    text = one.text
    for run in _RUNS.finditer(text):
        if run.group().startswith("|") and _PRINTS.search(text, 0, run.start()):
            continue
        near = text[max(run.start() - NEAR, 0) : run.end() + NEAR]
        after = text[run.start() : run.end() + NEAR // 2]
        if decoded & set(_NAME.findall(after)) or _DECODES.search(after):
            yield Hit("encoded-execute", one.at + run.start(), "error", "decodes a text and runs it", whole=True)
            return
        if _FETCHES.search(near) and not _STARTS_PROGRAM.search(run.group().strip()):  # but text in its own language
            yield Hit("fetch-execute", one.at + run.start(), "error", "runs code that it fetches", whole=True)
            return
    place = next((hit for hit in _CALL.finditer(text) if hit[1] in runners), None) if runners else None
    if place and (_DECODES.search(text, place.start()) or decoded & set(_NAME.findall(text[place.start() :]))):
        yield Hit("encoded-execute", one.at + place.start(), "error", "decodes a text and runs it", whole=True)


def _secret(text: str) -> tuple[bool, bool]:
    """Whether it reads a secret of no known service, and whether that is only the key that it logs in with."""
    tokens = [hit.span() for hit in tokens_read(text)]
    stores = [
        hit
        for hit in SHELL_STORE.finditer(text)
        if not any(begin < hit.end() and hit.start() < end for begin, end in tokens)
        and not _UNREAD.search(text, max(hit.start() - 160, 0), hit.start())
    ]
    if not stores:
        return bool(ENVIRONMENT.search(text)), False
    return True, all(_KEY_OPTION.search(text, max(hit.start() - 80, 0), hit.start()) for hit in stores)


def names_set(text: str) -> set[str]:
    made = {name for hit in _SET.finditer(text[:LONG]) for name in (hit["one"], hit["each"], hit["read"]) if name}
    return made | {name for hit in _SET.finditer(text) if hit["many"] for name in _NAME.findall(hit["many"])}


def _through(text: str, channels: set[str]) -> bool:
    return bool(channels) and any(hit[1] in channels for hit in _WRITTEN.finditer(text))


def statements(body: str) -> Iterator[Statement]:
    """The lines, each joined with the following ones while brackets are open; those also come separately."""
    lines = list(_lines(body))
    depths = [sum(1 if hit.group() in "{([" else -1 for hit in _DEEP.finditer(one.text)) for one in lines]
    ends: list[int] = []  # last lines of the statements that continue on the next line
    for number, one in enumerate(lines):
        ends = [end for end in ends if end >= number]
        open_now, last = depths[number], number
        while len(ends) < WITHIN and open_now > 0 and last + 1 < len(lines) and lines[last].at - one.at < LONG:
            last += 1
            open_now += depths[last]
        if last > number:
            ends.append(last)
        if one.text.strip():
            yield Statement(one.at, body[one.at : lines[last].at + len(lines[last].text)][:LONG])


def _lines(body: str) -> Iterator[Statement]:
    """The lines; a long one comes in parts that end where a statement may end."""
    at = 0
    for line in body.split("\n"):
        begin = 0
        while len(line) - begin > LONG:
            end = max(line.rfind(mark, begin + LONG // 2, begin + LONG) for mark in ";&|, ") + 1 or begin + LONG
            yield Statement(at + begin, line[begin:end])
            begin = end
        yield Statement(at + begin, line[begin:])
        at += len(line) + 1
