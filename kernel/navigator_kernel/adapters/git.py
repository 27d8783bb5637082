"""Reads one commit of a git repository from its objects: nothing is ever checked out."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from navigator_kernel.adapters.git_process import GitProcess
from navigator_kernel.errors import FetchFailed, Refused

ENTRY_LIMIT = 500_000
_LOCAL_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"  # names no remote: no fetch by itself
_PARTIAL = {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": "blob:none"}
_FETCH = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules")


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """One line of a tree listing. `mode` is six octal digits, `kind` is blob, tree or commit."""

    path: str
    mode: str
    kind: str
    oid: str


class GitSource:
    """A context over one commit: `commit`, `tree`, `entries`, and `contents()` of the blobs asked for.

    `url` and `ref` (a branch, a tag or a full commit id; empty for the default branch) were checked by
    `skills.source`. FetchFailed where the repository cannot be read.
    """

    def __init__(self, url: str, ref: str = "", *, timeout: float = 120.0) -> None:
        self._url, self._ref, self._timeout = url, ref, timeout
        self.commit = self.tree = ""
        self.entries: tuple[TreeEntry, ...] = ()

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="navigator-git-"))
        try:
            self._open("partial", partial=True)
            self.entries = self._listing()
        except BaseException:
            self._remove()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._remove()

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The blobs by id; at most one fetch for all that are missing. Refused over `each` or `total` bytes."""
        wanted = tuple(dict.fromkeys(oids))
        if not wanted:
            return {}
        sizes = self._sizes(wanted)
        if missing := [oid for oid in wanted if oid not in sizes]:
            self._fetch_blobs(missing)
            sizes = self._sizes(wanted)
        gone = [oid for oid in wanted if oid not in sizes]
        if gone:
            raise FetchFailed(f"{self._git.shown} has not sent {len(gone)} of its files", hint="try again later")
        _limit(sizes, each, total)
        return _parted(self._git.run("cat-file", "--batch", "--buffer", stdin=_lines(wanted)))

    def fingerprint(self, entry: TreeEntry) -> str:
        """A word that is equal for equal contents."""
        return entry.oid

    def _open(self, name: str, *, partial: bool) -> None:
        """A fresh repository that holds the wanted commit, with the blobs or (where the server can) without."""
        self._git = GitProcess(folder=self._folder / name, url=self._url, timeout=self._timeout)
        self._git.prepare()
        self._git.run("init", "--quiet", "--template=", "--initial-branch=main")
        only = ("--filter=blob:none",) if partial else ()
        words = (*_FETCH, "--depth=1", *only, "origin", self._ref or "HEAD")
        self._fetch(words, config=_PARTIAL if partial else {})
        ids = self._git.run("rev-parse", "FETCH_HEAD^{commit}", "FETCH_HEAD^{tree}").decode().split()
        self.commit, self.tree = ids

    def _listing(self) -> tuple[TreeEntry, ...]:
        lines = self._git.run("ls-tree", "-r", "-t", "-z", "--full-tree", self.tree).split(b"\0")[:-1]
        if len(lines) > ENTRY_LIMIT:
            raise Refused(f"{self._git.shown} has over {ENTRY_LIMIT} files", hint="name a smaller repository")
        return tuple(_entry(line) for line in lines)

    def _fetch_blobs(self, oids: Sequence[str]) -> None:
        """One batch, as git's own lazy fetch words it; all of the commit where the server cannot do that."""
        only = (*_FETCH, "--no-write-fetch-head", "--filter=blob:none", "--stdin", "origin")
        try:
            self._fetch(only, config={**_PARTIAL, "fetch.negotiationAlgorithm": "noop"}, stdin=_lines(oids))
        except FetchFailed:
            before = self.commit
            self._open("whole", partial=False)
            if self.commit != before:
                raise FetchFailed(f"{self._git.shown} changed while it was read", hint="try again") from None

    def _fetch(self, words: Sequence[str], config: Mapping[str, str], stdin: bytes = b"") -> None:
        self._git.run(*words, config={"remote.origin.url": self._url, **config}, stdin=stdin)
        (self._git.folder / ".git" / "config").write_text(_LOCAL_CONFIG, encoding="ascii")

    def _sizes(self, oids: Sequence[str]) -> Mapping[str, int]:
        """Bytes of each blob that is here."""
        lines = self._git.run("cat-file", "--batch-check", "--buffer", stdin=_lines(oids)).decode().splitlines()
        parts = (line.split(" ") for line in lines)
        return {part[0]: int(part[2]) for part in parts if len(part) == 3 and part[1] == "blob"}

    def _remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _entry(line: bytes) -> TreeEntry:
    head, _, path = line.partition(b"\t")
    mode, kind, oid = head.decode("ascii").split()
    return TreeEntry(path=path.decode("utf-8", errors="surrogateescape"), mode=mode, kind=kind, oid=oid)


def _limit(sizes: Mapping[str, int], each: int, total: int) -> None:
    if max(sizes.values()) > each:
        raise Refused(f"a file is over {each} bytes", hint="ask its author to leave it out", reason="too-large")
    if sum(sizes.values()) > total:
        raise Refused(f"the files are over {total} bytes together", hint="name fewer skills", reason="too-large")


def _parted(output: bytes) -> dict[str, bytes]:
    """The objects in `cat-file --batch`'s output: a line `<oid> blob <size>`, the bytes, a newline."""
    found: dict[str, bytes] = {}
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        oid, _, size = output[at:end].decode("ascii").split(" ")
        found[oid] = output[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode("ascii")
