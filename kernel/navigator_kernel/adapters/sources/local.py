"""Reads a local folder, or an archive without unpacking it to disk, as a tree of entries, like a commit."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.errors import FetchFailed, Refused
from navigator_kernel.text import lazy_compile

COUNT_LIMIT = 50_000  # members; twice as many with the folders above them
TOTAL_LIMIT = 512 * 1024 * 1024  # bytes of the archive, and of its unpacked contents
DEPTH_LIMIT = 64  # parts of a path
PATH_LIMIT = 4_096  # bytes of a path or of a link's target
STREAM_LIMIT = TOTAL_LIMIT + COUNT_LIMIT * 2_048  # bytes, including the headers and padding of a tar archive
_PIECE = 1024 * 1024  # bytes; the most that one read requests
_INDEX_LIMIT = 16 * 1024 * 1024  # bytes of a zip archive's list of members
_UTF8 = 0x800  # the flag of a zip member whose name is in UTF-8
_END = struct.Struct("<4s4H2LH")  # a zip archive's end record
_Stream = IO[bytes] | gzip.GzipFile
_DRIVE = lazy_compile(r"[A-Za-z]:")
_HERE = lazy_compile(r"\A(\./)+")
_DAMAGE = (
    tarfile.TarError, zipfile.BadZipFile, OSError, EOFError, zlib.error, struct.error, RuntimeError, ValueError,
    ArithmeticError, LookupError, TypeError, AttributeError,
)  # fmt: skip  # all errors that the readers raise for hostile archives; RuntimeError covers RecursionError


class Member(NamedTuple):
    """`mode` is git's, empty if `problem` says why the member cannot be used; `at` is its position in the archive."""

    path: str
    mode: str
    size: int
    at: int = 0
    text: str = ""  # the target of a link, if the archive's header contains it
    problem: str = ""


class ArchiveSource:
    """The same interface as `FolderSource`, over an archive: a file, or bytes that `called` names for people; an id is
    the path itself.

    Entering it raises Refused for a member that could be written elsewhere or means more than a file, and FetchFailed
    if the file is not a zip, tar or tar.gz archive.
    """

    commit = ""
    tree = ""

    def __init__(self, archive: Path | bytes, called: str = "") -> None:
        self._archive, self._path = archive, called or str(archive)
        self._digests: dict[str, str] = {}
        self.entries: tuple[TreeEntry, ...] = ()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            file = stack.enter_context(self._opened())
            with self._damage_named():
                self._pack: _Zip | _Tar = _Zip(file) if file.read(4) in {b"PK\3\4", b"PK\5\6"} else _Tar(file)
                self._members = self._checked(self._pack.members())
            self.entries = tuple(sorted(map(_entry, self._members.values()), key=lambda entry: entry.path))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The files by id, read in the order in which they are packed. Refused over `each` or `total` bytes."""
        packed = sorted(set(oids), key=lambda oid: self._members[oid].at)
        return _read_all(packed, lambda oid: self._read(self._members[oid], each), total)

    def fingerprint(self, entry: TreeEntry) -> str:
        """A digest that is equal for equal contents; empty for an entry that is not a blob."""
        if entry.kind != "blob":
            return ""
        if entry.oid not in self._digests:
            data = self._read(self._members[entry.oid], TOTAL_LIMIT)
            self._digests[entry.oid] = hashlib.sha256(data).hexdigest()
        return self._digests[entry.oid]

    def _read(self, member: Member, limit: int) -> bytes:
        limit = min(limit, PATH_LIMIT) if member.mode == "120000" else limit
        if member.text:
            return os.fsencode(member.text)
        if member.size > limit:
            message = f"{member.path!r} is over {limit} bytes"
            raise Refused(message, hint="ask its author to leave it out", reason="too-large")
        with self._damage_named():
            data = self._pack.read(member, limit)
        if len(data) != member.size:
            raise self._damaged()
        return data

    @contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        if isinstance(self._archive, bytes):
            yield io.BytesIO(self._archive)
            return
        try:
            handle = os.open(self._archive, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            message = f"cannot read {self._path!r}: {error.strerror}"
            raise FetchFailed(message, hint="check the path") from error
        with os.fdopen(handle, "rb") as file:
            seen = os.fstat(handle)
            if not stat.S_ISREG(seen.st_mode):
                raise FetchFailed(f"{self._path!r} is not a file", hint="check the path")
            if seen.st_size > TOTAL_LIMIT:
                raise _too_large(f"{self._path!r} is over {TOTAL_LIMIT} bytes")
            yield file

    def _checked(self, members: Iterable[Member]) -> dict[str, Member]:
        """The members and the folders above them by path; Refused with every problem in `data["problems"]`."""
        by_path: dict[str, Member] = {}
        problems: list[str] = []
        total = 0
        for count, member in enumerate(members, 1):
            total += max(member.size, 0)
            if count > COUNT_LIMIT or len(by_path) > 2 * COUNT_LIMIT or total > TOTAL_LIMIT:
                raise _too_large(f"{self._path!r} holds over {COUNT_LIMIT} files or {TOTAL_LIMIT} bytes")
            problem = _path_problem(member.path) or member.problem or _added(by_path, member)
            if problem:
                problems.append(f"{member.path[:200]!r} {problem}")
        if problems:
            message = f"{self._path!r} is not safe to read: {'; '.join(problems[:3])}"
            raise Refused(message, hint="pack it again from plain files and folders", problems=problems)
        return by_path

    @contextmanager
    def _damage_named(self) -> Iterator[None]:
        try:
            yield
        except _DAMAGE as error:
            raise self._damaged() from error

    def _damaged(self) -> FetchFailed:
        return FetchFailed(f"{self._path!r} is not an archive or is damaged", hint="a .skill, .zip, .tar, .tar.gz")


class _Zip:
    def __init__(self, file: IO[bytes]) -> None:
        _refuse_long_index(file)
        self._zip = zipfile.ZipFile(file)
        self._infos = self._zip.infolist()

    def members(self) -> Iterator[Member]:
        names = [info.orig_filename if "\0" in info.orig_filename else info.filename for info in self._infos]
        with suppress(UnicodeEncodeError):  # else they are from a header in Unicode
            old = [at for at, info in enumerate(self._infos) if not info.flag_bits & _UTF8 and not names[at].isascii()]
            for at, name in zip(old, _readable([names[at].encode("cp437") for at in old]), strict=True):
                names[at] = name
        # Windows PowerShell 5 divides folders by backslashes
        if not any("/" in name or ".." in name.split("\\") for name in names):
            names = [name.replace("\\", "/") for name in names]
        for at, info in enumerate(self._infos):
            mode, problem = _zip_mode(info, names[at])
            yield Member(names[at].removesuffix("/"), mode, info.file_size, at, problem=problem)

    def read(self, member: Member, limit: int) -> bytes:
        """Reads up to `limit` bytes or the size that the archive states, and one more, by which a wrong size shows."""
        with self._zip.open(self._infos[member.at]) as stream:
            return stream.read(min(limit, member.size) + 1)


class _Tar:
    def __init__(self, file: IO[bytes]) -> None:
        file.seek(0)
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._stream = _Bounded(gzip.GzipFile(fileobj=file) if packed else file)

    def members(self) -> Iterator[Member]:
        with tarfile.open(fileobj=self._stream, mode="r:", errors="surrogateescape") as tar:
            last = -1
            for info in tar:
                if info.offset_data <= last:
                    raise tarfile.ReadError("it leads backwards")
                last = info.offset_data
                name = info.name if info.name.isprintable() else _readable([os.fsencode(info.name)])[0]
                path = _HERE.sub("", name).rstrip("/")
                if path not in {"", "."} or not info.isdir():
                    mode, problem = _tar_mode(info)
                    text = info.linkname if info.issym() else ""
                    size = info.size if mode.startswith("100") else len(os.fsencode(text))
                    yield Member(path, mode, size, info.offset_data, text, problem)
            self._stream.seek(tar.offset)
            if self._stream.read(512).strip(b"\0"):  # tarfile treats a broken header as the end
                raise tarfile.ReadError("the archive has no end marker")

    def read(self, member: Member, limit: int) -> bytes:
        self._stream.seek(member.at)
        pieces, remaining = [], min(member.size, limit)
        while remaining and (piece := self._stream.read(min(remaining, _PIECE))):
            pieces.append(piece)
            remaining -= len(piece)
        return b"".join(pieces)


class _Bounded(io.RawIOBase):
    """A stream that raises Refused beyond STREAM_LIMIT bytes, and for a read of over _PIECE bytes."""

    def __init__(self, inner: _Stream) -> None:
        super().__init__()
        self._inner = inner

    def read(self, size: int = -1, /) -> bytes:
        if not 0 <= size <= _PIECE:
            raise _too_large("a header of the archive is too long")
        self._refuse_far(self.tell() + size)
        return self._inner.read(size)

    def seek(self, position: int, whence: int = 0, /) -> int:
        self._refuse_far(position)
        return self._inner.seek(position, whence)

    def tell(self) -> int:
        return self._inner.tell()

    def _refuse_far(self, position: int) -> None:
        if position > STREAM_LIMIT:
            raise _too_large(f"the archive holds over {TOTAL_LIMIT} bytes")


def _refuse_long_index(file: IO[bytes]) -> None:
    """Refuses a list of members that is too long, for zipfile reads all of it. Finds the list as zipfile does."""
    size = file.seek(0, os.SEEK_END)
    start = max(size - _END.size - 0xFFFF, 0)
    file.seek(start)
    tail = file.read()
    at = len(tail) - _END.size
    if at < 0 or tail[at : at + 4] != b"PK\5\6" or tail[-2:] != b"\0\0":
        at = tail.rfind(b"PK\5\6")
    if at < 0 or at + _END.size > len(tail):
        raise zipfile.BadZipFile("no end record")
    file.seek(max(start + at - 20, 0))
    if _END.unpack_from(tail, at)[5] > _INDEX_LIMIT or file.read(4) == b"PK\6\7":  # PK\6\7 means zip64, a longer list
        raise _too_large("the archive's list of members is too long")


def _readable(names: Sequence[bytes]) -> list[str]:
    """The names of an archive that does not state their encoding: all of them in the first of UTF-8, GB 18030 (Chinese
    Windows; it includes GBK) and code page 437 (the zip format's own) that fits. Bytes of code page 437 are mostly
    possible in GB 18030, too, but then stand for characters that nobody uses."""
    with suppress(UnicodeDecodeError):
        return [name.decode("utf-8") for name in names]
    with suppress(UnicodeDecodeError):
        chinese = [name.decode("gb18030") for name in names]
        letters = [letter for name in chinese for letter in name if not letter.isascii()]
        common = "".join(letters).encode("gb2312", "ignore").decode("gb2312")
        if 2 * len(common) >= len(letters):
            return chinese
    return [name.decode("cp437") for name in names]


def _zip_mode(info: zipfile.ZipInfo, name: str) -> tuple[str, str]:
    if info.flag_bits & (0x1 | 0x40 | 0x2000):
        return "", "is encrypted"
    if info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        return "", "is packed in a way that is not read here"
    mode = info.external_attr >> 16
    kind = stat.S_IFMT(mode)
    if name.endswith("/"):
        return ("040000", "") if kind in {0, stat.S_IFDIR} else ("", "is not a folder, and is named like one")
    if kind == stat.S_IFLNK:
        return "120000", ""
    if kind not in {0, stat.S_IFREG}:
        return "", "is not a regular file"
    return "100755" if mode & 0o100 else "100644", ""


def _tar_mode(info: tarfile.TarInfo) -> tuple[str, str]:
    if info.islnk():
        return "", "is a hard link"
    if info.isdir():
        return "040000", ""
    if info.issym():
        return "120000", ""
    if not info.isreg() or info.issparse() or info.size < 0:
        return "", "is not a regular file"
    return "100755" if info.mode & 0o100 else "100644", ""


def _path_problem(path: str) -> str:
    if path.startswith("/") or _DRIVE.match(path):
        return "is an absolute path"
    if "\\" in path or "\0" in path or len(os.fsencode(path)) > PATH_LIMIT:
        return "is not a plain path"
    parts = path.split("/")
    if ".." in parts:
        return "leads outside"
    if "" in parts or "." in parts:
        return "is not a plain path"
    return "is too deep" if len(parts) > DEPTH_LIMIT else ""


def _added(members: dict[str, Member], member: Member) -> str:
    """Adds the member and the folders above it. Returns the problem if a path is already taken, else an empty text."""
    parts = member.path.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if members.setdefault(above, Member(above, "040000", 0)).mode != "040000":
            return "lies below a file"
    known = members.setdefault(member.path, member)
    return "occurs twice" if known is not member and (known.mode, member.mode) != ("040000", "040000") else ""


def _entry(member: Member) -> TreeEntry:
    kind = "tree" if member.mode == "040000" else "blob"
    return TreeEntry(path=member.path, mode=member.mode, kind=kind, oid=member.path)


def _too_large(message: str) -> Refused:
    return Refused(message, hint="pack a part of it", reason="too-large")


ENTRY_LIMIT = 50_000
_LEFT_OUT = frozenset({".git", ".navigator", "__pycache__", "node_modules"})


class FolderSource:
    """The same interface as `GitSource`, over a folder; it has no commit, and an id is the path itself."""

    commit = ""
    tree = ""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.entries: tuple[TreeEntry, ...] = ()

    def __enter__(self) -> Self:
        if not self._folder.is_dir():
            raise FetchFailed(f"there is no folder {str(self._folder)!r}", hint="check the path")
        self.entries = tuple(sorted(_walk(self._folder), key=lambda entry: entry.path))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Does nothing, because nothing is open."""

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The files by id. Refused over `each` or `total` bytes, FetchFailed if a file cannot be read."""
        return _read_all(dict.fromkeys(oids), lambda oid: self._read(oid, each), total)

    def fingerprint(self, entry: TreeEntry) -> str:
        """A digest that is equal for equal contents; empty for a folder."""
        return hashlib.sha256(self._read(entry.oid, 2**31)).hexdigest() if entry.kind == "blob" else ""

    def _read(self, oid: str, limit: int) -> bytes:
        path = self._folder / oid
        try:
            if path.is_symlink():
                return os.fsencode(path.readlink())
            return read_bounded(path, limit)
        except OSError as error:
            raise FetchFailed(f"cannot read {str(path)!r}: {error.strerror}", hint="try again") from error


def _walk(top: Path) -> Iterator[TreeEntry]:
    """Yields the entries; links are not followed, and special files get the mode 000000, which nothing accepts."""
    count = 0
    for place, folders, files in os.walk(top):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        count += len(folders) + len(files)
        if count > ENTRY_LIMIT:
            raise Refused(f"{str(top)!r} has over {ENTRY_LIMIT} files", hint="name the folder of the skill")
        for name in [*folders, *files]:
            path = Path(place, name)
            seen, inside = path.lstat().st_mode, path.relative_to(top).as_posix()
            executable = "100755" if seen & 0o100 else "100644"
            mode = {stat.S_IFDIR: "040000", stat.S_IFLNK: "120000", stat.S_IFREG: executable}.get(stat.S_IFMT(seen))
            kind = "tree" if stat.S_ISDIR(seen) else "blob"
            yield TreeEntry(path=inside, mode=mode or "000000", kind=kind, oid=inside)


def _read_all(oids: Iterable[str], read: Callable[[str], bytes], total: int) -> dict[str, bytes]:
    """The files by id; Refused over `total` bytes."""
    files: dict[str, bytes] = {}
    for oid in oids:
        files[oid] = read(oid)
        total -= len(files[oid])
        if total < 0:
            raise Refused("the files are too large together", hint="name fewer skills", reason="too-large")
    return files
