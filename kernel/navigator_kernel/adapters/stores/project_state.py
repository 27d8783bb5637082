"""Finds the folder with the person's state of one project: outside the project, by the identity of its root.

The folder's name is a digest of the root's inode, birth time and path, without the device, whose number changes with
every mount. Its `project.json` is the person's own record of the root. The record's random id is also in the project's
`mybox/state/project-id`, but no byte of a project opens a state: this mark counts only together with path and inode
where there are no birth times; otherwise it only hints at the project that this one may be a copy of (X-43).
"""

from __future__ import annotations

import json
import os
import shlex
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import RLock
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.writer import PRIVATE, FolderWriter, Stamp, make_private, read_bounded, stamp
from navigator_kernel.config.project_root import is_project
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import Busy, KernelError
from navigator_kernel.text import warn

BOX = "mybox"
RECORD, VERSION = "project.json", 2
ASIDE = ".aside-"  # in the name of a state folder that was set aside
_RECORD_LIMIT, _MARK_LIMIT = 65536, 4096  # bytes
_CURRENT_FOLDER, _NO_FOLLOW, _BIRTH, _BIRTH_AT = -100, 0x100, 0x800, 80  # statx(2), with the offset of stx_btime
IGNORED = b"""\
# Made by navigator. These files belong to this machine, except for the workflows, which a team shares.
*
!/workflows/
!/workflows/**
"""
# The person's pytest and go would otherwise run tests that a model wrote in a workspace, outside the sandbox
UNCOLLECTED = {
    "conftest.py": b'# Made by navigator: pytest collects no file below mybox\ncollect_ignore_glob = ["*"]\n',
    "go.mod": b"// Made by navigator: go takes no file below mybox for a part of the project\nmodule mybox.invalid\n",
}


class Place(Struct, frozen=True):
    """A folder, and what tells it from another one at the same path. `born` is its birth time in ns, 0 if the file
    system or the C library does not tell it; if there is no folder, all but the path is 0."""

    path: str
    device: int = 0
    inode: int = 0
    born: int = 0


class Record(Struct, frozen=True):
    """The `project.json` of a state folder; if it cannot be read, only `folder` and `fault` are set."""

    folder: Path
    id: str = ""
    place: Place = Place("")
    created: str = ""
    v: int = 0
    fault: str = ""

    @property
    def short(self) -> str:
        """The word by which the person names the state."""
        name, _, aside = self.folder.name.partition(ASIDE)
        return aside or name[:12]

    def is_there(self) -> bool:
        """Whether the root is still at its path."""
        was, now = self.place, look(self.place.path)
        return now.inode == was.inode != 0 and (now.born == was.born or 0 in {now.born, was.born})


class ProjectState:
    """The state of the project at `root`, below the person's state folder `base`. Reading it writes nothing; `claim`
    does, before the first write.

    `record` is None if there is no state yet. Then `offered` are states that may be the project's, which only the
    person can know: it may be a copy, or was moved to another file system or restored (`navigator project adopt`).
    """

    def __init__(self, base: Path, root: Path, clock: Callable[[], str]) -> None:
        self.root = Path(os.path.realpath(root))
        self.projects = base / "projects"
        self._base, self._clock = base, clock
        self._claimed = self._marked = False
        self.place = look(str(self.root))
        self._find(lambda: _records_at(self.projects, stamp(self.projects)))
        self.folder = self.record.folder if self.record else self._named

    def claim(self, *, looking: bool = False) -> None:
        """Makes the folder (mode 0700) with its record and the project's mark, or brings the two up to date. A command
        that is only `looking` makes no `mybox` for the mark: the next one that works does. Busy if the state was
        replaced since this object was made."""
        is_marked = not looking or (self.root / BOX).is_dir()
        if self._claimed and (self._marked or not is_marked):
            return

        make_home(self._base)
        make_private(self.projects)
        with file_lock(self.projects / "claim.lock"):
            self._find(partial(records, self.projects))
            if self.record is None:
                earlier = [record for record in records(self.projects) if record.place.path == self.place.path]
                self._remove_dangling()
                fresh = self.folder.with_name(f"{self.folder.name}.{os.urandom(16).hex()}")
                make_private(fresh)
                self._write(fresh, self._new_mark() if is_marked else "", self._clock())
                FolderWriter([self.projects]).move(fresh, self.folder)
                if offered := self.offered or earlier:
                    warn("%s", _offer(max(offered, key=lambda record: record.created), self.place))
            elif self.record.folder == self.folder:
                self._continue(self.record, is_marked=is_marked)
            else:
                raise Busy(f"the state of {str(self.root)!r} was replaced meanwhile", hint="run the command again")
        self._claimed, self._marked = True, is_marked

    def faults(self) -> list[str]:
        """What is wrong with the record, a sentence each."""
        if self.record is None:
            return [_offer(record, self.place) for record in self.offered]
        if self.record.fault:
            return [f"{self.record.fault}; the next command that writes makes it again"]
        if self.record.id in {"", self._mark()}:
            return []
        mark = self.root / BOX / "state" / "project-id"
        return [f"{str(mark)!r} is not what was written; the next command that writes makes it again"]

    def take(self, record: Record) -> Record | None:
        """Makes the state of `record` this project's. The caller holds the lock. Returns the record of the project's
        former state, which is set aside."""
        writer, former = FolderWriter([self.projects]), self.record
        if former is not None:
            aside = former.folder.with_name(f"{former.folder.name}{ASIDE}{os.urandom(4).hex()}")
            unlink(former.folder)
            writer.move(former.folder, aside)
            former = replace(former, folder=aside)
        unlink(record.folder)
        self._write(record.folder, self._new_mark(), record.created or self._clock())
        self._find(tuple)
        if self.record is None:
            self._remove_dangling()
            writer.move(record.folder, self._named)
        return former

    def _find(self, known: Callable[[], Sequence[Record]]) -> None:
        """Sets `record` and `offered`, and the name that the state has or gets. A name that the state of another root
        has is never given away: the next one is made with it."""
        mark, taken, offered = cache(self._mark), "", list[Record]()
        self.record: Record | None = None
        self.offered: list[Record] = []
        while True:
            identity = f"{self.place.inode}:{self.place.born}:{taken}:".encode() + os.fsencode(self.place.path)
            self._named = self.projects / blake2b(identity, digest_size=16).hexdigest()
            if (record := read_record(self._named)) is None:
                break
            if self._relation(record, mark, named=True) == "same":
                self.record = record
                return
            offered.append(record)
            taken = record.folder.name
        for record in known():
            match self._relation(record, mark, named=False):
                case "same":
                    self.record = record
                    return
                case "perhaps" if record not in offered:
                    offered.append(record)
        self.offered = offered

    def _relation(self, record: Record, mark: Callable[[], str], *, named: bool) -> Literal["same", "perhaps", "none"]:
        """Whether the record is of this root; `named` if its folder has this root's name.

        With a birth time the inode decides. Only if the recorded root is still there on another device, one of the two
        is a snapshot of the other; on the same device it is this very folder, mounted twice.
        """
        was, here = record.place, self.place
        is_inode = here.inode == was.inode != 0
        if here.born and (named or (is_inode and was.born == here.born)):
            is_snapshot = was.path != here.path and record.is_there() and look(was.path).device != here.device
            return "perhaps" if is_snapshot else "same"
        if named or (is_inode and was.path == here.path and 0 in {was.born, here.born}):
            is_marked = record.id == mark() and (record.id or was.device == here.device)
            return "same" if is_marked and not record.fault else "perhaps"
        return "perhaps" if record.id and record.id == mark() else "none"

    def _continue(self, record: Record, *, is_marked: bool) -> None:
        """Another process may have the state open, so its folder stays where it is, and gets another name."""
        if record.fault:
            warn("%s; it was made again", record.fault)
            self._write(record.folder, self._new_mark() if is_marked else "", self._clock())
        elif record.id and record.id != self._mark() and is_marked:
            self._write_mark(record.id)
        elif not record.id and is_marked and (made := self._new_mark()):
            self._write(record.folder, made, record.created)
            record = replace(record, id=made, place=self.place, v=VERSION)
        if not self._named.is_dir():
            self._remove_dangling()
            FolderWriter([self.projects]).link(self._named, record.folder.name)
            if record.place.path != self.place.path:
                warn("the project was at %r before; its state goes on", record.place.path)
        if not record.fault and (record.v, record.place) != (VERSION, self.place):
            self._write(record.folder, record.id, record.created)

    def _remove_dangling(self) -> None:
        if self._named.is_symlink():
            FolderWriter([self.projects]).remove(self._named)

    def _write(self, folder: Path, mark: str, created: str) -> None:
        here = self.place
        body = {"v": VERSION, "id": mark, "path": here.path, "device": here.device, "inode": here.inode}
        data = json.dumps({**body, "born": here.born, "created": created}, ensure_ascii=False)
        FolderWriter([self.projects]).write(folder / RECORD, data.encode("utf-8", "surrogateescape"), mode=0o600)

    def _new_mark(self) -> str:
        """A new id, which is also in the project; empty if it cannot be written there."""
        made = os.urandom(16).hex()
        return made if self._write_mark(made) else ""

    def _write_mark(self, text: str) -> bool:
        """A folder that is not a project gets none."""
        if not is_project(str(self.root)):
            return False
        folder = self.root / BOX / "state"
        try:
            ProjectWriter([folder], self.root).write(folder / "project-id", f"{text}\n".encode())
        except KernelError:
            return False
        return True

    def _mark(self) -> str:
        with suppress(OSError, KernelError):
            data = read_bounded(self.root / BOX / "state" / "project-id", _MARK_LIMIT)
            return data.decode("ascii", "replace").strip()
        return ""


class ProjectWriter(FolderWriter):
    """Writes below one project. Before the first write below its `mybox`, makes a `.gitignore` there that ignores all
    but the workflows (X-42), and before the first one in a workspace `UNCOLLECTED`; existing files stay as they are."""

    def __init__(self, roots: Sequence[Path], root: Path) -> None:
        super().__init__(roots, within=root)
        self._box, self._wanted = Path(os.path.realpath(root)) / BOX, {".gitignore": IGNORED, **UNCOLLECTED}

    def _checked(self, path: Path) -> Path:
        real = super()._checked(path)
        if self._wanted and real.is_relative_to(self._box):
            is_workspace = real.is_relative_to(self._box / "workspace")
            for name in [".gitignore", *(UNCOLLECTED if is_workspace else ())]:
                data = self._wanted.pop(name, b"")
                if data and not os.path.lexists(self._box / name):
                    FolderWriter([self._box]).create(self._box / name, data, mode=0o644)
        return real


class PrivateWriter(FolderWriter):
    """Writes below one folder of the person's state; `prepare` makes it before the first write of any
    thread, and again before the next one if it failed."""

    def __init__(self, folder: Path, prepare: Callable[[], None]) -> None:
        super().__init__([folder], mode=PRIVATE)
        self._prepare: Callable[[], None] | None = prepare
        self._preparing = RLock()

    def _checked(self, path: Path) -> Path:
        with self._preparing:
            if self._prepare is not None:
                self._prepare()
                self._prepare = None
        return super()._checked(path)


def look(path: str) -> Place:
    """The folder that is at `path` now."""
    try:
        seen = os.lstat(path)
    except (OSError, ValueError):
        return Place(path)
    return Place(path, seen.st_dev, seen.st_ino, _born(path))


def read_record(folder: Path) -> Record | None:
    """The record of a state folder, also by another name of it; None if there is no such folder."""
    with suppress(OSError):
        folder = folder.with_name(folder.readlink().name)
    if not folder.is_dir():
        return None
    file = folder / RECORD
    try:
        record = json.loads(read_bounded(file, _RECORD_LIMIT).decode("utf-8", "surrogateescape"))
        place = Place(str(record["path"]), int(record["device"]), int(record["inode"]), int(record.get("born", 0)))
        return Record(folder, str(record["id"]), place, str(record["created"]), int(record["v"]))
    except FileNotFoundError:
        return Record(folder, fault=f"{str(file)!r} is missing")
    except (OSError, KernelError, ValueError, KeyError, TypeError, RecursionError):
        return Record(folder, fault=f"{str(file)!r} cannot be read")


def records(projects: Path, *, aside: bool = False) -> list[Record]:
    """The records of all states in order of their names; with `aside`, also of those that were set aside."""
    try:
        names = sorted(os.listdir(projects))
    except OSError:
        return []
    paths = [projects / name for name in names if "." not in name or (aside and ASIDE in name)]
    return [record for path in paths if not path.is_symlink() and (record := read_record(path)) is not None]


def unlink(folder: Path) -> None:
    """Removes the other names of a state folder."""
    for path in folder.parent.iterdir():
        if path.is_symlink() and path.readlink().name == folder.name:
            FolderWriter([folder.parent]).remove(path)


@lru_cache(maxsize=1)
def _records_at(projects: Path, _: Stamp | None) -> Sequence[Record]:
    """`records`, which a process that opens many parts reads once."""
    return records(projects)


def _born(path: str) -> int:
    import ctypes  # takes 3 ms

    # Python has no call for this function of the C library, which an old library does not have either
    statx, answer = getattr(ctypes.CDLL(None), "statx", None), ctypes.create_string_buffer(256)
    if statx is None or statx(_CURRENT_FOLDER, os.fsencode(path), _NO_FOLLOW, _BIRTH, answer) != 0:
        return 0
    mask, seconds, rest = struct.unpack_from(f"=I{_BIRTH_AT - 4}xqI", answer)
    return int(seconds * 10**9 + rest) if mask & _BIRTH else 0


def _offer(record: Record, here: Place) -> str:
    """The sentence about a state that may be the project's."""
    path = record.place.path
    if path in {"", here.path}:
        adopt = f"navigator project adopt {record.short} takes over its state"
        return f"another project may have been at {here.path!r} before: {adopt}"
    now = "is still there" if record.is_there() else "is no longer there"
    other = f"navigator project adopt {shlex.quote(path)} takes over its state, or else the copy has one of its own"
    return f"{here.path!r} seems to be a copy of {path!r}, which {now}: {other}"


# Makes the person's state folder, and notes when this version first used it.

NOTE = "home.json"
_OWN = frozenset({"projects", NOTE})  # names that an earlier version never wrote


def make_home(folder: Path) -> None:
    """Creates the folder with mode 0700. The note is written before anything else, so that files of this version do not
    make the home look like one of an earlier version, whose projects may bring their state along (X-43)."""
    if not (folder / NOTE).exists():
        is_used = False  # whether an earlier version left anything in the home
        with suppress(OSError):
            is_used = any(name not in _OWN for name in os.listdir(folder))
        make_private(folder)
        body = json.dumps({"v": 2, "upgraded_at": time.time_ns() if is_used else 0})
        FolderWriter([folder]).create(folder / NOTE, body.encode(), mode=0o600)  # the first process decides
    make_private(folder)
