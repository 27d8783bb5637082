"""Reads skills that a web server publishes as a tree of entries, like a commit: an archive at an address, the index of
a site under `/.well-known/`, a package of an npm registry, or the skills that an MCP server serves (SEP-2640).

Shapes of the index: `agent-skills/index.json` of version 0.2.0 of the discovery RFC, where each skill is one document
with its digest, `skills/index.json` of 0.1.0, where each skill is a list of files, and `ai-catalog.json` of AI Catalog
1.0 (Agentic Resource Discovery), where some entries are skills, without a digest.
"""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import islice
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, unquote, urljoin, urlsplit

from navigator_kernel.adapters.sources.git import TreeEntry
from navigator_kernel.adapters.sources.local import ArchiveSource
from navigator_kernel.adapters.web import fetch, get
from navigator_kernel.errors import FetchFailed, IntegrityMismatch, KernelError, Refused
from navigator_kernel.text import clean, lazy_compile

Ask = Callable[[str, str, Mapping[str, str]], Mapping[str, Any]]  # an MCP server, an operation and its parameters
# Below `/.well-known`, the best first
INDEXES = ("agent-skills/index.json", "skills/index.json", "ai-catalog.json")
ARCHIVE_LIMIT = 128 * 1024 * 1024  # bytes
INDEX_LIMIT = 16 * 1024 * 1024  # bytes
DOCUMENT_LIMIT = 10 * 1024 * 1024  # bytes of a file
TOTAL_LIMIT = 256 * 1024 * 1024  # bytes of all manifests and archives of an index
COUNT_LIMIT, FILES_LIMIT = 2_000, 50_000  # skills of an index, and all their files
SECONDS = 120.0  # seconds for a document
_AT_ONCE = 8
NAME = lazy_compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")  # of a skill in an index
_DIGEST = lazy_compile(r"sha256:[0-9a-f]{64}")
_MEDIA = {  # media types of skills in an AI Catalog, without parameters
    "text/markdown": "skill-md",
    "application/agent-skills+md": "skill-md",
    "application/ai-skill": "skill-md",
    "application/ai-skill+md": "skill-md",
    "application/agent-skills+zip": "archive",
    "application/agent-skills+gzip": "archive",
}
_CATALOGUE = "application/ai-catalog+json"  # an entry that leads to another catalogue
CATALOGUES = 20  # that one catalogue leads to, directly and through others
QUERIES, QUERY = 8, 200  # requests that an AI Catalog names for a skill, and characters of one
_WANTED = '{"skills": [{"name", "type": "skill-md" or "archive", "description", "url", "digest"}]}'


class _Document(NamedTuple):
    """A file of the skill `name` at `path`, or an archive of it if `path` is empty."""

    name: str
    path: str
    url: str
    digest: str = ""


class PublishedSource:
    """The same interface as `ArchiveSource`, over the address of an archive, of an index, or of a site's `/.well-known`
    with an index of any version, over `npm:PACKAGE`, whose `commit` is its version, or over `mcp:SERVER`, which `ask`
    asks; the id of an entry is its path. In the tree of an index, each skill has a folder with its name.

    Entering it fetches the archive, or the index and the manifest or archive of each skill; FetchFailed if the archive
    or the index cannot be read. The other files of a skill are fetched when they are read. `left_out` are the skills of
    the index that cannot be read, by name; IntegrityMismatch is the reason for bytes that differ from their digest.
    `leads` raises an error for an address that nothing may be fetched from, also after a redirect.
    `queries` are requests that the index names for a skill, by its name.
    """

    tree = ""

    def __init__(
        self,
        url: str,
        version: str = "",
        *,
        offline: bool = False,
        seconds: float = SECONDS,
        ask: Ask | None = None,
        leads: Callable[[str], object] | None = None,
    ) -> None:
        self._ask, self._leads = ask, leads or (lambda _url: None)
        self.url, self._version, self._offline, self._seconds = url, version, offline, seconds
        self.commit = ""
        self._documents: dict[str, _Document] = {}
        self._files: dict[str, bytes] = {}
        self._archives: dict[str, ArchiveSource] = {}
        self.entries: tuple[TreeEntry, ...] = ()
        self.left_out: dict[str, KernelError] = {}
        self.queries: dict[str, tuple[str, ...]] = {}

    def __enter__(self) -> Self:
        if self._offline:
            message = f"{self.url!r} is on the network"
            raise FetchFailed(message, hint="leave --offline out", reason="network")
        with ExitStack() as stack:
            if self.url.startswith("npm:"):
                entries = self._unpacked(stack, "", self._package(self.url.removeprefix("npm:")))
            elif self.url.startswith("mcp:"):
                skills = self._asked("skills", {})["skills"][:COUNT_LIMIT]
                names = [str(row.get("uri")).removesuffix("/SKILL.md").rpartition("/")[2] for row in skills]
                rows = [{**row, "name": name} for name, row in zip(names, skills, strict=True)]
                entries = tuple(self._of_index(stack, self.url, rows))
            elif is_archive(self.url):
                entries = self._unpacked(stack, "", self._fetched(self.url, ARCHIVE_LIMIT))
            else:
                entries = tuple(self._of_index(stack, *self._index()))
            self.entries = tuple(sorted(entries, key=lambda entry: entry.path))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)

    def contents(self, oids: Iterable[str], *, each: int, total: int) -> Mapping[str, bytes]:
        """The files by id. Refused over `each` or `total` bytes, FetchFailed if a file cannot be fetched."""
        files: dict[str, bytes] = {}
        packed: dict[str, list[str]] = {}
        ids, room = tuple(dict.fromkeys(oids)), total
        too_large = Refused("the files are too large together", hint="name fewer skills", reason="too-large")
        for document, data in self._all_of(self._documents[oid] for oid in ids if oid in self._documents):
            if isinstance(data, KernelError):
                raise data
            files[f"{document.name}/{document.path}"] = data
            room -= len(data)
            if room < 0:
                raise too_large
        for oid in ids:
            if oid not in files:
                packed.setdefault("" if "" in self._archives else oid.partition("/")[0], []).append(oid)
        for name, group in packed.items():
            above = f"{name}/" if name else ""
            inner = self._archives[name].contents((oid.removeprefix(above) for oid in group), each=each, total=total)
            files |= {above + path: data for path, data in inner.items()}
        if any(len(data) > each for data in files.values()) or sum(map(len, files.values())) > total:
            raise too_large
        return files

    def fingerprint(self, entry: TreeEntry) -> str:
        """A digest that is equal for equal contents; empty for an entry that is not a blob."""
        if entry.kind != "blob":
            return ""
        data = self.contents([entry.oid], each=ARCHIVE_LIMIT, total=ARCHIVE_LIMIT)[entry.oid]
        return hashlib.sha256(data).hexdigest()

    def _package(self, name: str) -> bytes:
        """The archive of the package, with the registry's digest; without a version, of the newest one. The registry
        is the one that the person's npm uses for it; a project's own settings do not count."""
        keys = [f"{name.partition('/')[0]}:registry", "registry"] if name.startswith("@") else ["registry"]
        words = ["npm", "config", "get", *keys]
        try:
            done = subprocess.run(words, cwd=Path.home(), capture_output=True, text=True, timeout=SECONDS, check=True)
        except (OSError, subprocess.SubprocessError) as error:
            raise FetchFailed("npm does not say which registry it uses", hint="install npm, or check it") from error
        values = (line.rpartition("=")[2].strip() for line in done.stdout.splitlines())
        registry = next((value.rstrip("/") for value in values if value.startswith("http")), "")
        page = f"{registry}/{quote(name, safe='@')}"
        try:
            whole = json.loads(self._fetched(page, INDEX_LIMIT))
            version = self._version or whole["dist-tags"]["latest"]
            dist = whole["versions"][whole["dist-tags"].get(version, version)]["dist"]
            method, _, digest = dist["integrity"].partition("-")
            wanted, address = base64.b64decode(digest), _allowed(urljoin(page, dist["tarball"]), page)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            message = f"{registry} has no {name!r} {self._version}".rstrip()
            raise FetchFailed(message, hint="check its name and version", reason="ref") from error
        data = self._fetched(address, ARCHIVE_LIMIT)
        if method != "sha512" or hashlib.sha512(data).digest() != wanted:
            message = f"{address!r} is not what the registry says"
            raise IntegrityMismatch(message, hint="it was changed on its way or by its owner; ask its owner")
        self.commit = whole["dist-tags"].get(version, version)
        return data

    def _index(self) -> tuple[str, list[Any]]:
        """The address of the index, and its entries."""
        is_named = self.url.endswith(".json")
        places = [self.url] if is_named else [f"{self.url}/{index}" for index in INDEXES]
        problems: list[FetchFailed] = []
        for index in places:
            try:
                data = self._fetched(index, INDEX_LIMIT)
                break
            except FetchFailed as error:
                problems.append(error)
        else:
            raise problems[0]
        whole, rows = self._rows(index, data)
        if "skills" in whole:
            return index, whole["skills"]
        skills = [*islice(self._of_catalogue(index, rows, {index}), COUNT_LIMIT + 1)]
        if len(skills) > COUNT_LIMIT:
            hint = "install from one of its catalogues"
            raise FetchFailed(f"{index!r} leads to over {COUNT_LIMIT} skills", hint=hint)
        return index, skills

    @staticmethod
    def _rows(index: str, data: bytes) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """The document of an index, and its entries; FetchFailed if it is none or too large."""
        try:
            whole = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise FetchFailed(f"{index!r} is not JSON", hint=f"it should hold {_WANTED}") from error
        skills = whole.get("skills", whole.get("entries")) if isinstance(whole, dict) else None
        rows = [skill for skill in skills if isinstance(skill, dict)] if isinstance(skills, list) else []
        count = sum(len(row["files"]) for row in rows if isinstance(row.get("files"), list))
        if not isinstance(skills, list) or len(skills) > COUNT_LIMIT or count > FILES_LIMIT:
            message = f"{index!r} is not an index of up to {COUNT_LIMIT} skills and {FILES_LIMIT} files"
            raise FetchFailed(message, hint=f"it should hold {_WANTED}")
        return whole, rows

    def _of_catalogue(self, index: str, rows: Iterable[dict[str, Any]], seen: set[str]) -> Iterator[dict[str, Any]]:
        """The skills among the entries of an AI Catalog and of those that it leads to, which are added to `seen`; each
        is called as the end of its identifier."""
        for row in rows:
            identifier, media = (clean(str(row.get(key, "")), lines=False)[:200] for key in ("identifier", "type"))
            base, _, parameters = media.partition(";")
            if base.strip().lower() == _CATALOGUE and isinstance(row.get("url"), str):
                try:
                    inner = _allowed(urljoin(index, row["url"]), index)
                    if inner not in seen and len(seen) <= CATALOGUES:
                        seen.add(inner)
                        nested = self._rows(inner, self._fetched(inner, INDEX_LIMIT))[1]
                        yield from self._of_catalogue(inner, nested, seen)
                    elif inner not in seen:
                        message = f"{index!r} leads to over {CATALOGUES} catalogues"
                        raise FetchFailed(message, hint="install from that catalogue itself")
                except (KernelError, ValueError) as error:
                    why = error if isinstance(error, KernelError) else FetchFailed(str(error), hint="tell its owner")
                    self.left_out[identifier] = why
                continue
            kind = _MEDIA.get(base.strip().lower())
            if kind is None or (base.strip().lower() == "text/markdown" and "agent-skills" not in parameters):
                why = FetchFailed(f"it is {media!r} and not a skill", hint="only skills are read", reason="no-skill")
                self.left_out[identifier] = why
                continue
            name = identifier.rpartition(":")[2].lower()
            queries = row.get("representativeQueries")
            texts = [query for query in queries if isinstance(query, str)] if isinstance(queries, list) else []
            self.queries[name] = tuple(clean(text, lines=False) for text in texts if 0 < len(text) <= QUERY)[:QUERIES]
            yield {"name": name, "type": kind, "url": row.get("url"), "digest": "", "index": index}

    def _of_index(self, stack: ExitStack, index: str, skills: list[Any]) -> Iterator[TreeEntry]:
        """The entries of all skills that can be read."""
        listed: dict[str, list[_Document]] = {}
        for at, skill in enumerate(skills):
            name = clean(str(skill.get("name", "")), lines=False)[:80] if isinstance(skill, dict) else ""
            try:
                if name in listed:
                    raise FetchFailed(f"{index!r} has two skills called {name!r}", hint="tell its owner")
                where = skill.get("index", index) if name in self.queries else index
                listed[name] = _documents(skill, name, where, pinned=name not in self.queries)
            except KernelError as error:
                self.left_out[name or f"entry {at}"] = error
        first = [one for documents in listed.values() for one in documents if one.path in {"", "SKILL.md"}]
        room = TOTAL_LIMIT
        for document, data in self._all_of(first):
            above = f"{document.name}/"
            try:
                if isinstance(data, KernelError):
                    raise data
                room -= len(data)
                if room < 0:
                    raise Refused(f"{index!r} publishes over {TOTAL_LIMIT} bytes", hint="tell its owner")
                inner = () if document.path else self._unpacked(stack, document.name, data)
            except KernelError as error:
                self.left_out[document.name] = error
                if room < 0:
                    break
                continue
            yield from (entry._replace(path=above + entry.path, oid=above + entry.oid) for entry in inner)
            files = {above + one.path: one for one in listed[document.name] if one.path}
            self._documents |= files
            folders = {str(folder) for file in files for folder in PurePosixPath(file).parents} - {"."}
            yield from (TreeEntry(path=folder, mode="040000", kind="tree", oid=folder) for folder in folders)
            yield from (TreeEntry(path=file, mode="100644", kind="blob", oid=file) for file in files)

    def _unpacked(self, stack: ExitStack, name: str, data: bytes) -> tuple[TreeEntry, ...]:
        self._archives[name] = stack.enter_context(ArchiveSource(data, name or self.url))
        return self._archives[name].entries

    def _all_of(self, documents: Iterable[_Document]) -> Iterator[tuple[_Document, bytes | KernelError]]:
        """Each document with its bytes, or with the error that keeps it from being read; a few are read ahead."""
        waiting = iter(documents)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            while batch := [*islice(waiting, _AT_ONCE)]:
                yield from zip(batch, pool.map(self._read, batch), strict=True)

    def _read(self, document: _Document) -> bytes | KernelError:
        oid = f"{document.name}/{document.path}"
        if oid not in self._files:
            try:
                data = self._fetched(document.url, DOCUMENT_LIMIT if document.path else ARCHIVE_LIMIT)
            except KernelError as error:
                return error
            digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
            if document.digest not in {"", digest}:
                message = f"{document.url!r} is not what the index says: {digest}"
                return IntegrityMismatch(message, hint="it was changed on its way or by its owner; ask its owner")
            if document.name in self.queries and data[:200].lstrip()[:1] == b"<":
                return FetchFailed(f"{document.url!r} is a web page and not a skill", hint="tell its owner")
            if not document.path:
                return data
            self._files[oid] = data
        return self._files[oid]

    def _asked(self, operation: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer of the MCP server. Refused for an answer that is too large."""
        if self._ask is None:
            raise FetchFailed(f"{self.url!r} cannot be asked here", hint="run it in a project")
        answer = self._ask(self.url.removeprefix("mcp:"), operation, params)
        if answer.get("truncated"):
            raise Refused(f"the answer of {self.url!r} is too large", hint="tell its owner", reason="too-large")
        return answer

    def _fetched(self, url: str, limit: int) -> bytes:
        if self.url.startswith("mcp:"):
            contents = self._asked("read", {"uri": url})["contents"]
            item = contents[0] if len(contents) == 1 else {}
            data: object = item.get("text", item.get("blob"))
            with suppress(ValueError):  # text that is not Unicode, or not base64
                if isinstance(data, str):
                    return data.encode() if "text" in item else base64.b64decode(data)
            raise FetchFailed(f"{self.url!r} sends no file for {url!r}", hint="tell its owner")
        self._leads(url)
        parts = urlsplit(url)
        if parts.scheme == "https":
            return fetch(self._seconds, url, limit, self._leads)
        page = get(url, [parts.netloc], self._seconds, limit)  # http is for servers of this machine only
        self._leads(page.url)
        return page.data


def is_archive(url: str) -> bool:
    return urlsplit(url).path.lower().endswith((".skill", ".zip", ".tar", ".tar.gz", ".tgz"))


def _documents(skill: object, name: str, index: str, *, pinned: bool) -> list[_Document]:
    """The documents of an entry of an index, which has digests if it is `pinned`; FetchFailed or Refused if the entry
    cannot be used."""
    if not isinstance(skill, dict) or not NAME.fullmatch(name) or skill["name"] != name:
        raise FetchFailed(f"an entry of {index!r} has no name that a skill can have", hint="tell its owner")
    if index.startswith("mcp:"):  # SEP-2640
        above, resources = str(skill["uri"]).removesuffix("SKILL.md"), skill.get("resources")
        documents: list[_Document] = []
        for row in resources if isinstance(resources, list) else ():
            uri, sha256 = (str(row.get(key)) if isinstance(row, dict) else "" for key in ("uri", "digest"))
            path = unquote(uri.removeprefix(above)) if uri.startswith(above) else ""
            is_plain = path.isprintable() and len(path) <= 1_000 and "\\" not in path
            if not is_plain or {"", ".", ".."} & {*path.split("/")} or not _DIGEST.fullmatch(sha256):
                message = f"a file of {name!r} of {index!r} has no digest or no path inside the skill"
                raise FetchFailed(message, hint="tell its owner")
            documents.append(_Document(name, path, uri, sha256))
        if "SKILL.md" not in {document.path for document in documents}:
            message = f"{index!r} does not list the files of {name!r}"
            raise FetchFailed(message, hint="only a skill with a list of its files and their digests can be installed")
        return documents
    if isinstance(files := skill.get("files"), list):  # version 0.1.0
        texts = [path for path in files if isinstance(path, str) and path.isprintable() and len(path) <= 1_000]
        paths = [path for path in texts if "\\" not in path and not {"", ".", ".."} & {*path.split("/")}]
        if len(paths) != len(files) or "SKILL.md" not in paths:
            message = f"the files of {name!r} in {index!r} are not paths inside it with a SKILL.md"
            raise FetchFailed(message, hint="tell its owner")
        return [_Document(name, path, urljoin(index, quote(f"{name}/{path}"))) for path in dict.fromkeys(paths)]
    kind, address, digest = (skill.get(key) for key in ("type", "url", "digest"))
    if kind not in {"skill-md", "archive"} or not isinstance(address, str) or not isinstance(digest, str):
        message = f"the entry {name!r} of {index!r} is neither a skill-md nor an archive with url and digest"
        raise FetchFailed(message, hint=f"it should hold {_WANTED}")
    if pinned and not _DIGEST.fullmatch(digest):
        raise FetchFailed(f"the digest of {name!r} in {index!r} is not a SHA-256", hint="tell its owner")
    try:
        url = _allowed(urljoin(index, address), index)
    except ValueError as error:
        raise FetchFailed(f"the address of {name!r} in {index!r} cannot be read", hint="tell its owner") from error
    return [_Document(name, "SKILL.md" if kind == "skill-md" else "", url, digest)]


def _allowed(url: str, index: str) -> str:
    """`url`, if an index may name it: at its own host, or over https at any host that is not a private address."""
    there, here = urlsplit(url), urlsplit(index)
    if (there.scheme, there.netloc) == (here.scheme, here.netloc):
        return url
    host = there.hostname or ""
    try:
        is_public = ipaddress.ip_address(host).is_global
    except ValueError:
        is_public = "." in host and not host.endswith((".local", ".internal", ".localhost"))
    if there.scheme != "https" or "@" in there.netloc or not is_public:
        message = f"{index!r} leads to {clean(url, lines=False)[:200]!r}"
        raise Refused(
            message, hint="an index may lead to its own host or to a public one over https", reason="redirect"
        )
    return url
