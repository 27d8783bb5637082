"""Divides a short message into clauses, and says of which answer each of its words is a sign."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

from navigator_kernel.text import lazy_compile

_TOKEN = lazy_compile(
    r"(?P<quoted>\"[^\"\n]{0,200}\"|“[^”\n]{0,200}”|「[^」\n]{0,200}」|`[^`\n]{0,200}`)"
    r"|(?P<smile>[:;]-?[)d(](?![a-z])|<3|\^\^|o/(?![a-z]))"
    r"|(?P<word>@?[a-z0-9_.~-]{0,60}(?:/[\w.-]{1,100}){1,8}\.[a-z][a-z0-9]{0,7}(?![a-z0-9])|[@/~#.]{0,12}[a-z0-9](?:[a-z0-9'_@./\\:+%~#-]|,(?=\d{3}))*)"
    r"|(?P<han>[\u3400-\u9fff\uf900-\ufaff])"
    r"|(?P<end>[,;!?.…。~\-—()、\n:|/]+)"
    r"|(?P<sign>\S)"
)
_UNSEEN = lazy_compile("[\u200b-\u200f\u2060\ufe0e\ufe0f\u200d\u20e3\U0001f3fb-\U0001f3ff]")
_HELD, _DOUBLED = lazy_compile(r"(.)\1{2,}"), lazy_compile(r"(.)\1$")  # nooo, yepp
_PATH, _ENDING = 260, 8  # characters of a path and of its ending
_NOT_IN_PATHS = frozenset(",;!\"'<>|*?，。、；“”「」（）()")
_CHUNK = lazy_compile(
    r"(?P<apart>[\"'`“‘「『《]|(?<=\S)\s+)?(?P<word>[^\s\"'`“”‘’「」『』《》（）()<>，。；、：！？|,;]+)"
)
# Chinese stands beside a name without a space: the name begins after one of these words, or is not Chinese
_BESIDE_HAN = lazy_compile(
    r"(?:(?<=[把将从对给用在到和与及跟])(?:(?![把将从对给用在到和与及跟])[\w-]){1,40}"
    r"|(?<![A-Za-z0-9_./-])[A-Za-z0-9_][A-Za-z0-9_./-]{0,260})"
    r"\.[A-Za-z][A-Za-z0-9]{0,7}(?![A-Za-z0-9])(?:\.\d+)?"
)
_LINE = lazy_compile(r"(?::\d+){1,2}$")  # src/app.rs:17
_HAN = lazy_compile("[\u3400-\u9fff]")
_FILE_ENDINGS = frozenset(
    "7z aac ai avi bak bat bin bmp bz2 c cc cfg conf cpp cs css csv dat db docx doc dot dta eml env epub exe fig "
    "gif go gz h heic hpp htm html ics ini ipynb jar java jpeg jpg json jsonl jsx kt key less lock log lua m4a md "
    "mdx mkv mov mp3 mp4 msg mts ndjson numbers odp ods odt ogg pages parquet patch pcap pdf php pl png potx ppt "
    "pptx ps1 psd py pyi r rar raw rb rs rst rtf sass scala scss sh sql sqlite srt svelte svg swift tar tex tf "
    "tgz tif tiff toml ts tsv tsx txt vcf vtt vue wav webm webp wma xls xlsm xlsx xml xz yaml yml zip".split()
)
_MOST = 14  # words, or characters of Chinese, in a phrase


class Piece(NamedTuple):
    """A phrase with the answers that it is a sign of, or a word that is a sign of none; `start` and `end` are places in
    the text of its clause."""

    text: str
    signs: frozenset[str]
    start: int
    end: int


class Clause(NamedTuple):
    """A part between punctuation marks; `asked` says that it ends in a question mark."""

    text: str
    pieces: tuple[Piece, ...]
    asked: bool


class _Token(NamedTuple):
    key: str
    start: int
    end: int
    kind: str


def normal(text: str) -> str:
    """The text in NFKC without what cannot be seen, with plain quotes."""
    return _UNSEEN.sub("", unicodedata.normalize("NFKC", text).replace("’", "'").replace("‘", "'")).strip()


def clauses(text: str, more: Mapping[str, str] | None = None) -> tuple[Clause, ...]:
    """The clauses of a text that `normal` returned. `more` are signs of further phrases, such as names of options."""
    lower = "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    phrases = {**_phrases(), **{_key(phrase): frozenset({sign}) for phrase, sign in (more or {}).items()}}
    parsed: list[Clause] = []
    tokens: list[_Token] = []
    for token in (*_tokens(lower), _Token("", len(text), len(text), "end")):
        if token.kind != "end":
            tokens.append(token)
        elif tokens:
            is_question = "?" in lower[token.start : token.end]
            parsed.append(Clause(text, _pieces(tokens, phrases, text), is_question))
            tokens = []
        elif "?" in lower[token.start : token.end]:
            parsed.append(Clause(text, (), asked=True))
    return tuple(parsed)


def is_path(word: str) -> bool:
    """Whether the word looks like a path, a file name with an ending, or an e-mail address."""
    bare = word.lower().removeprefix("@")
    if not 2 < len(bare) <= _PATH or any(char.isspace() or char in _NOT_IN_PATHS for char in bare):
        return False
    name, at, host = bare.partition("@")
    if at:
        return bool(name) and "." in host[1:-1]
    if bare.startswith(("/", "./", "../", "~/")) or bare[1:3] == ":\\":
        return True
    stem, dot, ending = bare.rpartition(".")
    if dot and ending.isdigit():  # a log that was rotated, a library's version
        return is_path(stem)
    if dot and ending.isascii() and ending.isalnum() and ending[0].isalpha() and len(ending) <= _ENDING:
        return bool(stem.strip(".")) and bare not in {"e.g", "i.e"}
    folder, slash, rest = bare.partition("/")
    return bool(slash and rest and any(char.isalpha() for char in folder))


@lru_cache(64)
def named_files(text: str) -> Sequence[str]:
    """The names of files in running text, each once, in its order."""
    names: list[str] = []
    for hit in _CHUNK.finditer(text) if "." in text else ():
        word = _LINE.sub("", hit["word"].rstrip(".,:;!?"))
        if not _HAN.search(word) or (hit["apart"] and _is_file(word)):
            names.append(word)
        else:
            names += (name.group() for name in _BESIDE_HAN.finditer(word))
    return [name for name in dict.fromkeys(names) if _is_file(name)]


def _is_file(name: str) -> bool:
    """Whether the path ends in the name of a file, and not in that of a library, a page or a part of code."""
    last = name.replace("\\", "/").rpartition("/")[2]
    stem, _, ending = last.rpartition(".")
    if ending.isdigit():  # a log that was rotated
        return _is_file(name.rpartition(".")[0])
    known = ending.lower() in _FILE_ENDINGS or (last != name and ending.isascii() and ending.isalpha())
    return bool(stem) and known and "@" not in name and "://" not in name and is_path(name)


@cache
def words(name: str) -> Mapping[str, str]:
    """The phrases of a table in answers.toml whose names are not signs, with their name: `{"word doc": "docx"}`."""
    return {phrase: name for name, text in _lists()[name].items() for phrase in _split(text)}


@cache
def phrases_of(name: str) -> tuple[str, ...]:
    """The phrases of one list, in both languages, the longest first."""
    both = (phrase for text in _lists()[name].values() for phrase in _split(text))
    return tuple(sorted(both, key=len, reverse=True))


@cache
def verbs() -> Mapping[str, tuple[str, ...]]:
    """The verbs of each kind of effect."""
    return {kind: tuple(p for text in both.values() for p in _split(text)) for kind, both in _lists()["verbs"].items()}


def _tokens(lower: str) -> Iterator[_Token]:
    for hit in _TOKEN.finditer(lower):
        kind, start, end = hit.lastgroup or "sign", hit.start(), hit.end()
        if kind == "word":
            bare = hit.group().rstrip(".,:;~#'-") or hit.group()
            yield _Token(bare.replace("'", ""), start, start + len(bare), kind)
            if start + len(bare) < end and set(lower[start + len(bare) : end]) & set(".:~-"):
                yield _Token("", start + len(bare), end, "end")
        else:
            yield _Token("" if kind == "end" else hit.group(), start, end, kind)


def _pieces(
    tokens: Sequence[_Token], phrases: Mapping[tuple[str, ...], frozenset[str]], text: str
) -> tuple[Piece, ...]:
    """The division with the fewest words without a sign, then the fewest pieces."""
    keys = [token.key for token in tokens]
    best: list[tuple[int, int, int]] = [(0, 0, 0)]  # unknown words, pieces, begin of the last piece
    for end in range(1, len(keys) + 1):
        unknown, count, _ = best[end - 1]
        ways = [(unknown + (_signs(keys[end - 1 : end], phrases) is None), count + 1, end - 1)]
        known = (begin for begin in range(max(0, end - _MOST), end - 1) if tuple(keys[begin:end]) in phrases)
        ways += [(best[begin][0], best[begin][1] + 1, begin) for begin in known]
        best.append(min(ways))
    pieces: list[Piece] = []
    end = len(keys)
    while end:
        begin = best[end][2]
        start, stop = tokens[begin].start, tokens[end - 1].end
        quoted = tokens[begin].kind == "quoted"
        signs = None if quoted else _signs(keys[begin:end], phrases)
        pieces.append(Piece(text[start:stop], signs or frozenset(), start, stop))
        end = begin
    return tuple(reversed(pieces))


def _signs(keys: Sequence[str], phrases: Mapping[tuple[str, ...], frozenset[str]]) -> frozenset[str] | None:
    exact = phrases.get(tuple(keys))
    return exact if exact is not None or len(keys) > 1 else _misspelt(keys[0], phrases)


def _misspelt(word: str, phrases: Mapping[tuple[str, ...], frozenset[str]]) -> frozenset[str] | None:
    """The signs of a word with a letter held too long, or with two letters exchanged."""
    if len(word) < 3 or not word.isascii() or not word.isalpha():
        return None
    swapped = [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    for near in (_HELD.sub(r"\1\1", word), _HELD.sub(r"\1", word), _DOUBLED.sub(r"\1", word), *swapped):
        if near != word and (signs := phrases.get((near,))):
            return signs
    return None


@cache
def _phrases() -> Mapping[tuple[str, ...], frozenset[str]]:
    phrases: dict[tuple[str, ...], set[str]] = {}
    for name, both in _lists().items():
        parts: Iterable[tuple[str, str]]
        if name == "verbs":
            parts = ((f"verb.{kind}", text) for kind, languages in both.items() for text in languages.values())
        elif name == "ordinals":
            parts = ((f"place.{place}", text) for place, text in both.items())
        elif name == "kinds":
            parts = ((f"kind.{kind}", text) for kind, text in both.items())
        else:
            parts = ((name, text) for text in both.values())
        for sign, text in parts:
            for phrase in _split(text):
                phrases.setdefault(_key(phrase), set()).add(sign)
    return {key: frozenset(signs) for key, signs in phrases.items()}


def _key(phrase: str) -> tuple[str, ...]:
    """The words of a phrase, as `_tokens` reads them."""
    if phrase.isascii():
        return tuple(phrase.lower().split())
    if any(char.isascii() for char in phrase):
        return tuple(token.key for token in _tokens(phrase.lower()))
    return tuple(phrase)


def _split(text: str) -> list[str]:
    return [phrase for part in text.replace("\n", ",").split(",") if (phrase := part.strip())]


@cache
def _lists() -> Mapping[str, Any]:
    import tomllib

    return tomllib.loads(files("navigator_kernel.language").joinpath("answers.toml").read_text(encoding="utf-8"))
