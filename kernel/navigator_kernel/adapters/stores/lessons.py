"""Stores the messages that a person confirmed for a skill, as its examples, in the person's state of the project."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import Stamp, read_bounded, stamp
from navigator_kernel.errors import Damaged, KernelError
from navigator_kernel.text import clean, fold, strip_url_credentials, warn
from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock, Writer

EACH, ALL = 50, 2_000  # most lessons of one skill, and of all skills
LENGTH = 500  # characters of a lesson
_SIZE_LIMIT = 16 * 1024 * 1024  # bytes


class Lesson(NamedTuple):
    text: str
    at: str


Held = Mapping[str, Sequence[Lesson]]  # by the skill's name, oldest first


class Lessons(Struct):
    """Implements `ports.Lessons`. It is called each turn, so the lessons are cached until the file changes."""

    path: Path
    writer: Writer
    clock: Clock
    redact: Redact = same
    _seen: Stamp | None = None
    _harmed: Stamp | None = None
    _texts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def of(self, name: str) -> tuple[str, ...]:
        """The lessons of one skill, newest first."""
        return self.all().get(name, ())

    def all(self) -> Mapping[str, tuple[str, ...]]:
        """The lessons of each skill that has any, newest first: an index takes the first of many examples.

        Damaged if the file cannot be read.
        """
        seen = stamp(self.path)
        if seen is None:
            return {}
        if seen != self._seen:
            lessons = self._read()
            self._texts = {name: tuple(lesson.text for lesson in reversed(lessons[name])) for name in lessons}
            self._seen = seen
        return self._texts

    def known(self) -> Mapping[str, tuple[str, ...]]:
        """`all` for a turn, which must not fail because of it: empty if the file cannot be read, with one warning."""
        seen = stamp(self.path)
        if seen is not None and seen == self._harmed:
            return {}
        try:
            return self.all()
        except KernelError as error:
            warn("routing without learned examples: %s", error.message)
            self._harmed = seen
            return {}

    def learn(self, name: str, text: str) -> bool:
        """Keeps `text` as an example of the skill `name` and of no other; False if the text is empty, known already or
        has a secret in it."""
        if strip_url_credentials(text) != text or self.redact(text) != text:
            return False
        name, text = clean(name, lines=False), _told(text)
        if not text:
            return False
        self.writer.make_folder(self.path.parent)
        with file_lock(self._lock):
            by_skill = self._read()
            if any(_same(lesson.text, text) for lesson in by_skill.get(name, ())):
                return False
            others = {
                skill: [one for one in lessons if not _same(one.text, text)] for skill, lessons in by_skill.items()
            }
            others[name] = [*others.get(name, ()), Lesson(text, self.clock.now())]
            self._write(_bounded(others))
        return True

    def forget(self, name: str = "") -> int:
        """Deletes the lessons of the skill `name`, or all of them even if the file is damaged; returns their number."""
        if not os.path.lexists(self.path):
            return 0
        with file_lock(self._lock):
            if not name:
                count = 0
                with suppress(KernelError):  # a damaged file is removed, too
                    count = sum(map(len, self.all().values()))
                self.writer.remove(self.path)
                return count
            by_skill = self._read()
            others = {skill: lessons for skill, lessons in by_skill.items() if fold(skill) != fold(name)}
            if len(others) < len(by_skill):
                self._write(others)
        return sum(map(len, by_skill.values())) - sum(map(len, others.values()))

    @property
    def _lock(self) -> Path:
        return self.path.with_suffix(".lock")

    def _read(self) -> Held:
        """The lessons in the file, cut to the limits; Damaged if it cannot be read."""
        try:
            skills = json.loads(read_bounded(self.path, _SIZE_LIMIT))["skills"].items()
            return _bounded(
                {
                    clean(name, lines=False): [Lesson(_told(lesson["text"]), _told(lesson["at"])) for lesson in lessons]
                    for name, lessons in skills
                }
            )
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            hint = "navigator route --forget starts afresh"
            raise Damaged(f"{str(self.path)!r} cannot be read: {error}", hint=hint, path=str(self.path)) from error

    def _write(self, lessons: Held) -> None:
        skills = {name: [lesson._asdict() for lesson in lessons[name]] for name in sorted(lessons)}
        body = json.dumps({"v": 1, "skills": skills}, ensure_ascii=False, indent=1)
        self.writer.write(self.path, f"{body}\n".encode(), mode=0o600)


def _told(text: str) -> str:
    """`text` as it is stored: one line of at most LENGTH characters."""
    return " ".join(clean(text, lines=False).split())[:LENGTH].rstrip()


def _same(one: str, other: str) -> bool:
    return one.casefold() == other.casefold()


def _bounded(held: Held) -> Held:
    """The lessons without those over the limits: the oldest of each skill are dropped, then the oldest of all."""
    last = {name: lessons[-EACH:] for name, lessons in held.items()}
    dated = sorted((lesson.at, name, at) for name, lessons in last.items() for at, lesson in enumerate(lessons))
    gone = {(name, at) for _, name, at in dated[: max(0, len(dated) - ALL)]}
    rest = {name: [one for at, one in enumerate(held) if (name, at) not in gone] for name, held in last.items()}
    return {name: lessons for name, lessons in rest.items() if lessons}
