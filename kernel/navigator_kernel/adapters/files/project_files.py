"""Reads the files that a message refers to, except files outside the project and files of secrets (PRE-8, PRE-9)."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import date
from itertools import islice
from pathlib import Path, PurePosixPath

from msgspec import Struct

from navigator_kernel.adapters.files.tree import open_inside
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.language.targets import QUOTED, find_targets
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.owner import is_closed, looked_up, viewer
from navigator_kernel.values.request import FileReference

NAMED = 64  # files that one message can name without @
SEEN = 2_000  # names in the current folder that are searched for in a message
FILE_LIMIT = 256 * 1024  # bytes
PATH_LIMIT = 4096  # characters, as in Linux; the time for a longer path grows with the square of its length
NAME_LIMIT = 255  # characters of the last part, for the same reasons

# Names of files with secrets, in lower case; a `.pub` key and an example `.env` contain none
_SECRET = lazy_compile(
    r"\.env(?:rc|\..+)?(?<!\.example)(?<!\.sample)(?<!\.template)"
    r"|\.(?:netrc|npmrc|pypirc|git-credentials|pgpass|my\.cnf|htpasswd|vault-token)"
    r"|id_(?:rsa|dsa|ecdsa|ed25519).*(?<!\.pub)|.*\.(?:pem|key|p12|pfx|keystore|jks|kdbx)"
    r"|credentials(?:\.json)?|service-account.*\.json|secrets\.(?:ya?ml|json|toml)",
    re.DOTALL,
)
_WORD = lazy_compile(r"[^\s\"'`“”‘’「」《》<>|,，。；;：()（）\x00]+")
_PLAIN = lazy_compile(r"[\w./~+-]+", re.ASCII)  # a path inside text of a language without spaces
_INSIDE = lazy_compile(r"(?:\.\.|[^.])/\Z")  # what stands before the last part of a path
_COPY = lazy_compile(  # a backup contains what its original contains
    r"(?<!~)(?<!\.bak|\.old|\.sw[op])(?<!\.orig|\.save)(?:~|\.(?:bak|old|orig|save|sw[op]))++\Z"
)
_SECRET_FOLDERS = frozenset({".git", ".ssh", ".aws", ".gnupg", ".kube", ".docker", ".azure"})
_OWN = (("mybox", "state"), ("mybox", "logs"))
_ABSENT = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})


class ProjectFiles(Struct, frozen=True):
    """Implements `ports.FileReader` for one project; a relative path starts at `base`.

    Links are followed first, and the place and the names of their target are checked. The target is then opened part by
    part from the root without following links, so that a folder that has become a link meanwhile leads nowhere. A hard
    link is read like any file: package managers fill projects with them, and neither a clone nor an installed skill nor
    a sandboxed process can make one to a file outside.
    """

    root: Path
    base: Path

    def read(self, written: str) -> tuple[Path, str]:
        """Returns the real path and the text of a file. Raises NotFound, or Refused with a `reason`: `outside`,
        `kernel`, `owner`, `secrets`, `special` (with `folder`), `too-large`, `not-utf8` or `unreadable`; the last four
        have the real `path`."""
        root, parts = self._parts(written)
        path = Path(root, *parts)
        try:
            return path, _text(root, parts, written)
        except Refused as error:
            error.data = {**error.data, "path": str(path)}
            raise

    def place(self, written: str) -> Path:
        """Returns the real path of a file or folder. Raises NotFound, or Refused as `read` does for its name."""
        root, parts = self._parts(written)
        path = Path(root, *parts)
        try:
            mode = path.stat().st_mode
        except OSError as error:
            raise _absent(written) from error
        if not stat.S_ISDIR(mode):
            _refuse_special(mode, written)
        return path

    def find(self, text: str, today: date, whole: str = "") -> tuple[FileReference, ...]:
        """Returns the files and folders that `text` names in plain words, and those that the `whole` message leaves
        out."""
        return find_targets(text, self, today, whole)

    def listing(self) -> Sequence[str]:
        """The paths of the project's files and folders from its root, at most `MOST`, once for a message; a folder ends
        in `/`. What git ignores, hidden folders, vendored code and the kernel's own folder are left out."""
        return looked_up((self.root, "files"), self._listed)

    def people(self) -> Sequence[str]:
        """The authors of the last commits; none without git."""
        return looked_up((self.root, "people"), lambda: tuple(dict.fromkeys(_by_git(self.root, _AUTHORS) or ())))

    def _listed(self) -> Sequence[str]:
        names = _by_git(self.root)
        files = (
            name
            for name in (_walked(self.root) if names is None else names)
            if not any(part in _NOBODYS or part.startswith(".") for part in name.split("/")[:-1])
        )
        paths: dict[str, None] = {}
        for name in islice(files, MOST):
            for folder in reversed(PurePosixPath(name).parents[:-1]):
                paths[f"{folder}/"] = None
            paths[name] = None
        return tuple(paths)

    def _parts(self, written: str) -> tuple[str, tuple[str, ...]]:
        """The real root, and the parts of the real path below it."""
        if len(written) > PATH_LIMIT:
            raise _absent(f"{written[:80]}…")
        base = self.base if os.path.lexists(self.base / written) else self.root  # a path from the root is meant as well
        if "/" not in written and not os.path.lexists(base / written):
            raise _absent(written)  # checked first, because a message can mention thousands of people with @
        root, named = os.path.realpath(self.root), Path(os.path.realpath(base)) / written
        try:
            real = os.path.realpath(named)
        except ValueError as error:  # a NUL or a lone surrogate
            raise _absent(written) from error
        parts = _below(root, real)
        if parts is None:
            hint = "copy the file into the project"
            raise Refused(f"{written!r} is outside the project", hint=hint, reason="outside")
        refuse_named(parts, written, viewer())
        own = _below(root, os.path.normpath(named)) or ()  # a link's own name is checked as well
        refuse_named(own, written, viewer())
        return root, parts

    def named(self, text: str) -> tuple[Path, ...]:
        """The real paths of the project's files and folders that `text` names: each word or quoted part that is the
        path of a file, or with a slash or an `@` that of a folder, and each file in the current folder, and each of
        the list by its path, whose name is in the text and not the end of another path; without files of secrets and
        the kernel's own records."""
        quoted = [part.strip() for hit in QUOTED.finditer(text) for part in hit.groups() if part]
        words = dict.fromkeys(word.rstrip(".!?") for word in (*_WORD.findall(text), *_PLAIN.findall(text)))
        here: list[str] = []
        with suppress(OSError), os.scandir(self.base) as entries:
            here = [entry.name for entry in islice(entries, SEEN)]
        names = (*quoted, *here, *(self.listing() if "/" in text else ()))
        for name in (name for name in names if ("." in name.strip(".") or name in quoted) and name in text):
            if not all(_INSIDE.search(before[-3:]) for before in text.split(name)[:-1]):
                words[name] = None
        inside = {word for word in words for part in quoted if word in part and word != part}  # of a path with spaces
        every = ((word, path) for word in words if (path := self._file(word)) is not None)
        paths = dict.fromkeys(path for word, path in islice(every, NAMED) if word not in inside or path.is_file())
        within = {parent for path in paths for parent in path.parents}  # the beginning of another path, no folder
        return tuple(path for path in paths if path not in within)

    def _file(self, word: str) -> Path | None:
        if len(word) > PATH_LIMIT or word.strip("./") == "":
            return None
        root, named = os.path.realpath(self.root), Path(os.path.realpath(self.base)) / word.removeprefix("@")
        try:
            real = os.path.realpath(named)
            parts = _below(root, real)
            is_path = "/" in word or word.startswith("@")  # a word alone may not mean the folder called so
            if not parts or not (Path(real).is_file() or (is_path and Path(real).is_dir())):
                return None
            refuse_named(parts, word, viewer())
            refuse_named(_below(root, os.path.normpath(named)) or (), word, viewer())
        except (OSError, ValueError, Refused):
            return None
        return Path(real)


def _below(root: str, path: str) -> tuple[str, ...] | None:
    """The parts of `path` relative to `root`; None if it is outside."""
    return Path(path).relative_to(root).parts if Path(path).is_relative_to(root) else None


def holds_secrets(parts: Sequence[str]) -> bool:
    """Whether the names in a path are those of secrets; case is ignored, because some disks ignore it."""
    folded = tuple(part.casefold() for part in parts)
    named = bool(folded) and _SECRET.fullmatch(_COPY.sub("", folded[-1][:NAME_LIMIT])) is not None
    return named or not _SECRET_FOLDERS.isdisjoint(folded)


def refuse_link(path: Path, within: Path | None) -> None:
    """Raises Refused if the link `path` leads to a file of secrets or, with `within`, to a file outside that folder."""
    real = Path(os.path.realpath(path))
    if within is not None and not real.is_relative_to(os.path.realpath(within)):
        message = f"{str(path)!r} is a link that leads out of {str(within)!r}"
        raise Refused(message, hint="copy the file there", reason="outside")
    refuse_named(real.parts, str(path))


def refuse_named(parts: Sequence[str], written: str, token: str = "") -> None:
    """Raises Refused if the names in a path, relative to the project, are those of secrets or of the kernel's own
    records, or of files that are closed to a turn of `token`. Called before every read of a file that somebody else
    named."""
    folded = tuple(part.casefold() for part in parts)
    if folded[:2] in _OWN:
        hint = "navigator why prints it, or navigator session show NAME"
        raise Refused(f"{written!r} is the kernel's own record", hint=hint, reason="kernel")
    if is_closed(folded, token):
        hint = "name a file of the project, or one that your own sessions wrote"
        raise Refused(f"{written!r} belongs to somebody else", hint=hint, reason="owner")
    if holds_secrets(folded):
        hint = "copy what is not secret into another file"
        raise Refused(f"{written!r} is a file of secrets", hint=hint, reason="secrets")


def _text(root: str, parts: Sequence[str], written: str) -> str:
    try:
        with os.fdopen(open_inside(root, parts, lambda mode: _refuse_special(mode, written)), "rb") as file:
            data = file.read(FILE_LIMIT + 1)
    except OSError as error:
        if error.errno in _ABSENT:
            raise _absent(written) from error
        message = f"{written!r} cannot be read: {error.strerror}"
        raise Refused(message, hint="check its permissions", reason="unreadable") from error
    if len(data) > FILE_LIMIT:
        message = f"{written!r} is over {FILE_LIMIT // 1024} KiB"
        raise Refused(message, hint="name a smaller part of it", reason="too-large")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused(f"{written!r} is not UTF-8 text", hint="convert it first", reason="not-utf8") from error


def _refuse_special(mode: int, written: str) -> None:
    if not stat.S_ISREG(mode) and not stat.S_ISLNK(mode):  # opening a link fails anyway
        folder = stat.S_ISDIR(mode)
        raise Refused(f"{written!r} is not a regular file", hint="name a text file", reason="special", folder=folder)


def _absent(written: str) -> NotFound:
    return NotFound(f"no file is called {written!r}", hint="paths start at the current folder")


# Lists a project's files and folders, as git sees them, so that a message can name them in any way.

MOST = 20_000  # names
SECONDS = 5.0
_BYTES = 4 * 1024 * 1024
# A repository's own settings can name programs; none of them is run
_QUIET = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "safe.bareRepository=explicit", "core.quotePath=false")
_GIT = ("git", *(word for setting in _QUIET for word in ("-c", setting)))
_LIST = (*_GIT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
_AUTHORS = (*_GIT, "log", "-z", "--no-show-signature", "--format=%aN", "--max-count=5000")
_NOBODYS = frozenset({"mybox", "node_modules", "__pycache__", "vendor", "third_party"})


def _by_git(root: Path, argv: Sequence[str] = _LIST) -> Sequence[str] | None:
    """The files, or authors, that git lists; None without git, or if the work tree is not the person's own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(argv, cwd=root, env=env, capture_output=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [os.fsdecode(name) for name in done.stdout[:_BYTES].split(b"\0") if name]


def _walked(root: Path) -> Iterator[str]:
    for place, folders, files in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _NOBODYS)
        base = Path(place).relative_to(root)
        yield from ((base / name).as_posix() for name in sorted(files))
