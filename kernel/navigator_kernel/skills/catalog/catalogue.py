"""All resources of all roots in one list; a changed file is read again (REG-1..9, CTX-2..5)."""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock, local
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.errors import KernelError, NotLoadable, unknown_skill
from navigator_kernel.skills.catalog.aliases import skill_folder, with_sidecar
from navigator_kernel.skills.catalog.listing import INNER, Listing, Sidecars, Stamp
from navigator_kernel.text import clean, fold, suggestions
from navigator_kernel.values.owner import looked_up
from navigator_kernel.values.resource import Diagnostic, ResourceType, SkillDef

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from navigator_kernel.adapters.stores.manifest_store import ManifestStore
    from navigator_kernel.skills.catalog.executor import SkillExecutor
    from navigator_kernel.skills.catalog.listing import Root
    from navigator_kernel.values.standing import Standing

FILE_LIMIT = 1024 * 1024  # bytes of one SKILL.md
LARGE = 500  # resources above which a `stat` of each takes longer than choosing one
MOST_WORDS = 12  # of a text that names skills
NEAR = 0.8  # similarity from which a word is a name with a typo
MANY = 16  # files to read from which it pays to load the results of an earlier process
KEPT_AT = 16  # files read from disk from which the results are stored for the next process


class ResourceCatalogue(Struct):
    """Implements `ports.Catalogue`. Roots come in order of precedence: the first resource of a name wins.

    `disabled` returns the names that a person switched off, `shipped` maps names to the digests that this release
    ships, `kept` is used if many files would have to be read, `agreed` returns the subjects that the person agreed to.
    Several threads may use it; `glance` applies to the calling thread.
    """

    roots: tuple[Root, ...]
    disabled: Callable[[], frozenset[str]] = frozenset
    shipped: Mapping[str, str] = field(default_factory=dict)
    kept: ManifestStore | None = None
    agreed: Callable[[], Collection[str]] = tuple
    _read: dict[str, tuple[Stamp, SkillDef | Diagnostic]] = field(default_factory=dict)
    _key: tuple[object, ...] | None = None
    _found: dict[str, SkillDef] = field(default_factory=dict)
    _folded: dict[tuple[ResourceType, str], SkillDef] = field(default_factory=dict)
    _notes: list[Diagnostic] = field(default_factory=list)
    _listings: dict[Root, Listing] = field(default_factory=dict)
    _sidecars: tuple[Sidecars, ...] = ()
    _lock: Any = field(default_factory=RLock)
    _thread: Any = field(default_factory=local)

    def __post_init__(self) -> None:
        self._listings = {
            root: Listing(
                root.path,
                folders=root.type == "skill",
                markdown=root.markdown,
                groups=root.level in {"project", "user"},
            )
            for root in self.roots
        }
        self._sidecars = tuple(Sidecars(root.path / INNER) for root in self.roots if root.type == "skill")

    @contextmanager
    def glance(self, above: int = LARGE) -> Iterator[None]:
        """Inside it, the last reading of more than `above` resources counts, unless one came or went: one `stat` per
        root and not one per file, for callers that ask often and look again soon."""
        before = getattr(self._thread, "is_glancing", False)
        self._thread.is_glancing = len(self._found) > above
        try:
            yield
        finally:
            self._thread.is_glancing = before

    def exists(self, namespace: str) -> bool:
        resource = self._all().get(namespace)
        return resource is not None and resource.enabled

    def list_resources(self, *, enabled_only: bool = True) -> tuple[SkillDef, ...]:
        """All resources by name, disabled ones only on request (REG-4)."""
        resources = self._all().values()
        return tuple(sorted((r for r in resources if r.enabled or not enabled_only), key=lambda r: (r.type, r.name)))

    def find(self, name: str, type: ResourceType = "skill") -> SkillDef | None:
        """Finds an enabled resource by name, case-folded name, then alias."""
        exact = self._all().get(f"{type}:{name}")
        return exact if exact is not None and exact.enabled else self._folded.get((type, fold(name)))

    def suggest(self, name: str, k: int = 3) -> tuple[str, ...]:
        """The `k` most similar names, most similar first."""
        from difflib import SequenceMatcher  # 5 ms, needed only for an unknown name

        wanted = fold(name)
        names = [r.name for r in self.list_resources() if r.type == "skill"]

        def nearness(other: str) -> tuple[bool, float]:
            folded = fold(other)
            return wanted in folded or folded in wanted, SequenceMatcher(None, wanted, folded).ratio()

        near = sorted(names, key=nearness, reverse=True)
        return tuple(other for other in near[:k] if nearness(other)[0] or nearness(other)[1] >= 0.5)

    def named(self, text: str) -> Sequence[tuple[str, str]]:
        """The words of a short text that name skills, each with the skill, in their order; what is nearly a name only
        if nothing is one."""
        words = [bare for word in text.split() if (bare := word.strip(",.;:!?，。；：！？、“”\"'`()（）"))]
        named: list[tuple[str, str]] = []
        at = 0
        while at < len(words) <= MOST_WORDS:
            parts = [" ".join(words[at : at + size]) for size in range(min(3, len(words) - at), 0, -1)]
            part, skill = next(((part, skill) for part in parts if (skill := self.find(part)) is not None), ("", None))
            named += [(part, skill.name)] if skill is not None else []
            at += part.count(" ") + 1
        if named or len(words) > MOST_WORDS:
            return named
        names = [resource.name for resource in self.list_resources() if resource.type == "skill"]
        near = ((part, suggestions(part, names, 1, NEAR)) for part in (" ".join(words), *words) if len(part) > 3)
        return [(part, best[0]) for part, best in near if best][:1]

    def create_executor(self, namespace: str) -> SkillExecutor:
        """Creates an executor; SkillNotFound or NotLoadable (CAN-2, CAN-3)."""
        resource = self._all().get(namespace)
        name = namespace.partition(":")[2]
        if resource is None or not resource.enabled:
            for note in self._notes:
                file = Path(note.path)
                broken = file.parent.name if file.name.lower() == "skill.md" else file.stem
                if note.level == "error" and broken == name:
                    raise NotLoadable(note.message, hint="navigator doctor lists the problems", resource=namespace)
            raise unknown_skill(name, self.suggest(name))
        return self._executor(resource)

    def standing(self, skill: SkillDef) -> Standing:
        """How far the person trusts `skill` as it is now; `unknown` if it cannot be read."""
        try:
            return self._executor(skill).standing
        except KernelError:
            return "unknown"

    def _executor(self, skill: SkillDef) -> SkillExecutor:
        from navigator_kernel.skills.catalog.executor import SkillExecutor  # not needed to list or to find skills

        return SkillExecutor(skill=skill, agreed=self.agreed, shipped=self.is_shipped(skill))

    def count(self) -> int:
        """The number of skills, from the folders' times without reading files (STA-2, X-13)."""
        listings = [self._listings[root] for root in self.roots if root.type == "skill"]
        return len({name for listing in listings for name in listing.names()})

    def count_own(self) -> int:
        """The number of skills that the person installed and has switched on (X-44): `count` without those that are
        switched off, and without the names that this release ships, wherever they are."""
        levels = (self._listings[root] for root in self.roots if root.type == "skill" and root.level != "shipped")
        names = {name for listing in levels for name in listing.names()}
        return len(names - self.disabled() - self.shipped.keys())

    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The diagnostics of reading, unusable files first."""
        resources = self._all().values()
        return tuple(self._notes) + tuple(note for resource in resources for note in resource.diagnostics)

    def is_shipped(self, skill: SkillDef) -> bool:
        """Whether the skill's files equal those that this release ships."""
        from navigator_kernel.skills.catalog.receipts import folder_digest

        own = self.shipped.get(skill.name)
        return skill.folder is not None and own is not None and folder_digest(skill.folder) == own

    def _all(self) -> dict[str, SkillDef]:
        """Reads the resources again, once for a message: one `stat` per file, and only changed files are read."""
        return looked_up((id(self), "resources"), self._all_alone)

    def _all_alone(self) -> dict[str, SkillDef]:
        with self._lock:
            disabled = self.disabled()
            is_glancing = getattr(self._thread, "is_glancing", False)
            known = is_glancing and self._key is not None and self._key[2] == disabled
            if known and all(listing.is_as_it_was() for listing in self._listings.values()):
                return self._found
            files = tuple((root, *found) for root in self.roots for found in self._listings[root].files())
            sidecars = tuple(path for held in self._sidecars for path in held.files())
            key = (files, sidecars, disabled)
            if key != self._key:
                self._gather(files, {skill_folder(path): path for path, _ in sidecars}, disabled)
                self._folded = {}  # a name wins over an alias
                enabled = [resource for resource in self._found.values() if resource.enabled]
                for resource in enabled:
                    self._folded.setdefault((resource.type, fold(resource.name)), resource)
                for resource in enabled:
                    for alias in resource.aliases:
                        self._folded.setdefault((resource.type, fold(alias)), resource)
                self._key = key
            return self._found

    def _gather(
        self, files: Sequence[tuple[Root, str, Stamp]], sidecars: Mapping[str, str], disabled: frozenset[str]
    ) -> None:
        self._found, self._notes = {}, []
        self._remember(files)
        seen: dict[tuple[object, ...], str] = {}
        for root, path, stamp in files:
            known = seen.setdefault((root.type, root.level, stamp), path)
            if known != path and os.path.realpath(known) == os.path.realpath(path):
                continue  # a link to a file that was read already
            entry = self._one(root, path, stamp)
            if isinstance(entry, Diagnostic):
                self._notes.append(entry)
                continue
            if sidecar := sidecars.get(path.rpartition(os.sep)[0]):
                entry = with_sidecar(entry, Path(sidecar))
            above, _, group = path.rpartition(os.sep)[0].rpartition(os.sep)[0].rpartition(os.sep)
            if entry.folder is not None and above == str(root.path):
                entry = replace(entry, aliases=(*entry.aliases, f"{group}:{entry.name}"))
            if root.plugin:
                whole = f"{root.plugin}:{entry.name}"  # as Claude Code names it
                entry = replace(entry, tags=(*entry.tags, *root.words), aliases=(*entry.aliases, whole))
            if entry.name in disabled:
                entry = replace(entry, enabled=False)
            first = self._found.setdefault(entry.namespace, entry)
            if _told(first) != _told(entry):  # the same skill, copied for another agent, needs no warning
                text = f"{entry.namespace} is already read from {first.path}"
                self._notes.append(Diagnostic(code="shadowed", level="warning", path=path, message=text))

    def _remember(self, files: Sequence[tuple[Root, str, Stamp]]) -> None:
        """If many files are new to this process, takes what an earlier one read and stores the rest for the next
        one."""
        new = self._new(files)
        if self.kept is None or len(new) < MANY:
            return
        roots = {path: root for root, path, _ in new}
        for path, (stamp, skill) in self.kept.load().items():
            root = roots.get(path)
            if root is not None and (skill.level, skill.type) == (root.level, root.type):
                self._read[path] = stamp, skill
        entries = [self._one(*file) for file in self._new(files)]
        if sum(isinstance(entry, SkillDef) for entry in entries) >= KEPT_AT:
            stamped = ((path, stamp, self._read[path][1]) for _, path, stamp in files)
            self.kept.save((path, stamp, entry) for path, stamp, entry in stamped if isinstance(entry, SkillDef))

    def _new(self, files: Iterable[tuple[Root, str, Stamp]]) -> list[tuple[Root, str, Stamp]]:
        return [file for file in files if (held := self._read.get(file[1])) is None or held[0] != file[2]]

    def _one(self, root: Root, path: str, stamp: Stamp) -> SkillDef | Diagnostic:
        known = self._read.get(path)
        if known is not None and known[0] == stamp:
            return known[1]
        entry = _read(root, Path(path), stamp)
        self._read[path] = (stamp, entry)
        return entry


def _told(skill: SkillDef) -> tuple[str, ...]:
    """What two copies of a skill have in common."""
    return skill.description, skill.sop, skill.command


def _read(root: Root, path: Path, stamp: Stamp) -> SkillDef | Diagnostic:
    """Reads a file; an unusable one is a diagnostic with a code, never an exception (REG-9)."""
    from navigator_kernel.adapters.files.project_files import refuse_link
    from navigator_kernel.skills.formats.manifest import read_manifest  # most commands use what an earlier one read

    folder = path.parent if path.name.lower() == "skill.md" else None
    try:
        if stamp[1] > FILE_LIMIT:
            raise NotLoadable(f"{str(path)!r} is over 1 MiB", reason="too-large")
        is_link = False
        with suppress(OSError):  # without one more `stat` for each of many files
            is_link = bool(path.readlink())
        if is_link:
            refuse_link(path, folder or (root.path.parents[1] if root.level == "project" else None))
        return read_manifest(path.read_bytes(), path=path, folder=folder, level=root.level, type=root.type)
    except KernelError as error:
        code = str(error.data.get("reason", error.code))
        return Diagnostic(code=code, level="error", path=str(path), message=clean(error.message, lines=False))
    except OSError as error:
        return Diagnostic(code="unreadable", level="error", path=str(path), message=clean(str(error), lines=False))
