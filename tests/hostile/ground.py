"""The ground for a hostile case: secrets beside two projects, an upstream of raw git objects, and a canary."""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from skill_repositories import skill_text

SECRET = "SECRET-8c1f\n"
REVIEW = skill_text("code-review", "the reviewed one")
CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n"
KEPT = frozenset({"secret", "precious", "private", "canary.sh", "repository"})
HOST = (".claude", "skills")

Raw = list[tuple[str, str, "bytes | str | Raw"]]  # mode, name, then a blob, an id or a tree
Flat = Mapping[str, "bytes | str | tuple[str, bytes | str]"]  # by path; (mode, data) if the mode is not 100644


class Ground:
    """`naive` and `ours` are projects of equal content; `outside` is what neither may write to or read from."""

    def __init__(self, base: Path) -> None:
        self.base, self.outside, self.upstream = base, base / "outside", base / "upstream"
        self.naive, self.ours, self.canary = base / "naive", base / "ours", base / "canary"
        self.temp = base / "temp"
        self.script = self.outside / "canary.sh"
        self.temp.mkdir(parents=True, exist_ok=True)
        self._secrets()
        for project in (self.naive, self.ours):
            self._project(project)

    def _secrets(self) -> None:
        (self.outside / "private").mkdir(parents=True, exist_ok=True)
        (self.outside / "secret").write_text(SECRET)
        (self.outside / "precious").write_text("precious\n")
        (self.outside / "private" / "SKILL.md").write_text(skill_text("private", SECRET.strip()))
        self.script.write_text(f"#!/bin/sh\n: > '{self.canary}'\ncat\n")
        self.script.chmod(0o755)

    def _project(self, project: Path) -> None:
        """A project with one skill of the person, which has no receipt."""
        mine = project.joinpath(*HOST, "mine")
        mine.mkdir(parents=True)
        (project / "mybox").mkdir()
        (mine / "SKILL.md").write_text(skill_text("mine", "written by hand"))

    @property
    def touch(self) -> str:
        """A shell command that runs the canary."""
        return f"touch {self.canary}"

    @property
    def url(self) -> str:
        return f"file://{self.upstream}"

    def commit(self, files: Flat, *, raw: Raw | None = None) -> str:
        """Writes the upstream's only commit, with `files` and `raw`, and returns its id; accepts any name and mode."""
        tree = self._tree([*nested(files), *(raw or [])])
        who = "A <a@example.invalid> 1700000000 +0000"
        oid = self.put("commit", f"tree {tree}\nauthor {who}\ncommitter {who}\n\nhostile\n".encode())
        (self.upstream / ".git/refs/heads/main").write_text(f"{oid}\n")
        return oid

    def tree(self) -> str:
        """Returns the id of the last commit's tree."""
        main = (self.upstream / ".git/refs/heads/main").read_text().strip()
        held = zlib.decompress((self.upstream / ".git/objects" / main[:2] / main[2:]).read_bytes())
        return held.partition(b"\0tree ")[2][:40].decode()

    def put(self, kind: str, data: bytes) -> str:
        """Writes a loose object as git does, but unchecked, and returns its id."""
        store = self.upstream / ".git"
        if not store.exists():
            for name in ("objects", "refs/heads", "refs/tags"):
                (store / name).mkdir(parents=True)
            (store / "HEAD").write_text("ref: refs/heads/main\n")
            (store / "config").write_text(CONFIG)
        whole = b"%b %d\0%b" % (kind.encode(), len(data), data)
        oid = hashlib.sha1(whole, usedforsecurity=False).hexdigest()
        path = store / "objects" / oid[:2] / oid[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
        return oid

    def _tree(self, raw: Raw) -> str:
        lines = []
        for mode, name, held in sorted(raw, key=lambda item: item[1] + ("/" if item[0] == "40000" else "")):
            if isinstance(held, bytes):
                held = self.put("blob", held)
            oid = held if isinstance(held, str) else self._tree(held)
            lines.append(f"{mode} {name}\0".encode("utf-8", "surrogateescape") + bytes.fromhex(oid))
        return self.put("tree", b"".join(lines))

    def skills(self, project: Path) -> set[str]:
        """The folders of skills except the person's own; empty if the skills folder is a link."""
        if project.joinpath(*HOST).is_symlink():
            return set()
        found = {path.name for path in project.joinpath(*HOST).iterdir() if path.is_dir()}
        return found - {"mine", ".navigator"}

    def held(self, project: Path, *, limit: int = 1_000_000) -> Iterator[tuple[Path, bytes]]:
        """Yields every regular file of the project's skills with its bytes, links followed."""
        for place, _, files in os.walk(project.joinpath(*HOST)):
            for path in (Path(place, name) for name in files):
                if path.is_file() and path.stat().st_size < limit:
                    yield path, path.read_bytes()

    def seen(self, *without: Path) -> dict[str, tuple[int, int, bytes]]:
        """The contents of the ground by path: mode, time of change and bytes (the size for large files), except the
        folders in `without`."""
        found = {}
        for place, folders, files in os.walk(self.base):
            folders[:] = [name for name in folders if Path(place, name) not in without]
            for path in (Path(place, name) for name in (*folders, *files)):
                held = path.lstat()
                small = stat.S_ISREG(held.st_mode) and held.st_size < 2**16
                data = path.read_bytes() if small else str(held.st_size).encode()
                plain = not stat.S_ISDIR(held.st_mode)
                moment, data = (held.st_mtime_ns, data) if plain else (0, b"")
                found[path.relative_to(self.base).as_posix()] = (held.st_mode, moment, data)
        return found

    def open_folders(self) -> None:
        """Opens all folders to their owner: a naive unpacker keeps modes, even of folders that only root can enter."""
        subprocess.run(["chmod", "--recursive", "u+rwX", str(self.base)], check=True)

    def clear(self) -> None:
        """Removes what the naive project left elsewhere, so that the effects of ours can be told apart."""
        self.open_folders()
        self.canary.unlink(missing_ok=True)
        for path in (*self.temp.iterdir(), *(path for path in self.outside.iterdir() if path.name not in KEPT)):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self._secrets()


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """The request of a person. `words` is our whole command line if it needs more than source, skill and ref."""

    source: str
    skill: str = ""
    ref: str = ""
    words: Sequence[str] = ()
    shown: str = ""  # the skill folder that the person packs next

    def line(self) -> list[str]:
        if self.words:
            return list(self.words)
        ref = [f"--ref={self.ref}"] if self.ref else []
        skill = [f"--skill={self.skill}"] if self.skill else []
        return ["skill", "install", *skill, *ref, "--json", "--", self.source]


@dataclass(slots=True)
class Outcome:
    """The result of the unguarded installer: its output, the error that ended it, and the limit that it hit."""

    printed: str = ""
    broke: str = ""
    limit: str = ""
    lock: str = ""
    notes: dict[str, object] = field(default_factory=dict)


Harm = Callable[[Ground, Outcome], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """`build` lays the trap, `way` names the unguarded installer that falls into it, and `harm` is true if it did harm;
    a case without `harm` is not counted. `code`, `said` and `installed` are the verdict of our installer."""

    name: str
    build: Callable[[Ground], Order]
    way: str = "clone"
    harm: Harm | None = None
    code: int
    said: str = ""
    installed: frozenset[str] = frozenset()


def nested(files: Flat) -> Raw:
    """The trees of `files`; a path can be a file and a folder at once, and can have any name."""
    raw: Raw = []
    folders: dict[str, dict[str, bytes | str | tuple[str, bytes | str]]] = {}
    for path, held in files.items():
        head, slash, rest = path.partition("/")
        if slash:
            folders.setdefault(head, {})[rest] = held
        else:
            mode, data = held if isinstance(held, tuple) else ("100644", held)
            if isinstance(data, str) and mode not in {"40000", "160000"}:
                data = data.encode("utf-8", "surrogateescape")
            raw.append((mode, head, data))
    return [*raw, *(("40000", name, nested(below)) for name, below in folders.items())]


def skill(name: str, more: Flat | None = None, *, at: str = "skills", text: str = "") -> Flat:
    """The files of one skill in the folder `at`."""
    below = {"SKILL.md": text or skill_text(name), **(more or {})}
    return {f"{at}/{name}/{path}": held for path, held in below.items()}


def link(target: str) -> tuple[str, str]:
    return "120000", target


# Checks for harm


def leaked(ground: Ground, _: Outcome) -> bool:
    """The project contains bytes from outside."""
    marks = (SECRET.strip().encode(), b"root:x:0:0:", b"TOKEN-IN-ENV")
    return any(mark in data for _, data in ground.held(ground.naive) for mark in marks)


def ran(ground: Ground, _: Outcome) -> bool:
    return ground.canary.exists()


def escaped(ground: Ground, _: Outcome) -> bool:
    """Something was written outside the project."""
    found = {path.name for path in ground.outside.iterdir()} - KEPT
    return bool(found) or (ground.outside / "precious").read_text() != "precious\n"


def overwritten(ground: Ground, _: Outcome) -> bool:
    """The person's own skill is gone or was replaced."""
    mine = ground.naive.joinpath(*HOST, "mine", "SKILL.md")
    return not mine.is_file() or "written by hand" not in mine.read_text()


def broke(*signs: str) -> Harm:
    """The installer failed with an unplanned exception: one of `signs`."""
    return lambda _, outcome: any(sign in outcome.broke for sign in signs)


def limited(_: Ground, outcome: Outcome) -> bool:
    """The installer needed more memory, time or disk than a person would give it."""
    return bool(outcome.limit)


def steered(_: Ground, outcome: Outcome) -> bool:
    """The output moves the cursor, or reorders or hides text."""
    return any(mark in outcome.printed for mark in "\x1b\x07\x08\r\u202e\u200b\u2066\x9b")
