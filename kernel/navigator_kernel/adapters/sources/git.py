"""Reads one commit of a git repository from its objects, without a checkout."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.sources.git_process import RECEIVED_LIMIT, GitProcess
from navigator_kernel.adapters.sources.repo_cache import Entry, RepoCache
from navigator_kernel.errors import Busy, FetchFailed, KernelError, Refused, UsageProblem
from navigator_kernel.text import lazy_compile

ENTRY_LIMIT = 500_000
LISTING_LIMIT = 64 * 1024 * 1024  # bytes
_FETCH = ("--quiet", "--no-tags", "--no-recurse-submodules")
# Settings, not options: git would store what it learns from `--filter`, and could then fetch by itself later on.
_PARTIAL = {"remote.origin.promisor": "true", "remote.origin.partialclonefilter": "blob:none"}
_COMMITS = {**_PARTIAL, "remote.origin.partialclonefilter": "tree:0"}
_EVERYTHING = ("refs/heads/*:refs/seen/*", "refs/tags/*:refs/tags/*")
_REF = lazy_compile(r"[^\W_][\w./+@-]{0,199}")
_FULL = lazy_compile(r"[0-9a-fA-F]{40}")
_DEEPEST = 5_000  # commits
_SHORT = lazy_compile(r"[0-9a-fA-F]{7,40}")
_FINAL = frozenset({"network", "timeout", "owner", "refused"})  # reasons for which no other kind of request helps

_Got = TypeVar("_Got")


class TreeEntry(NamedTuple):
    """One line of a tree listing. `mode` is six octal digits, `kind` is blob, tree or commit."""

    path: str
    mode: str
    kind: str
    oid: str


class _Target(NamedTuple):
    """What to ask the server for, and its commit if that is known without asking."""

    word: str
    commit: str = ""


class History(NamedTuple):
    """Whether an earlier commit is among those before the present one, and the authors before and since. If it is not,
    these are the author of the earlier commit, if the server still has it, and that of the present one. `is_tag` says
    whether their ref is a tag, which was moved then."""

    is_before: bool
    authors: frozenset[str]
    since: tuple[str, ...]
    is_tag: bool = False


def is_ref(text: str) -> bool:
    """Whether `text` may name a branch, a tag or a commit: it is neither an option nor a range nor a pattern."""
    odd = ".." in text or "@{" in text or "//" in text or "/." in text or text.endswith((".lock", "/", "."))
    return not odd and _REF.fullmatch(text) is not None


class GitSource:
    """A context for one commit: `commit`, `tree`, `entries`, and `contents()` of the requested blobs.

    `url`, `ref` (a branch, a tag, a full or short commit id; empty for the default branch) and `page` (a ref and a path
    below it, not yet separated) were checked by `skills.source`. On entry, a page is split into `ref` and `subpath`.
    With `or_head`, a ref that the server does not have stands for the default branch, and `ref` is empty then.
    `cache` keeps the fetched objects: a full commit in it needs no network, and with `offline` a ref stands for the
    commit that was last seen. FetchFailed if the repository cannot be read, Refused if it sends over `most` bytes.
    """

    def __init__(
        self,
        url: str,
        ref: str = "",
        *,
        page: str = "",
        or_head: bool = False,
        cache: RepoCache | None = None,
        offline: bool = False,
        auth: bool = False,
        timeout: float = 120.0,
        most: int = RECEIVED_LIMIT,
        meanwhile: Callable[[], object] = bool,
        redirects: bool = True,
    ) -> None:
        if ref and not is_ref(ref):
            raise Refused(f"{ref!r} is not a ref", hint="a branch, a tag or a commit id")
        self._url, self._page, self._cache, self._offline = url, page, cache, offline
        self._or_head, self._redirects = or_head, redirects
        self._auth, self._timeout, self._most, self._meanwhile = auth, timeout, most, meanwhile
        self.ref, self.subpath = ref, ""
        self.commit = self.tree = ""
        self.entries: tuple[TreeEntry, ...] = ()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            scratch = TemporaryDirectory(prefix="navigator-git-", ignore_cleanup_errors=True)
            self._scratch = Path(stack.enter_context(scratch))
            self._entry = self._repository(stack)
            self._reused = self._entry.made
            self._git = self._process(self._entry.folder)
            self._repaired(self._open)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The blobs by id, with at most one fetch for all missing ones. Refused over `each` or `total` bytes."""
        ids = tuple(dict.fromkeys(oids))
        return self._repaired(lambda: self._contents(ids, each, total)) if ids else {}

    def fingerprint(self, entry: TreeEntry) -> str:
        """A word that is equal for equal contents."""
        return entry.oid

    def history(self, earlier: str) -> History | None:
        """The history since commit `earlier`; None if it cannot be known: without the network, among more than
        `_DEEPEST` commits, or if the server has only a part of it. Commits are fetched without trees."""
        if self._offline or not _FULL.fullmatch(earlier):
            return None
        with suppress(FetchFailed, Refused, UnicodeDecodeError):
            entry = self._passing(f"since-{earlier}")
            entry.init()
            git = self._process(entry.folder)
            for depth in (50, _DEEPEST):
                words = (*_FETCH, f"--depth={depth}", "--update-shallow", "--", "origin", self._target.word)
                git.fetch(*words, config={"remote.origin.url": self._url, **_COMMITS})
                logged = git.run("log", "--format=%H %an <%ae>", "FETCH_HEAD").decode("utf-8", errors="replace")
                is_tag = "\ttag '" in (entry.folder / ".git" / "FETCH_HEAD").read_text(errors="replace")
                commits = [line.partition(" ")[::2] for line in logged.splitlines()]
                ids = [oid for oid, _ in commits]
                if self.commit not in ids:
                    return None
                if earlier in ids:
                    known = git.run("log", "--format=%H", f"{earlier}..FETCH_HEAD").decode().split()
                    before = frozenset(author for oid, author in commits if oid not in known)
                    since = dict.fromkeys(author for oid, author in commits if oid in known)
                    return History(is_before=True, authors=before, since=tuple(since), is_tag=is_tag)
                if len(commits) < depth:
                    if (entry.folder / ".git" / "shallow").exists():  # the server's own history is cut off
                        return None
                    authors = frozenset[str]()
                    with suppress(FetchFailed):
                        request = (*_FETCH, "--depth=1", "--", "origin", earlier)
                        git.fetch(*request, config={"remote.origin.url": self._url, **_COMMITS})
                        line = git.run("log", "-1", "--format=%an <%ae>", earlier)
                        authors = frozenset([line.decode("utf-8", errors="replace").strip()])
                    return History(is_before=False, authors=authors, since=(commits[0][1],), is_tag=is_tag)
        return None

    def _repository(self, stack: ExitStack) -> Entry:
        """The cache's repository, or a temporary one."""
        try:
            if self._cache is not None:
                return stack.enter_context(self._cache.held(self._url, self._timeout))
        except Busy:
            raise
        except (KernelError, OSError) as error:
            if self._offline:
                message = f"nothing can be read from the cache: {error}"
                raise FetchFailed(message, hint="check whose folder it is", reason="offline") from error
        return self._passing("repository")

    def _passing(self, name: str) -> Entry:
        """A temporary repository that is removed with this context."""
        return Entry(folder=self._scratch / name, writer=FolderWriter([self._scratch]), clock=SystemClock())

    def _process(self, folder: Path) -> GitProcess:
        process = GitProcess(
            folder=folder,
            scratch=self._scratch,
            url=self._url,
            timeout=self._timeout,
            most=self._most,
            auth=self._auth,
            meanwhile=self._meanwhile,
            redirects=self._redirects,
        )
        process.prepare()
        return process

    def _repaired(self, step: Callable[[], _Got]) -> _Got:
        """Returns the result of `step`; if it fails on a damaged cached repository, discards that and tries once
        more."""
        try:
            return step()
        except FetchFailed as error:
            if not self._reused or self._offline or (error.data.get("reason") != "objects" and self._is_sound()):
                raise
        self._reused = False
        self._entry.discard()
        return step()

    def _is_sound(self) -> bool:
        """Whether the local repository is intact: the error messages of a fetch into a damaged one vary."""
        try:
            if indexes := [str(path) for path in self._entry.indexes()]:
                self._git.run("verify-pack", "--", *indexes)
            return all(map(self._ids, self._entry.tips()))
        except FetchFailed:
            return False

    def _open(self) -> None:
        """Finds the wanted commit here or fetches it, without its blobs if the server supports that."""
        if not self._entry.made:
            self._refuse_offline("it")
            self._entry.init()
        self._entry.settle()
        try:
            self.commit, self.tree = self._reached()
        except FetchFailed as error:
            if not self._or_head or error.data.get("reason") not in {"ref", "offline"}:
                raise
            self.ref, self._or_head = "", False
            self.commit, self.tree = self._reached()
        output = self._git.run("ls-tree", "-r", "-t", "-z", "--full-tree", self.tree, limit=LISTING_LIMIT)
        lines = output.decode("utf-8", errors="surrogateescape").split("\0")[:-1]
        if len(lines) > ENTRY_LIMIT:
            raise Refused(f"{self._git.shown} has over {ENTRY_LIMIT} files", hint="name a smaller repository")
        self.entries = tuple(_entry(line) for line in lines)
        if self._reused:
            # Compares stored trees with their ids: git checks objects only when it fetches them
            trees = (entry.oid for entry in self.entries if entry.kind == "tree")
            self._read(tuple(dict.fromkeys((self.commit, self.tree, *trees))))
        if not _FULL.fullmatch(self.ref):
            self._entry.remember(self.ref or "HEAD", self.commit)

    def _reached(self) -> tuple[str, str]:
        """The ids of the wanted commit and its tree, fetched if they are not here."""
        self._target = self._aim()
        ids = self._ids(self._target.commit) if self._target.commit else None
        if ids is None or ids[0] != self._target.commit:  # a tag in the cache is not trusted
            self._refuse_offline(self._target.word)
            shallow = ("--depth=1", *(f"--negotiation-tip={tip}" for tip in self._entry.tips()))
            ids = self._fetched(*shallow, config=_PARTIAL)
        return ids

    def _aim(self) -> _Target:
        if self.entries:  # it was opened before the cached repository was discarded
            return _Target(self.commit, self.commit)
        if _FULL.fullmatch(self._page.partition("/")[0]):
            self.ref, _, self.subpath = self._page.partition("/")
            self._page = ""
        if _FULL.fullmatch(self.ref):
            return _Target(self.ref.lower(), self.ref.lower())
        if self._page or self._offline or _SHORT.fullmatch(self.ref):
            # The target among the server's refs or, offline, among those seen before. Splits a page by them
            if self._offline:
                refs = {ref: _Target(ref, seen["commit"]) for ref, seen in self._entry.refs.items()}
            else:
                refs = self._remote_refs()
            if self._page:
                self.ref, self.subpath = self._divided(refs)
            if (target := refs.get(self.ref or "HEAD")) is not None:
                return target
            commit = self._expanded(self.ref.lower(), refs) if _SHORT.fullmatch(self.ref) else ""
            return _Target(commit or self.ref or "HEAD", commit)
        return _Target(self.ref or "HEAD")

    def _divided(self, refs: Mapping[str, _Target]) -> tuple[str, str]:
        """The longest beginning of the page that is a ref, and the rest of the page."""
        parts = self._page.split("/")
        for count in range(len(parts), 0, -1):
            ref = "/".join(parts[:count])
            if ref in refs or (count == 1 and _SHORT.fullmatch(ref)):
                return ref, "/".join(parts[count:])
        known = ", ".join(list(refs)[1:6])
        message = f"no branch, tag or commit of {self._git.shown} begins {self._page!r}"
        raise FetchFailed(message, hint=f"it has: {known}" if known else "check the URL", reason="ref")

    def _remote_refs(self) -> dict[str, _Target]:
        """Branches and tags by short name, HEAD first; a tag wins over a branch of the same name, as in `git fetch`."""
        words = ("ls-remote", "--quiet", "--heads", "--tags", "--", "origin")
        lines = self._git.run(*words, config={"remote.origin.url": self._url}).decode("utf-8", errors="replace")
        refs = {"HEAD": _Target("HEAD")}
        for line in lines.split("\n"):  # heads come before tags, and a tag before `^{}`, the commit that it points to
            oid, _, name = line.partition("\t")
            name = name.removesuffix("^{}")
            short = name.removeprefix("refs/heads/").removeprefix("refs/tags/")
            if is_ref(short) and _FULL.fullmatch(oid):
                refs[short] = _Target(name, oid)
        return refs

    def _expanded(self, short: str, refs: Mapping[str, _Target]) -> str:
        """The one commit whose id begins with `short`; UsageProblem for several, FetchFailed for none."""
        if len(short) == 40:
            return short
        if self._offline:
            ids = self._ids(short)
            commit_ids = {ids[0]} if ids else set()
        else:
            commit_ids = {target.commit for target in refs.values() if target.commit.startswith(short)}
            if not commit_ids:  # among the commits of all branches and tags, which are fetched without trees
                entry = self._passing("history")
                entry.init()
                git = self._process(entry.folder)
                words = (*_FETCH, "--no-write-fetch-head", "--", "origin", *_EVERYTHING)
                git.fetch(*words, config={"remote.origin.url": self._url, **_COMMITS})
                oids = git.run("rev-parse", f"--disambiguate={short}").decode().split()
                kinds = git.run("cat-file", "--batch-check", stdin=_lines(oids)).decode().splitlines()
                commit_ids = {line.partition(" ")[0] for line in kinds if line.split(" ")[1:2] == ["commit"]}
        if not commit_ids:
            message = f"no commit of {self._git.shown} begins with {short!r}"
            raise FetchFailed(message, hint="check the branch, tag or commit id", reason="ref")
        if len(commit_ids) > 1:
            commits = sorted(commit_ids)
            message = f"{short!r} is the beginning of {len(commit_ids)} commits"
            raise UsageProblem(message, hint=f"write more characters of one: {', '.join(commits[:5])}", commits=commits)
        return commit_ids.pop()

    def _fetched(self, *options: str, config: Mapping[str, str]) -> tuple[str, str]:
        """Fetches the target and returns the ids of its commit and tree."""
        self._fetch((*options, "--", "origin", self._target.word), config)
        ids = self._ids("FETCH_HEAD")
        if ids is None:
            message = f"{self._target.word!r} of {self._git.shown} is not a commit"
            raise FetchFailed(message, hint="check the branch, tag or commit id")
        return ids

    def _fetch(self, words: Sequence[str], config: Mapping[str, str], stdin: bytes = b"") -> None:
        try:
            self._git.fetch(*_FETCH, *words, config={"remote.origin.url": self._url, **config}, stdin=stdin)
        except Refused:  # too much was received, and none of it is kept
            self._entry.discard()
            raise
        except FetchFailed:
            self._entry.sweep()  # removes a partial pack
            raise
        self._entry.settle()

    def _ids(self, word: str) -> tuple[str, str] | None:
        """The ids of the commit and the tree that `word` leads to, or None if one of them is not here."""
        names = f"{word}^{{commit}}\n{word}^{{tree}}\n".encode("ascii")
        lines = self._git.run("cat-file", "--batch-check", stdin=names).decode().splitlines()
        ids = {part[1]: part[0] for line in lines if len(part := line.split(" ")) == 3}
        return (ids["commit"], ids["tree"]) if set(ids) == {"commit", "tree"} else None

    def _contents(self, ids: Sequence[str], each: int, total: int) -> Mapping[str, bytes]:
        if not self._entry.made:
            self._open()
        trees = {entry.oid for entry in self.entries if entry.kind == "tree"}
        bare = self._entry.objects() <= len(trees) + 2  # commit and root tree; git would ask the disk for each blob
        sizes = {} if bare else self._sizes(ids)
        if missing := [oid for oid in ids if oid not in sizes]:
            self._refuse_offline(f"{len(missing)} of its files")
            # Fetches blobs in one batch, as git's lazy fetch does, or the whole commit if the server cannot do that
            config = {**_PARTIAL, "fetch.negotiationAlgorithm": "noop"}
            try:
                self._fetch(("--no-write-fetch-head", "--stdin", "--", "origin"), config, _lines(missing))
            except FetchFailed as error:
                if error.data.get("reason") in _FINAL:
                    raise
                commit, _ = self._fetched("--depth=1", "--refetch", config={})
                if commit != self.commit:
                    raise FetchFailed(f"{self._git.shown} changed while it was read", hint="try again") from None
            sizes = self._sizes(ids)
        gone = [oid for oid in ids if oid not in sizes]
        if gone:
            raise FetchFailed(f"{self._git.shown} has not sent {len(gone)} of its files", hint="try again later")
        if max(sizes.values()) > each:
            raise Refused(f"a file is over {each} bytes", hint="ask its author to leave it out", reason="too-large")
        if sum(sizes.values()) > total:
            raise Refused(f"the files are over {total} bytes together", hint="name fewer skills", reason="too-large")
        return self._read(ids)

    def _sizes(self, oids: Sequence[str]) -> Mapping[str, int]:
        """The size in bytes of each blob that is here."""
        lines = self._git.run("cat-file", "--batch-check", "--buffer", stdin=_lines(oids)).decode().splitlines()
        parts = (line.split(" ") for line in lines)
        return {part[0]: int(part[2]) for part in parts if len(part) == 3 and part[1] == "blob"}

    def _read(self, oids: Sequence[str]) -> dict[str, bytes]:
        """Reads the objects and compares each with its id; FetchFailed if one differs or is missing."""
        objects = dict(_parted(self._git.run("cat-file", "--batch", "--buffer", stdin=_lines(oids))))
        if len(objects) != len(oids):
            message = f"{self._git.shown} cannot be read from the cache"
            raise FetchFailed(message, hint="run it once without --offline", reason="objects")
        return objects

    def _refuse_offline(self, what: str) -> None:
        if self._offline:
            message = f"{what} of {self._git.shown} has never been fetched" if what != "it" else ""
            message = message or f"{self._git.shown} has never been fetched"
            raise FetchFailed(message, hint="run it once without --offline", reason="offline")


def _entry(line: str) -> TreeEntry:
    if line[11:12] == " " and line[52:53] == "\t":  # a blob or tree with SHA-1 ids: fixed columns
        return TreeEntry(line[53:], line[:6], line[7:11], line[12:52])
    head, _, path = line.partition("\t")
    mode, kind, oid = head.split()
    return TreeEntry(path, mode, kind, oid)


def _parted(output: bytes) -> Iterator[tuple[str, bytes]]:
    """Yields the objects in the output of `cat-file --batch` (a line `<oid> <kind> <size>`, the bytes, a newline),
    except those whose bytes do not match their id."""
    at = 0
    while at < len(output):
        end = output.index(b"\n", at)
        oid, kind, *size = output[at:end].decode("ascii").split(" ")
        at = end + 1
        if size:
            data = output[at : at + int(size[0])]
            at += len(data) + 1
            if hashlib.sha1(b"%b %d\0%b" % (kind.encode(), len(data), data), usedforsecurity=False).hexdigest() == oid:
                yield oid, data


def _lines(oids: Sequence[str]) -> bytes:
    return "".join(f"{oid}\n" for oid in oids).encode("ascii")
