"""Cleans foreign text before a person, a log or a page sees it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, AnyStr, Literal, cast

Language = Literal["en", "zh"]


class LatePattern:
    def __init__(self, source: str | bytes, flags: int) -> None:
        self.pattern = self._source = source
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        held = getattr(re.compile(self._source, self._flags), name)
        setattr(self, name, held)
        return held


def lazy_compile(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Like `re.compile`, but on first use: no message waits for a pattern that it does not need.

    Every pattern of the kernel is made here, so that a test can find it and show that it reads a text of any length
    in linear time. A test of the architecture refuses other calls of `re`.
    """
    return cast("re.Pattern[AnyStr]", LatePattern(source, flags))


_ESCAPES = lazy_compile(
    r"\x1b\][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"  # OSC, terminated or not
    r"|\x9d[^\x07\x9c]*[\x07\x9c]?"  # OSC as one C1 byte
    r"|\x1b[PX^_][^\x1b\x9c]*(?:\x1b\\|\x9c)?"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # two-byte escapes
)
_UNWANTED = lazy_compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ud800-\udfff\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_BLANKS = lazy_compile("[ \t\xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000]{40,}")
EMPTY, WIDEST = 8, 200  # empty lines, and characters of a line, that a person is shown as they are
_BREAKS = lazy_compile("[\n\u2028\u2029]")
_CJK = lazy_compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f]")
_GAPS = lazy_compile(r"[\s_]+")
_SECRET = lazy_compile(r"://[^/\s\"'<>?#]*@")  # a password may contain an `@`
_LATIN_WORD = lazy_compile(r"[A-Za-z]{2,}")
_INSTRUCTION = lazy_compile(r"(?<!\S)[/@#!]\S+")
_FILE_NAME = lazy_compile(r"(?<![\w~-])[A-Za-z0-9_~-]++(?:[./][A-Za-z0-9_~-]+)+")

# Words that carry no subject; a message made of them alone needs no skill.
STOP = frozenset(
    """a an and are as at be been but by can could do does did for from get give had has have hello help here hey hi how
    i if in into is it its just know let like make may me my need now of on or our out over please shall should show so
    some tell than thank thanks that the their them then there these they this those to today up us use using very want
    was we were what when where which who why will with would you your am not no yes ok okay good new way thing things
    one two much many any all about more most also too really something anything""".split()
)
STOP_HAN = frozenset(
    "的 了 吗 呢 吧 啊 我 你 他 她 它 们 我们 你们 他们 这 那 这个 那个 这段 这些 那些 一个 一下 一些 请 请问 帮 "
    "帮我 请帮 给我 什么 怎么 怎样 如何 为什么 是 在 有 和 与 或 也 都 就 还 要 想 能 会 可以 需要 谢谢 你好 今天 "
    "现在 很 太 吗".split()
)


def clean(text: str, *, lines: bool = True) -> str:
    """`text` without anything that steers a terminal or hides from a reader.

    Removed: C0 and C1 controls, CSI, OSC and other escape sequences, bidi controls, zero-width and
    tag characters, lone surrogates. Tabs stay; line ends become `\\n`, or a space with `lines=False`.
    """
    if text.isascii() and text.isprintable():
        return text
    text = _ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").replace("\u2029", "\n")
    text = _UNWANTED.sub("", text)
    return text if lines or "\n" not in text else " ".join(part for line in text.split("\n") if (part := line.strip()))


def lines_of(text: str) -> list[str]:
    """The lines of `text` as editors and git count them: a line ends at `\\n` or `\\r\\n` and nowhere else."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines if lines[-1] else lines[:-1]


def escaped(document: str) -> str:
    """The same JSON document, with characters that steer a terminal or hide written as escapes."""
    return _UNWANTED.sub(_as_json, document)


def _as_json(hit: re.Match[str]) -> str:
    units = hit.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def escape_controls(text: str) -> str:
    """`text` on one line, with what `clean` removes written as `\\x1b`, for a person to approve."""
    lines = _BREAKS.sub(lambda hit: hit.group().encode("unicode_escape").decode(), text)
    return _UNWANTED.sub(lambda hit: hit.group().encode("unicode_escape").decode(), lines)


def shown_lines(text: str) -> str:
    """`text` for a person to approve: nothing in it is invisible or out of sight. Each line begins with `│ `, each
    further piece of a long one with `│…`; many blanks or empty lines are counted (`␠×2000`, `↵×90`)."""
    shown: list[str] = []
    for is_empty, group in groupby(text.split("\n"), key=lambda line: not line):
        lines = list(group)
        if is_empty and len(lines) > EMPTY:
            shown.append(f"│ ↵×{len(lines)}")
            continue
        for line in map(shown_line, lines):
            pieces = [line[at : at + WIDEST] for at in range(0, max(len(line), 1), WIDEST)]
            shown += [f"{'│…' if at else '│ '}{piece}" for at, piece in enumerate(pieces)]
    return "\n".join(shown)


SHELLS = frozenset({"/bin/sh", "/bin/bash", "/usr/bin/sh", "/usr/bin/bash"})


def shown_command(argv: Sequence[str]) -> str:
    """A command for a person to approve: its words with quotes, or the line that bash is given; a line break in it is
    marked on both sides."""
    from shlex import join  # takes 1 ms, and only a question needs it

    is_line = len(argv) == 3 and argv[0] in SHELLS and argv[1] == "-c"
    first, *rest = (argv[2] if is_line else join(argv)).split("\n")
    return "↵\n".join([shown_line(first), *([shown_lines("\n".join(rest))] if rest else [])])


def shown_line(line: str) -> str:
    """The line for a person to approve: what `clean` removes is written as `\\x1b`, and many blanks are counted."""
    return _BLANKS.sub(lambda hit: f"␠×{len(hit.group())}", escape_controls(line))


def language_of(text: str) -> Language:
    """`zh` if the text is mainly in Chinese characters, not counting names of files, else `en` (X-31)."""
    if text.isascii():
        return "en"
    han = len(_CJK.findall(text))
    return "zh" if han and han >= len(_LATIN_WORD.findall(_FILE_NAME.sub(" ", text))) else "en"


def has_words(text: str) -> bool:
    """Whether the text has words of a language, not only names of files or skills, numbers and signs."""
    plain = _FILE_NAME.sub(" ", _INSTRUCTION.sub(" ", text))
    return _CJK.search(plain) is not None or _LATIN_WORD.search(plain) is not None


def fold(name: str) -> str:
    """The form in which names are compared: NFKC, lower case, `_` and space as `-` (X-29)."""
    folded = name if name.isascii() else unicodedata.normalize("NFKC", name)
    return _GAPS.sub("-", folded.strip().casefold())


def suggestions(word: str, names: Iterable[str], k: int = 3, cutoff: float = 0.5) -> list[str]:
    """The `k` names nearest to `word`, nearest first; `cutoff` is their least similarity, 0 to 1."""
    import difflib  # takes 5 ms, and only a typo needs it

    folded = {fold(name): clean(name, lines=False) for name in names}
    return [folded[near] for near in difflib.get_close_matches(fold(word), list(folded), k, cutoff)]


_BOTH = lazy_compile(r"([A-Za-z][^（）]+)（([^（）]+)）")


def in_one_language(text: str, language: Language) -> str:
    """The reader's part of a text of a skill that holds both languages: English, and Chinese in （） at its end."""
    hit = _BOTH.fullmatch(text.strip())
    english, chinese = hit.groups() if hit else ("", "")
    if not _CJK.search(chinese) or len(_CJK.findall(english)) > len(english) / 10:
        return text
    return (chinese if language == "zh" else english).strip()


def numbered(count: int, noun: str) -> str:
    """A count with its noun: `1 skill`, `2 skills`, `2 entries`."""
    if count == 1:
        return f"1 {noun}"
    return f"{count:,} {noun[:-1]}ies" if noun.endswith("ry") else f"{count:,} {noun}s"


def whole_words(text: str) -> int:
    """How many characters of a text that goes on can be shown without cutting a word, or a private key, in two."""
    length = max(map(text.rfind, (" ", "\n", "。", "，"))) + 1
    begun = text.find("-----BEGIN")
    return min(length, begun) if begun >= 0 and "-----END" not in text[begun:] else length


def shorten(text: str, limit: int) -> str:
    """`text` on one line, at most `limit` characters, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def strip_url_credentials(text: str) -> str:
    """`text` without the user and password part of its URLs."""
    return _SECRET.sub("://", text)


def ends(text: str, limit: int) -> str:
    """The beginning and the end of `text`, together about `limit` characters."""
    return text if len(text) <= limit else f"{text[: limit // 2]} … {text[-(limit // 2) :]}"


def cut_text(text: str, limit: int) -> str:
    """`text`, or if it has over `limit` characters, its beginning and its end with its length and its SHA-256."""
    return text if len(text) <= limit else f"{ends(text, limit)} ({size_of(text)})"


def size_of(text: str) -> str:
    """The length of `text` and its SHA-256, for comparison with a text that was shown in part."""
    from hashlib import sha256  # takes 3 ms, and only long texts need it

    return f"{len(text)} characters, sha256:{sha256(text.encode('utf-8', 'backslashreplace')).hexdigest()}"


def warn(message: str, *values: object) -> None:
    """Logs a warning of the kernel. `logging` takes 2 ms to import, and most commands warn of nothing."""
    import logging

    logging.getLogger("navigator").warning(message, *values)


_PIECE = lazy_compile(
    r"(?P<gap>[ \t\r\n]+)|'(?P<single>[^']*)'|\"(?P<double>(?:[^\"\\]|\\.)*+)\"|\\(?P<escaped>.)"
    r"|(?P<plain>[^ \t\r\n'\"\\]+)",
    re.DOTALL,
)
_ESCAPED = lazy_compile(r"\\([\\\"])")


def split_words(text: str) -> list[str] | None:
    """Splits like `shlex.split`, which takes quadratic time; returns None if that raises an error."""
    words: list[str] = []
    word: list[str] | None = None
    at = 0
    for hit in _PIECE.finditer(text):
        if hit.start() != at:
            return None
        at = hit.end()
        if not hit["gap"]:
            word = [] if word is None else word
            word.append(_ESCAPED.sub(r"\1", hit["double"]) if hit["double"] else hit[hit.lastgroup or 0])
        elif word is not None:
            words.append("".join(word))
            word = None
    return [*words, *([] if word is None else ["".join(word)])] if at == len(text) else None
