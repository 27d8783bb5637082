"""Opens a source as a tree, and reads the manifests of its skills."""

from __future__ import annotations

import importlib
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.adapters.sources.git import GitSource, TreeEntry
from navigator_kernel.errors import FetchFailed, KernelError, Refused, SkillNotFound
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.skills.formats.plugin_manifests import Elsewhere, read_plugins
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.discover import (
    LINK,
    REGULAR,
    Found,
    candidate_manifests,
    find_skills,
    select_skills,
)
from navigator_kernel.skills.source.gate import FILE_LIMIT
from navigator_kernel.text import clean, lazy_compile, strip_url_credentials
from navigator_kernel.values.resource import Diagnostic, SkillDef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from navigator_kernel.adapters.sources.local import ArchiveSource, FolderSource
    from navigator_kernel.adapters.sources.published import Ask, PublishedSource
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.skills.formats.plugin_parts import PluginParts

    # All have `commit`, `tree`, `entries`, `contents()`, `fingerprint()`
    Tree = GitSource | FolderSource | ArchiveSource | PublishedSource

TOTAL_LIMIT = 512 * 1024 * 1024  # bytes that one command reads


def open_source(
    source: Source,
    *,
    cache: RepoCache | None = None,
    offline: bool = False,
    auth: bool = False,
    meanwhile: Callable[[], object] = bool,
    ask: Ask | None = None,
    leads: Callable[[str], object] | None = None,
) -> AbstractContextManager[Tree]:
    """A context for the tree of `source`; FetchFailed on entry if it cannot be read.

    `cache` keeps what is fetched, `offline` uses no network, `auth` allows the person's own credentials for its host.
    `meanwhile` prepares for later; it is called during each fetch, because git only waits then. `ask` asks an MCP
    server. `leads` raises an error for an address that the source must not lead to; with it, git follows no redirect.
    """
    if source.kind in ("folder", "archive"):
        from navigator_kernel.adapters.sources.local import ArchiveSource, FolderSource

        return (FolderSource if source.kind == "folder" else ArchiveSource)(Path(source.url))
    if source.kind == "web":
        from navigator_kernel.adapters.sources.published import PublishedSource

        if source.url.startswith("npm:"):  # its registry is the one that the person's npm uses
            leads = None
        return PublishedSource(source.url, source.ref, offline=offline, ask=ask, leads=leads)
    return GitSource(
        source.url,
        source.ref,
        page=source.page,
        or_head=source.skill != "",
        cache=cache,
        offline=offline,
        auth=auth,
        meanwhile=meanwhile,
        redirects=leads is None,
    )


def load_for_look() -> None:
    with suppress(ImportError):  # the code that needs the module reports the error
        importlib.import_module("navigator_kernel.skills.install.install")


def load_for_change() -> None:
    with suppress(ImportError):
        for name in ("navigator_kernel.skills.install.install", "tinydb", "navigator_kernel.adapters.stores.audit"):
            importlib.import_module(name)


_SUBMODULE = lazy_compile(r"(?m)^[ \t]{0,20}path[ \t]?=[ \t]?(\S.{0,400}?)[ \t]{0,20}$")
_SUBMODULE_URL = lazy_compile(r"(?m)^[ \t]{0,20}url[ \t]?=[ \t]?(\S{1,400})[ \t]{0,20}$")


class SourceReader(Struct):
    """The skills of one open tree; their manifests are read all at once, and only when one is asked for.

    `source` is split into ref and subpath if its URL was the page of a folder; `links` are the small files that
    discovery has read: links that may lead to skills, and manifests of plugins. `notes` are the problems of these
    manifests, `about` the words in them about each plugin. `told` is what was noticed of the files of a skill. `unread`
    are the skills that the tree lists and cannot give, by name, `elsewhere` the plugins in other repositories, `roots`
    the folder and the manifest of each plugin in this one.
    """

    source: Source
    tree: Tree
    found: tuple[Found, ...] = ()
    notes: tuple[Diagnostic, ...] = ()
    about: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    links: Mapping[str, bytes] = field(default_factory=dict)
    told: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    unread: Mapping[str, KernelError] = field(default_factory=dict)
    elsewhere: Mapping[str, Elsewhere] = field(default_factory=dict)
    roots: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    is_read: bool = False
    _manifests: dict[str, SkillDef | KernelError] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.source.kind == "git" and (site := getattr(self.tree, "url", "")):  # see `open_source_tree`
            self.source = Source(kind="web", url=site, label=site)
        if self.source.page and isinstance(self.tree, GitSource):
            self.source = replace(self.source, page="", ref=self.tree.ref, subpath=self.tree.subpath)
        if self.source.skill and isinstance(self.tree, GitSource):
            skill = "" if self.tree.ref else self.source.skill
            self.source = replace(self.source, ref=self.tree.ref, skill=skill)

    def find(self) -> Sequence[Found]:
        """Finds the skills of the tree; SkillNotFound if there are none, or the error of the only one."""
        entries = self.tree.entries
        if self.is_read:
            return self.found
        self.is_read = True
        self.unread = getattr(self.tree, "left_out", {})
        if self.unread and not entries:
            raise next(iter(self.unread.values()))
        subpath = self.source.subpath
        if any(entry.path == subpath and entry.kind == "blob" and entry.mode != LINK for entry in entries):
            subpath = subpath.rpartition("/")[0]  # the folder of a file
        self.source = replace(self.source, subpath=subpath)
        with suppress(Refused):  # if these files are too large, none of them is used
            self.links = self.read(candidate_manifests(entries))
        plugins = read_plugins(entries, self.links)
        unread = [
            Diagnostic(code="not-read", level="warning", path=name, message=error.message)
            for name, error in self.unread.items()
        ]
        self.notes += (*plugins.diagnostics, *unread)
        self.about, self.elsewhere, self.roots = plugins.about, plugins.elsewhere, plugins.roots
        if self.elsewhere:
            text = f"--skill NAME also installs these plugins from other repositories: {', '.join(self.elsewhere)}"
            note = Diagnostic(code="plugin-elsewhere", level="warning", path="marketplace.json", message=text)
            self.notes += (note,)
        if self.elsewhere and not any(entry.path.lower().endswith("skill.md") for entry in entries):
            return self.found  # a marketplace may hold nothing itself
        self.found = find_skills(
            entries,
            top=self.source.base_name,
            subpath=subpath,
            tree=self.tree.tree,
            links=self.links,
            plugins=plugins,
            label=self.source.label,
        )
        self._note_submodules()
        if name := self.source.skill:  # the one that the source's address names
            if name in self.unread:
                raise self.unread[name]
            try:
                self.found = select_skills(self.found, [name], self.named, self.contents, self.is_usable)
            except SkillNotFound as error:
                kinds = "skill" if self.source.kind == "web" else "branch, tag, commit or skill"
                message = f"{self.source.label!r} has no {kinds} called {name!r}"
                raise FetchFailed(message, hint=error.hint, reason="ref") from error
        return self.found

    def _note_submodules(self) -> None:
        """Notes the submodules that lie beside the skills, and so may be skills that the tree does not hold."""
        folders = [skill.folder for skill in self.found]
        above = {"/".join(folder.split("/")[:depth]) for folder in folders for depth in range(folder.count("/") + 1)}
        entries = {entry.path: entry for entry in self.tree.entries}
        inside = self.source.subpath
        modules = [
            path
            for path, entry in entries.items()
            if entry.kind == "commit" and (path.rpartition("/")[0] in above or "skill" in path.lower())
            if not inside or path.startswith(f"{inside}/")
            if not any(f"{path}/".startswith(f"{folder}/") for folder in folders if folder)
        ]
        settings = entries.get(".gitmodules")
        text = self.read([settings.oid])[settings.oid].decode("utf-8", "replace") if modules and settings else ""
        for path in modules:
            section = next((part for part in text.split("[submodule")[1:] if path in _SUBMODULE.findall(part)), "")
            address = next(iter(_SUBMODULE_URL.findall(section)), "")
            whole = urljoin(f"{self.source.url}/", address) if address.startswith("../") else address
            hint = f"navigator install {shown}" if (shown := strip_url_credentials(clean(whole, lines=False))) else ""
            message = f"{clean(path, lines=False)!r} is a submodule, which is not read"
            error = SkillNotFound(message, hint=hint or "install from its own repository", reason="submodule")
            self.unread = {**self.unread, path.rpartition("/")[2]: error}
            self.notes += (Diagnostic(code="not-read", level="warning", path=path, message=message),)

    def place_of(self, word: str) -> tuple[Source, str] | None:
        """The source of the plugin that `word`, `plugin` or `plugin:skill`, names, and the skill there, if it lies in
        another repository. Refused for a place on this machine that a marketplace from elsewhere names."""
        plugin, _, name = word.partition(":")
        if (place := self.elsewhere.get(plugin)) is None or any(skill.name == word for skill in self.found):
            return None
        source = parse_source(place.address, base=Path("/"), ref=place.ref)
        is_here = self.source.kind in {"folder", "archive"} or self.source.url.startswith("file:")
        is_remote = source.kind == "git" or source.url.startswith("npm:")
        if not is_remote or (source.url.startswith("file:") and not is_here):
            raise Refused(f"plugin {plugin!r} names {source.label!r} as its source", hint="tell its owner")
        return replace(source, subpath=place.subpath or source.subpath), name.strip("*")

    def parts_of(self, plugins: Iterable[str]) -> list[PluginParts]:
        """What the plugins bring beside their skills."""
        from navigator_kernel.skills.formats.plugin_parts import plugin_parts

        roots = {plugin: self.roots[plugin] for plugin in plugins if plugin in self.roots}
        entries = {entry.path: entry for entry in self.tree.entries} if roots else {}

        def read(path: str) -> bytes:
            return self.read([entries[path].oid])[entries[path].oid]

        files = [entry.path for entry in entries.values() if entry.mode in (*REGULAR, "040000")]
        parts = (plugin_parts(plugin, *place, frozenset(files), read) for plugin, place in roots.items())
        return [part for part in parts if part is not None]

    def manifest(self, skill: Found) -> SkillDef | KernelError:
        """The manifest, or the error if it cannot be used."""
        if skill.folder not in self._manifests:
            missing = [each for each in self.found if each.folder not in self._manifests]
            blobs, problems = self.read_apart({each.folder: [each.manifest.oid] for each in missing})
            self._manifests |= problems
            self._manifests |= {
                each.folder: _read(each, blobs[each.manifest.oid]) for each in missing if each.folder not in problems
            }
        return self._manifests[skill.folder]

    def manifest_from(self, skill: Found, data: bytes) -> SkillDef:
        """Parses the manifest in `data`; NotLoadable if it cannot be used."""
        if skill.folder not in self._manifests:
            self._manifests[skill.folder] = _read(skill, data)
        manifest = self._manifests[skill.folder]
        if isinstance(manifest, KernelError):
            raise manifest
        return replace(manifest, diagnostics=(*manifest.diagnostics, *self.told.get(skill.folder, ())))

    def named(self, skill: Found) -> str:
        """The declared name, or the folder's name if the manifest cannot be used."""
        manifest = self.manifest(skill)
        return skill.name if isinstance(manifest, KernelError) else manifest.name

    def known(self, skill: Found) -> SkillDef | None:
        """The manifest, if it has been read and can be used."""
        manifest = self._manifests.get(skill.folder)
        return None if isinstance(manifest, KernelError) else manifest

    def is_usable(self, skill: Found) -> bool:
        return not isinstance(self.manifest(skill), KernelError)

    def contents(self, skill: Found) -> frozenset[object]:
        """A value that is equal for skills with equal paths, modes and contents."""
        files = (skill.manifest if entry.path == skill.manifest.path else entry for entry in skill.entries)
        return frozenset((skill.inner(entry), entry.mode, self.tree.fingerprint(entry)) for entry in files)

    def fingerprint(self, oid: str) -> str:
        """A value that is equal for files with equal content."""
        return self.tree.fingerprint(TreeEntry(oid, "100644", "blob", oid))

    def read(self, oids: Iterable[str]) -> Mapping[str, bytes]:
        return self.tree.contents(oids, each=FILE_LIMIT, total=TOTAL_LIMIT)

    def read_apart(self, wanted: Mapping[str, Sequence[str]]) -> tuple[dict[str, bytes], dict[str, KernelError]]:
        """The files of each of `wanted`, and the errors of those that are too large or no longer fit: one of them does
        not keep the others from being read."""
        blobs: dict[str, bytes] = {}
        problems: dict[str, KernelError] = {}
        waiting = [list(wanted)] if wanted else []
        room = TOTAL_LIMIT
        while waiting:
            names = waiting.pop()
            try:
                got = self.tree.contents((oid for name in names for oid in wanted[name]), each=FILE_LIMIT, total=room)
            except Refused as error:
                half = len(names) // 2
                waiting += [names[half:], names[:half]] if half else []
                problems |= {} if half else {names[0]: error}
                continue
            blobs |= got
            room -= sum(map(len, got.values()))
        return blobs, problems


def _read(skill: Found, data: bytes) -> SkillDef | KernelError:
    folder = Path(skill.folder or skill.name)
    try:
        return read_manifest(data, path=Path(skill.manifest.path), folder=folder)
    except KernelError as error:
        return error
