"""Words and examples that help to find a skill, in a file beside its receipt: the skill's own files never change.

`.claude/skills/.navigator/<name>.aliases.json` contains `aliases`, names that a person gives it and that count like its
own, `words`, which an install finds in the glossary of the other language and in the manifests of the skill's plugin,
`queries`, requests that its publisher names for it in an AI Catalog, and `examples`, requests that a model wrote for it
(`navigator skill learn`). An install writes `words` and `queries` again and leaves the others alone.
"""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import Damaged, Refused
from navigator_kernel.skills.catalog.listing import SIDECAR
from navigator_kernel.text import clean, lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

SIZE_LIMIT = 64 * 1024  # bytes
MOST = 32  # entries that are used in each list
LENGTH = 64  # characters of an alias or a word
EXAMPLE = 200  # characters of an example
_LONGEST = 3  # words of an English entry of the glossary
_RUN = lazy_compile(r"[㐀-鿿]+|[^\W_]+")
_ASCII_RUN = lazy_compile(r"[A-Za-z0-9]+")
_CAMEL = lazy_compile(r"(?<=[a-z0-9])(?=[A-Z])")


def sidecar_path(inner: Path, name: str) -> Path:
    return inner / f"{name}{SIDECAR}"


def skill_folder(sidecar: str) -> str:
    """The skill's folder for the sidecar file `sidecar`."""
    folder, name = os.path.split(sidecar)
    return os.path.join(os.path.dirname(folder), name.removesuffix(SIDECAR))  # noqa: PTH118, PTH120 - 5 times as fast


def sidecar_bytes(
    skill: SkillDef, name: str, content: bytes | None, about: Sequence[str] = (), queries: Sequence[str] = ()
) -> bytes | None:
    """The new content of the sidecar of `skill`, installed as `name`; `content` is the old one, `about` the words
    about its plugin, `queries` the requests that its publisher names. None if it would have nothing in it. Content that
    cannot be read is returned unchanged, for a person to fix."""
    try:
        read = {} if content is None else json.loads(content)
        aliases, examples = _listed(read, "aliases"), _listed(read, "examples", EXAMPLE)
    except (ValueError, RecursionError):
        return content
    words = list(dict.fromkeys((*other_words([name, *skill.tags]), *about)))
    if not aliases and not words and not examples and not queries:
        return None
    return _written(aliases, words, examples, queries)


def with_examples(content: bytes | None, examples: Sequence[str]) -> bytes:
    """The file's new content with these examples. Damaged if it cannot be read."""
    read = _read(content)
    return _written(_listed(read, "aliases"), _listed(read, "words"), list(examples), _listed(read, "queries", EXAMPLE))


def kept_examples(content: bytes | None) -> list[str]:
    """The examples in the file's content. Damaged if it cannot be read."""
    return _listed(_read(content), "examples", EXAMPLE)


def _read(content: bytes | None) -> Any:
    try:
        read = {} if content is None else json.loads(content)
        _listed(read, "examples")
    except (ValueError, RecursionError) as error:
        raise Damaged("the aliases beside the receipt cannot be read", hint="correct or remove that file") from error
    return read


def _written(aliases: Sequence[str], words: Sequence[str], examples: Sequence[str], queries: Sequence[str]) -> bytes:
    more = {key: texts for key, texts in (("examples", examples), ("queries", queries)) if texts}
    body = {"v": 1, "aliases": aliases, "words": words, **more}
    return (json.dumps(body, ensure_ascii=False, indent=1) + "\n").encode("utf-8", errors="replace")


def with_sidecar(skill: SkillDef, path: Path) -> SkillDef:
    """`skill` with the words and examples of the file at `path`; unchanged if it cannot be read."""
    try:
        sidecar = msgspec.json.decode(read_bounded(path, SIZE_LIMIT))
        aliases, words = _listed(sidecar, "aliases"), _listed(sidecar, "words")
        examples = [*_listed(sidecar, "examples", EXAMPLE), *_listed(sidecar, "queries", EXAMPLE)]
    except (OSError, ValueError, RecursionError, Refused):
        return skill
    chinese = [word for word in words if _is_chinese(word)]
    return replace(
        skill,
        aliases=_added(skill.aliases, aliases),
        examples=_added(skill.examples, examples),
        keywords_cn=_added(skill.keywords_cn, chinese),
        tags=_added(skill.tags, [word for word in words if word not in chinese]),
    )


def other_words(texts: Sequence[str]) -> list[str]:
    """The words of `texts` in the other language, each once; of the first text, a name, also the whole."""
    found: list[str] = []
    for at, text in enumerate(texts):
        told = [_chinese(run) if isinstance(run, list) else _english(run) for run in _runs(text)]
        each = [word for words in told for word, known in words if known]
        whole = [word for words in told for word, _ in words]
        if (
            at == 0
            and each
            and len(whole) > 1
            and all(known or (word.isascii() and len(word) <= 5) for words in told for word, known in words)  # PDF, v2
        ):
            english = _is_chinese(text)
            each.insert(0, " ".join(whole) if english else "".join(whole))
        found += each
    return list(dict.fromkeys(found))[:MOST]


def _is_chinese(text: str) -> bool:
    return not text.isascii() and any("㐀" <= char <= "鿿" for char in text)


def _runs(text: str) -> Iterator[list[str] | str]:
    """Runs of words, and of Chinese characters, in order."""
    words: list[str] = []
    for run in (_ASCII_RUN if text.isascii() else _RUN).findall(_CAMEL.sub(" ", unicodedata.normalize("NFKC", text))):
        if not _is_chinese(run):
            words.append(run)
            continue
        if words:
            yield words
        words = []
        yield run
    if words:
        yield words


def _chinese(words: Sequence[str]) -> list[tuple[str, bool]]:
    """Each English word or phrase in Chinese, longest phrase first, and whether the glossary has it."""
    known, found, at = _glossary()[0], [], 0
    while at < len(words):
        for count in range(min(_LONGEST, len(words) - at), 0, -1):
            phrase = " ".join(words[at : at + count]).lower()
            if phrase in known or count == 1:
                found.append((known.get(phrase, words[at]), phrase in known))
                at += count
                break
    return found


def _english(run: str) -> list[tuple[str, bool]]:
    """The same for Chinese; unknown parts are skipped, and the whole then counts as unknown."""
    known, words, at = _glossary()[1], [], 0
    while at < len(run):
        for end in range(min(len(run), at + 8), at, -1):
            if run[at:end] in known:
                words.append((known[run[at:end]], True))
                at = end
                break
        else:
            words.append((run[at], False))
            at += 1
    return words


@cache
def _glossary() -> tuple[Mapping[str, str], Mapping[str, str]]:
    """The glossary from English to Chinese and back; the first of several translations."""
    text = Path(__file__).with_name("glossary.tsv").read_text("utf-8")
    pairs = [line.split("\t") for line in text.splitlines()]
    back: dict[str, str] = {}
    for english, chinese in pairs:
        back.setdefault(chinese, english)
    return {pair[0]: pair[1] for pair in pairs}, back


def _listed(sidecar: Any, key: str, length: int = LENGTH) -> list[str]:
    """The strings of a list in `sidecar`, cleaned; ValueError if it is not a list."""
    entries = sidecar.get(key, []) if isinstance(sidecar, dict) else None
    if not isinstance(entries, list):
        raise ValueError(f"{key} is not a list")  # noqa: TRY004 - the same error as for invalid JSON
    told = (_cleaned(one) for one in entries if isinstance(one, str))
    return [one for one in told if 0 < len(one) <= length][:MOST]


@lru_cache(4_096)
def _cleaned(word: str) -> str:
    """Cleans a word; the result is cached, as many skills have the same words."""
    return clean(word, lines=False).strip()


def _added(words: tuple[str, ...], more: Sequence[str]) -> tuple[str, ...]:
    if not more:
        return words
    known = {one.casefold() for one in words}
    return (*words, *(one for one in more if one.casefold() not in known))
