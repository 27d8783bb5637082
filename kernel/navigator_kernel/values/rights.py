"""Rights: a kind of work that a person allows a skill, for a session or beforehand (JIT-12).

A right is a word: `run` (commands in the workspace, without network), `scripts` (the skill's own scripts), `read`
(files of the project), `edit:FOLDER/` (reading, and changes of ordinary files, below a folder), `packages:A,B`
(commands with exactly these packages), and `fetch:HOST` (pages from there). Only an answer gives the last two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from navigator_kernel.errors import UsageProblem

RUN, SCRIPTS, READ = "run", "scripts", "read"
EDIT, PACKAGES, PAGES = "edit:", "packages:", "fetch:"
_PLAIN = frozenset({RUN, SCRIPTS, READ})
EVERYWHERE = "edit:./"
_RIGHT, _FLAG, _SETTINGS = "right:", "allow:", "settings:"
_HINT = f"one of: {RUN}, {SCRIPTS}, {READ}, {EDIT}FOLDER/"


class Right(NamedTuple):
    """A right that an answer gave to the bytes of a skill, for one session."""

    word: str
    skill: str
    digest: str

    @property
    def subject(self) -> str:
        return f"{_RIGHT}{self.word}@{self.skill}@{self.digest}"

    @property
    def by_option(self) -> str:
        """The word of `--allow` that would have covered the work, empty if there is none."""
        return self.word if self.word in _PLAIN or self.word.startswith(EDIT) else ""


def right_of(subject: str) -> Right | None:
    """The right that a subject of consent names, or None."""
    parts = subject.removeprefix(_RIGHT).rsplit("@", 2) if subject.startswith(_RIGHT) else ()
    return Right(*parts) if len(parts) == 3 else None


def covering(words: Iterable[str], skill: str, digest: str) -> tuple[str, ...]:
    """The subjects of which each one alone allows what one of `words` allows, for these bytes of the skill."""
    return tuple(
        subject
        for word in words
        for subject in (Right(word, skill, digest).subject, by_option(word), by_settings(word, skill))
    )


def edits_of(folder: Sequence[str]) -> tuple[str, ...]:
    """The words of the rights to edit below the folder of the project with these parts, the nearest first."""
    return tuple(_edit(folder[:count]) for count in range(len(folder), -1, -1))


def by_option(word: str) -> str:
    """The subject that `--allow` gives for one message, to every skill that may use tools."""
    return f"{_FLAG}{word}"


def by_settings(word: str, skill: str) -> str:
    """The subject that the person's settings give to one skill."""
    return f"{_SETTINGS}{word}@{skill}"


def basis_of(subject: str) -> str:
    """What the record says about work that a consent to `subject` allowed."""
    if subject.startswith(_FLAG):
        return f"--allow {subject.removeprefix(_FLAG)}"
    if subject.startswith(_SETTINGS):
        word, _, skill = subject.removeprefix(_SETTINGS).rpartition("@")
        return f"your settings: [allow.{skill}] {word}"
    return f"a yes to {subject}"


def words_in(named: Iterable[object]) -> tuple[str, ...]:
    """The words, as they are compared; UsageProblem for one that allows nothing."""
    return tuple(dict.fromkeys(map(_word, named)))


def _word(named: object) -> str:
    word = named.strip() if isinstance(named, str) else ""
    if word in _PLAIN:
        return word
    folder = word.removeprefix(EDIT)
    folder = "." if folder == "**" else folder.removesuffix("/**")
    parts = [part for part in folder.split("/") if part not in {"", "."}]
    is_pattern = any(set(part) & {*"*?["} for part in parts)
    is_folder = folder and not folder.startswith("/") and ".." not in parts and folder.isprintable()
    if not word.startswith(EDIT) or not is_folder or is_pattern:
        raise UsageProblem(f"{named!r} cannot be allowed beforehand", hint=_HINT)
    return _edit(parts)


def _edit(parts: Sequence[str]) -> str:
    return f"{EDIT}{'/'.join(parts) or '.'}/"
