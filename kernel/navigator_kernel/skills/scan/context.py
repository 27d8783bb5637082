"""Cuts a skill's files into passages for content rules (code, settings, prose, hidden parts of prose), and finds the
contexts that lower the level of a hit: a warning, a quotation, a condition, a test, a placeholder address.

Each context lowers a level by one step at most once: an error becomes a warning, and a warning a note.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Kind = Literal["code", "prose", "fence", "config", "comment"]

_ABOVE = 16  # lines that are searched for a warning: the hit's own line and those above it
_PASSAGES_BLOCK = 65_536  # characters of a block that is searched for line breaks
_PROSE = (".md", ".markdown", ".mdx", ".txt", ".rst", ".html", ".htm", ".adoc")
_CONFIG = (".json", ".jsonc", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".conf", ".plist", ".env", ".xml", ".service")
_DATA = (".csv", ".tsv", ".svg", ".css", ".po", ".ics", ".geojson", ".lock", ".sum", ".map", ".log")
_CODE = (
    ".py", ".sh", ".bash", ".zsh", ".fish", ".js", ".mjs", ".cjs", ".ts", ".rb", ".pl", ".php", ".ps1", ".bat", ".cmd",
    ".lua",
)  # fmt: skip
_PROSE_NAMES = frozenset({"license", "notice", "authors", "changelog", "readme", "copying"})
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


def passages(path: str, text: str) -> Iterator[Passage]:
    """The passages of a file: one of code or settings is a passage; prose is cut into metadata, code in fences and
    backticks, text that is not shown, and the rest."""
    kind = kind_of(path, text)
    if kind == "prose":
        yield from _of_prose(path, text)
    else:
        yield Passage(path, kind, _joined(text), 0, text)


def is_named_text(path: str) -> bool:
    return path.lower().endswith((*_PROSE, *_CONFIG, *_DATA, *_CODE))


def kind_of(path: str, text: str) -> Kind:
    """The kind of a file by its name; code if the name is not known or the text begins with `#!`."""
    name = path.rpartition("/")[2].lower()
    if text.startswith("#!"):
        return "code"
    if _REQUIREMENTS.search(name):
        return "config"
    if name.endswith((*_PROSE, *_DATA)) or name in _PROSE_NAMES:
        return "prose"
    return "config" if name.endswith(_CONFIG) else "code"


def warned_of(passage: Passage, at: int) -> bool:
    """Whether the text at `at` is quoted in a warning, judged by the words on its line and above it."""
    if passage.kind == "comment":
        return False  # a person who warns does not hide the text
    if passage.kind == "fence" and _is_of_security(passage.text):
        return True
    place = passage.start + at
    block = place // _PASSAGES_BLOCK
    low, high = max((block - 1) * _PASSAGES_BLOCK, 0), (block + 2) * _PASSAGES_BLOCK  # bounds for a very long line
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
    named = _NAMED.search(passage.text, max(passage.start - _PASSAGES_BLOCK, 0), passage.start)
    return named[1].lower() if named else ""


def line_at(text: str, at: int) -> int:
    """The line of `text`, from 1, of place `at`."""
    block = at // _PASSAGES_BLOCK
    return _breaks_before(text)[block] + text.count("\n", block * _PASSAGES_BLOCK, at) + 1


@lru_cache(maxsize=1)
def _breaks_before(text: str) -> Sequence[int]:
    """The number of line breaks before each block."""
    before = [0]
    for begin in range(0, len(text), _PASSAGES_BLOCK):
        before.append(before[-1] + text.count("\n", begin, begin + _PASSAGES_BLOCK))
    return before


def _of_prose(path: str, text: str) -> Iterator[Passage]:
    if front := _FRONT.match(text):
        for hit in _REMARK.finditer(text, 0, front.end()):
            yield Passage(path, "comment", hit[1], hit.start(1), text)
        for hit in _COMMAND.finditer(text, 0, front.end()):
            yield Passage(path, "code", hit[1], hit.start(1), text)
    fences = list(_FENCE.finditer(text))
    for hit in fences:
        yield Passage(path, "fence", _joined(hit[2]), hit.start(2), text)
    rest = blanked(text, fences)
    rest = blanked(rest, [hit for hit in _SHOWN_OPENING.finditer(rest) if _is_shown(rest, hit)])
    unseen = [hit for hit in _UNSEEN.finditer(rest) if not _is_shown(rest, hit)]
    for hit in unseen:
        group = hit.lastindex or 0
        yield Passage(path, "comment", _unwrapped(hit[group]), hit.start(group), text)
    rest = blanked(rest, unseen)
    for hit in _INLINE.finditer(rest):
        yield Passage(path, "fence", hit[1], hit.start(1), text)
    for hit in _UNFENCED.finditer(rest):
        group = hit.lastindex or 0
        if not hit[group].isspace():  # a fence that was blanked out
            yield Passage(path, "fence", _joined(hit[group]), hit.start(group), text)
    yield Passage(path, "prose", _unwrapped(rest), 0, text)


def _is_shown(text: str, hit: re.Match[str]) -> bool:
    """Whether the match is between backticks, which show it. False if backticks before it in its paragraph come in
    runs, are escaped, or are not in pairs on their line: then the pairs are not known."""
    if text[hit.start() - 1 : hit.start()] != "`" or text[hit.end() : hit.end() + 1] != "`":
        return False
    breaks = [gap.end() for gap in _BREAK.finditer(text, max(hit.start() - _PASSAGES_BLOCK, 0), hit.start())]
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


def blanked(text: str, cut: Iterable[re.Match[str]]) -> str:
    """`text` with blanks in place of each of `cut`, so that places and lines stay the same."""
    pieces, at = [], 0
    for hit in cut:
        pieces += [text[at : hit.start()], "\n".join(" " * len(line) for line in hit.group().split("\n"))]
        at = hit.end()
    return "".join([*pieces, text[at:]])


FAR = 2_000  # characters before and after a place that are examined instead of a whole long line
_HASH = lazy_compile(r"(?:^|(?<=\s))#(?!!)")
_SLASHES = lazy_compile(r"(?:^|(?<=\s))//")
_BLOCK = lazy_compile(r"^[ \t]*/\*", re.MULTILINE)
_DASHES = lazy_compile(r"(?:^|(?<=\s))--\s")
_NONE = lazy_compile(r"(?!)")
_ANY = lazy_compile(r"^\s*(?:#(?!!)|//|\*|/\*|--\s|;|::|rem\s|%|<!--)|(?<=\s)(?:#|//)\s", re.IGNORECASE)
_MARKS = {
    **dict.fromkeys("bash sh zsh fish py python python3 yaml yml toml rb ruby pl perl r".split(), _HASH),
    **dict.fromkeys("make makefile mk ps1 powershell".split(), _HASH),
    **dict.fromkeys("c h cc cpp cs csharp dart go java js javascript mjs cjs jsx jsonc kotlin kt".split(), _SLASHES),
    **dict.fromkeys("php rs rust scala swift ts tsx typescript".split(), _SLASHES),
    **dict.fromkeys("lua sql".split(), _DASHES),
    "json": _NONE,
}
_NODE = lazy_compile(r"#![^\n]*\b(?:node|deno|bun)\b")


def is_comment(passage: Passage, at: int) -> bool:
    """Whether a mark before place `at` on its line, outside of quotes, starts a comment. A fence has comments only
    if it names a language: in a terminal session `#` may be the prompt of root. A line that a backslash joins to a
    comment is not part of it."""
    if passage.kind == "fence":
        marks = _MARKS.get(language_of(passage), _NONE)
    else:
        marks = _marks_of_file(passage.path, passage.text[:100])
    place = passage.start + at
    begin = max(passage.text.rfind("\n", max(place - FAR, 0), place) + 1, place - FAR, 0)
    before = passage.text[begin:place]
    if marks is _SLASHES:
        above = passage.text[max(place - FAR, 0) : place]
        blocks = [hit.start() for hit in _BLOCK.finditer(above)]
        if blocks and "*/" not in above[blocks[-1] :]:
            return True
    return any(not open_mark(before[: hit.start()]) for hit in marks.finditer(before))


@lru_cache(maxsize=256)
def _marks_of_file(path: str, head: str) -> re.Pattern[str]:
    if head.startswith("#!"):
        return _SLASHES if _NODE.match(head) else _HASH
    return _MARKS.get(path.rpartition("/")[2].lower().rpartition(".")[2], _ANY)


def open_mark(text: str) -> str:
    """The mark of a string that starts in the text and does not end; empty for none."""
    quote, is_escaped = "", False
    for mark in text:
        if is_escaped:
            is_escaped = False
        elif mark == "\\":
            is_escaped = True
        elif quote:
            quote = "" if mark == quote else quote
        elif mark in "\"'`":
            quote = mark
    return quote


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
    if is_aside(passage.path) or warned_of(passage, hit.start()):
        return True
    body, (begin, end), quoted = passage.body, line_around(passage.body, hit.start()), is_quoted(passage, hit)
    if quoted and _SEARCHES.search(body, begin, hit.start()):  # the text that a search command looks for
        return True
    if passage.kind in {"code", "config", "fence"} and is_comment(passage, hit.start()):
        return True
    if strings or not quoted:
        return False
    if passage.kind == "config":
        return not _COMMAND_KEY.search(body, max(hit.start() - 400, 0), hit.start())
    if passage.kind != "code":
        return False
    # A string of a code file that is printed or compared, not run
    begins = not begin or body[begin - 1] == "\n"
    if begins and _SAYS.match(body[begin:end]):
        return True
    before = body[begin : hit.start()]
    mark = max(before.rfind('"'), before.rfind("'"), before.rfind("`"))
    return bool(_LISTED.search(before, 0, mark)) and not _RUNS.search(before, 0, mark + 1)


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
    begin, end = line_around(passage.body, hit.start())
    before = passage.body[max(begin, hit.start() - 160) : hit.start()]
    after = passage.body[hit.end() : min(end, hit.end() + 160)]
    for opening, closing in zip(_OPENING, _CLOSING, strict=True):
        inside = before.count(opening) % 2 == 1 if opening == closing else before.rfind(opening) > before.rfind(closing)
        if inside and closing in after and not (opening == "'" and before[-1:].isalpha()):
            return True
    return False


def names_nobody(passage: Passage, hit: re.Match[str]) -> bool:
    """Whether the other machine is a placeholder or a private one."""
    begin, _ = line_around(passage.body, hit.start())
    _, end = line_around(passage.body, hit.end())
    return bool(_NOBODY.search(passage.body, max(begin, hit.start() - 200), min(end, hit.end() + 300)))


def line_around(text: str, at: int, far: int = FAR) -> tuple[int, int]:
    """The beginning and end of the line at position `at`, or of the part of a long one `far` characters around it."""
    low, high = max(at - far, 0), min(at + far, len(text))
    end = text.find("\n", at, high)
    return max(text.rfind("\n", low, at) + 1, low), high if end < 0 else end


# What in code only looks like a command or an address
_HEREDOC = lazy_compile(r"(?<!<)<<-?[ \t]*[\"']?(\w{1,40})[\"']?(?![\w(])")
_SHELL_READS = lazy_compile(r"\b(?:(?:ba|z|k|da)?sh|ssh)\b")
_READS = lazy_compile(r"\b(?:(?:ba|z|k|da)?sh|ssh|python[\d.]{0,5}|node|ruby|perl|psql|mysql|curl|pwsh)\b")
_PLAIN = lazy_compile(r"\\.|\$?[\"']|\n|\$?\(|\)|(?<![\w.])[A-Za-z_]\w{0,60}\+?=\(|(?<![^\s;])#[^\n]*", re.DOTALL)
_ENDS = {  # what ends or opens something, by what is open: nothing, a quotation, one that is code, a list
    **dict.fromkeys(("", "(", "[", "c'", 'c"'), _PLAIN),
    "'": lazy_compile(r"[\n']"),
    '"': lazy_compile(r"\\.|[\n\"]|\$\(", re.DOTALL),
}
_TAKES_CODE = lazy_compile(
    r"(?:\b(?:(?:ba|z|k|da)?sh|su)\b[^\n;|&]{0,60}\s-\w{0,4}c"
    r"|\beval|\bssh[ \t][^\n;|&]{1,200}|\btrap)[ \t]+\$?$"
)
_JOINING = str.maketrans(";|&({", "     ")
_TRIPLE = lazy_compile(r"\"\"\"(?:[^\"\\]|\\.|\"(?!\"\"))*\"\"\"|'''(?:[^'\\]|\\.|'(?!''))*'''", re.DOTALL)


def without_docstrings(code: str) -> str:
    """Python code without the texts that stand first in a module, a class or a function."""
    pieces, at = [], 0
    for hit in _TRIPLE.finditer(code):
        before = code[max(hit.start() - 300, 0) : hit.start()].rstrip("rRuU")
        if not before.rpartition("\n")[2].strip() and before.rstrip()[-1:] in {"", ":"}:
            pieces.append(code[at : hit.start()])
            at = hit.end()
    return "".join([*pieces, code[at:]])


def without_heredocs(code: str, *, shells: bool = False) -> str:
    """Shell code without the bodies of heredocs, except of those that a program reads as code or sends; with `shells`,
    only if that program is a shell."""
    lines = code.split("\n")
    last = {line.strip(): number for number, line in enumerate(lines)}
    outside, end = [], ""
    for number, line in enumerate(lines):
        if end:
            end = "" if line.strip() == end else end
            continue
        outside.append(line)
        hit = _HEREDOC.search(line)
        if hit and last.get(hit[1], 0) > number and not (_SHELL_READS if shells else _READS).search(line):
            end = hit[1]
    return "\n".join(outside)


def commands_of(code: str) -> str:
    """Shell code in which each command begins after a line break or one of `;|&({`, and nothing else does. What
    follows a mark without its end stays as it is."""
    pieces: list[str] = []
    opened: list[tuple[str, int, int]] = []  # the mark, its place in the code, the number of pieces before it
    at = begin = 0
    while hit := _ENDS[inside := opened[-1][0] if opened else ""].search(code, at):
        mark, text = hit[0], code[at : hit.start()]
        at = hit.end()
        is_text = inside in {"'", '"', "["}
        pieces.append(text.translate(_JOINING) if is_text and inside != "[" else " " if is_text else text)
        if mark.endswith(("'", '"')) and mark[0] != "\\":
            if inside.endswith(mark[-1]):
                is_code = opened.pop()[0][0] == "c"
            else:
                is_code = _TAKES_CODE.search(code, max(hit.start() - 120, 0), hit.start()) is not None
                opened.append(("c" * is_code + mark[-1], hit.start(), len(pieces)))
            pieces.append(";" if is_code else mark)
        elif mark[-1] == "(" and mark[0] != "\\":
            is_array = mark != "$(" and (mark[-2:-1] == "=" or inside == "[")
            opened.append(("[" if is_array else "(", hit.start(), len(pieces)))
            pieces.append(" " if is_array else mark)
        elif mark == ")":
            pieces.append(" ")
            if opened:
                opened.pop()
            else:  # a label of `case`
                label = "".join(pieces[begin:])
                pieces[begin:] = [label[: max(label.rfind(";"), label.rfind(" in ")) + 1]]
                begin = len(pieces)
        else:
            pieces.append(" " if is_text or mark[0] == "#" else mark)
            begin = len(pieces) if mark == "\n" and not opened else begin
    quoted = next((one for one in opened if one[0] != "("), None)
    return "".join([*pieces[: quoted[2]], code[quoted[1] :]] if quoted else [*pieces, code[at:]])
