"""The services that the skill commands use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from navigator_kernel.errors import KernelError
from navigator_kernel.ports import NullAudit
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.ports import Audit, Clock, Consents, Writer
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.mapping import Row, SkillMapping
    from navigator_kernel.skills.source.reading import Tree
    from navigator_kernel.values.resource import Diagnostic, SkillDef

# A finding of level `error` blocks; None if no scanner ran, which is not the same as no findings.
Scan: TypeAlias = "Callable[[SkillDef, Mapping[str, bytes]], Sequence[Diagnostic] | None]"


class SearchSpace(NamedTuple):
    """The `skills`, the names that the router finds for a query, best first, and the certain ones."""

    skills: Sequence[SkillDef]
    names: Sequence[str]
    sure: Collection[str]


Seek: TypeAlias = Callable[[str], "SearchSpace | None"]  # the router's results for a query


class InstallDeps(NamedTuple):
    """The services that a change of the installed skills may use.

    `prepare` starts `scan` early, `ahead` begins to scan many skills at the same time, and `finish` ends both.
    `private` are hosts that may be asked with the person's own credentials; `reserved` are names that no skill may look
    like; `seek` returns what the router finds for a query; `consents` stores what the person agreed to by typing a
    command, `audit` records what was done. `seen` writes the page of skills that were seen in sources. `progress` gets
    two counts: the skills that were looked at, and all.
    """

    writer: Writer
    clock: Clock
    mapping: SkillMapping
    scan: Scan | None = None
    prepare: Callable[[], object] = bool
    ahead: Callable[[Sequence[tuple[SkillDef, Mapping[str, bytes]]]], object] = len
    finish: Callable[[], object] = bool
    cache: Callable[[], RepoCache | None] = lambda: None
    private: Callable[[], frozenset[str]] = frozenset
    reserved: Callable[[], Iterable[str]] = tuple
    seek: Seek = lambda _query: None
    consents: Callable[[], Consents | None] = lambda: None
    audit: Callable[[], Audit] = NullAudit
    seen: Writer | None = None
    progress: Callable[[int, int], object] = lambda _done, _all: None

    def observe(self, rows: Sequence[Row]) -> str:
        """Adds `rows` to the person's page of known skills; returns the reason if that fails: an install goes on."""
        try:
            if self.seen is not None:
                self.mapping.observe(rows, self.seen)
        except KernelError as error:
            return clean(f"the mapping was not updated: {error.message}", lines=False)
        return ""


def open_source_tree(source: Source, deps: InstallDeps, options: InstallOptions, *, install: bool = False) -> Tree:
    """Opens the tree of `source` as a context, to install skills or only to list them."""
    from navigator_kernel.adapters.sources.git_process import host_of
    from navigator_kernel.skills.source.reading import open_source, ready_to_change, ready_to_look

    if install:
        deps.prepare()
    auth = options.auth or host_of(source.url) in deps.private()
    ahead = (ready_to_change if install else ready_to_look,)
    return open_source(source, cache=deps.cache(), offline=options.offline, auth=auth, ahead=ahead)
