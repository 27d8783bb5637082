"""The texts of one resource in the index: what it is for, and what it is not for."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.digests import blake2b
from navigator_kernel.language.signs import is_path
from navigator_kernel.routing.words import CAMEL
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

DIGEST_SIZE = 12  # bytes of an entry's digest
BODY_LIMIT = 20_000  # indexed characters of a body
_SENTENCE = lazy_compile(r"(?<=[.!?;；。！？\n])\s*")
_AGAINST = lazy_compile(
    r"\b(?:do not use|don't use|not (?:intended |meant |suited )?for|avoid using)\b"
    r"|不要?用于|不适用于|不适合|不要在|请勿",
    re.IGNORECASE,
)
_VARIANTS = 32  # of one pattern
_BRACES, _WORD = lazy_compile(r"\{([^{}]*)\}"), lazy_compile(r"[^\W_]+")
_SEPARATORS = lazy_compile(r"[-_/.:\s]+")


class Entry(Struct, frozen=True, kw_only=True, dict=True):
    """`id` is unique in an index, `name` need not be. `examples` are messages meant for the resource."""

    id: str
    name: str
    description: str
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    body: str = ""
    priority: int = 50

    @cached_property
    def title(self) -> str:
        """The name as words: `codeReview-v2` is `code Review v2`."""
        spaced = CAMEL.sub(" ", unicodedata.normalize("NFKC", self.name))
        return _SEPARATORS.sub(" ", spaced).strip()

    @cached_property
    def purpose(self) -> str:
        """The description without the parts that say what the resource is not for."""
        return _divided(self.description)[0]

    @cached_property
    def against(self) -> str:
        """The parts of the description that say what the resource is not for (`not for …`)."""
        return _divided(self.description)[1]

    @cached_property
    def text(self) -> str:
        """The text that the encoder gets."""
        return f"{self.title}: {self.purpose}" if self.purpose else self.title

    @cached_property
    def digest(self) -> str:
        """The digest of everything indexed. The body, most of it, is added as it is: the JSON has no line breaks."""
        lists = self.tags, self.aliases, self.examples
        head = json.dumps((self.id, self.name, self.description, *lists, self.priority), ensure_ascii=False)
        data = f"{head}\n{self.body}".encode("utf-8", errors="surrogatepass")
        return blake2b(data, digest_size=DIGEST_SIZE).hexdigest()


def entry_of(skill: SkillDef, learned: Sequence[str] = ()) -> Entry:
    """The entry of a skill of the catalogue; `learned` are messages that a person confirmed for it."""
    return Entry(
        id=skill.name,
        name=skill.name,
        description=skill.description,
        tags=(*skill.tags, *skill.keywords_cn, *([skill.category] if skill.category else ()), *_words(skill.paths)),
        # the name of a plugin is a tag
        aliases=tuple(name for name in skill.aliases if not name.endswith(f":{skill.name}")),
        examples=(*learned, *skill.triggers, *skill.examples),
        body=skill.sop[:BODY_LIMIT],
        priority=skill.priority,
    )


def with_words_of_paths(text: str, files: Sequence[str], skills: Iterable[SkillDef]) -> str:
    """`text` with the words of the skills' patterns that match one of `files`, or a word of it that looks like a path,
    which becomes the mark of its type; without the words that are in it already."""
    named = [name for word in text.split() if "." in word and is_path(name := word.strip("\"'`()[],;:!?，。"))]
    if not files and not named:
        return text
    paths = (path for skill in skills for path in skill.paths)
    matching = [path for path in paths if any(_matches(file, path) for file in (*files, *named))]
    for name in named:
        if any(_matches(name, path) for path in matching):
            text = text.replace(name, f"@{name.rpartition('.')[2]}")
    known = set(text.lower().split())
    return " ".join([text, *(word for word in _words(matching) if word.lower() not in known)])


def _matches(file: str, pattern: str) -> bool:
    """Whether a file's name or path matches a pattern such as `src/**/*.{ts,tsx}`, wherever its first folder lies."""
    path = "/" + file.replace("\\", "/").lower().removeprefix("./").lstrip("/")
    return any(fnmatchcase(path, glob) or fnmatchcase(path, f"{glob}/*") for glob in _globs(pattern))


@lru_cache(1_024)
def _globs(pattern: str) -> Sequence[str]:
    """The variants of a pattern with braces, in the form of fnmatch, whose `*` also stands for folders."""
    bare = pattern.lower().removeprefix("./").strip("/").removeprefix("**/")
    globs = ["*/" + bare.replace("/**/", "/*")]
    while len(globs) < _VARIANTS and (hit := _BRACES.search(globs[0])):
        first = globs.pop(0)
        globs += [first[: hit.start()] + part + first[hit.end() :] for part in hit[1].split(",")[:_VARIANTS]]
    return globs


def _words(patterns: Iterable[str]) -> Sequence[str]:
    return tuple(dict.fromkeys(word for pattern in patterns for word in _WORD.findall(pattern)))


def _divided(description: str) -> tuple[str, str]:
    """The parts for and against the resource; the latter from words like `not for` to the end of the sentence."""
    for_it, against = [], []
    for sentence in _SENTENCE.split(description.strip()):
        hit = _AGAINST.search(sentence)
        if hit:
            against.append(sentence[hit.end() :].strip())
        for_it.append(sentence[: hit.start()] if hit else sentence)
    return " ".join(part for part in for_it if part.strip()).strip(), " ".join(filter(None, against))
