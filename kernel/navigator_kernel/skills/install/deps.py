"""The services that the skill commands use."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self

from navigator_kernel.errors import FetchFailed, KernelError, NotFound
from navigator_kernel.ports import NullAudit
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.ports import Audit, Clock, Consents, Writer
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.mapping import Row, SkillMapping
    from navigator_kernel.skills.source.reading import Tree
    from navigator_kernel.skills.source.rules import Rules
    from navigator_kernel.values.resource import Diagnostic, SkillDef


class Scanner(Protocol):
    """Scans skills for dangerous content. A finding of level `error` blocks."""

    def __call__(self, skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic]: ...

    def start(self) -> None:
        """Gets ready while something else is waited for."""

    def ahead(self, skills: Sequence[tuple[SkillDef, Mapping[str, bytes]]]) -> None:
        """Begins to scan many skills at the same time."""

    def close(self) -> None: ...


class SearchSpace(NamedTuple):
    """The `skills`, the names that the router finds for a query, best first, and the certain ones."""

    skills: Sequence[SkillDef]
    names: Sequence[str]
    sure: Collection[str]


class InstallDeps:
    """The services that a change of the installed skills may use. Each property is opened when a command needs it; here
    they are empty, and `bootstrap.lifecycle` opens those of a project.

    `seen` writes the page of skills that were seen in sources. `progress` gets two counts: the skills that were looked
    at, and all.
    """

    def __init__(self, *, writer: Writer, clock: Clock, mapping: SkillMapping, seen: Writer | None = None) -> None:
        self.writer, self.clock, self.mapping, self.seen = writer, clock, mapping, seen
        self.progress: Callable[[int, int], object] | None = None

    @cached_property
    def scanner(self) -> Scanner | None:
        """None if nothing scans, which is not the same as no findings."""
        return None

    @cached_property
    def repositories(self) -> RepoCache | None:
        """The cache of fetched repositories."""
        return None

    @cached_property
    def consents(self) -> Consents | None:
        """What the person agreed to by typing a command."""
        return None

    @cached_property
    def audit(self) -> Audit:
        return NullAudit()

    @cached_property
    def private(self) -> frozenset[str]:
        """The hosts that may be asked with the person's own credentials."""
        return frozenset()

    @property
    def rules(self) -> Sequence[Rules]:
        """The rules of the policy files, which every installed skill must satisfy."""
        return ()

    @cached_property
    def reserved(self) -> Iterable[str]:
        """The names that no skill may look like."""
        return ()

    def seek(self, _query: str) -> SearchSpace | None:
        """What the router finds for a query; None if there is no router."""
        return None

    def ask_server(self, server: str, _operation: str, _params: Mapping[str, str]) -> Mapping[str, Any]:
        """The answer of a configured MCP server; ConsentNeeded if the person did not agree to it."""
        raise NotFound(f"no MCP server is called {server!r}", hint="navigator mcp list")

    @property
    def agreed(self) -> frozenset[str]:
        """The subjects of all consents."""
        return frozenset(self.consents.subjects()) if self.consents is not None else frozenset()

    def without_traces(self) -> Self:
        """The services for a command that must leave no trace."""
        plain = copy.copy(self)
        plain.repositories = plain.seen = None
        return plain

    def close(self) -> None:
        """Ends the processes of the scanner, if it was used."""
        if scanner := vars(self).get("scanner"):
            scanner.close()

    def observe(self, rows: Sequence[Row]) -> str:
        """Adds `rows` to the person's page of known skills; returns the reason if that fails: an install goes on."""
        try:
            if self.seen is not None:
                self.mapping.observe(rows, self.seen)
        except KernelError as error:
            return clean(f"the mapping was not updated: {error.message}", lines=False)
        return ""


@contextmanager
def open_source_tree(
    source: Source, deps: InstallDeps, options: InstallOptions, *, install: bool = False
) -> Iterator[Tree]:
    """Opens the tree of `source` as a context, to install skills or only to list them. Where git finds no repository,
    it is the tree of the skills that a site publishes below that address, if it does. A source that the rules allow
    leads to no other one; Refused before it is read if they do not allow it to `install`."""
    from navigator_kernel.adapters.sources.git_process import host_of
    from navigator_kernel.skills.source.address import site_below
    from navigator_kernel.skills.source.reading import load_for_change, load_for_look, open_source
    from navigator_kernel.skills.source.rules import refuse_source

    leads = None
    if rules := deps.rules:
        if install:
            refuse_source(rules, source.url)
        leads = partial(refuse_source, [rule for rule in rules if rule.sources is not None and rule.allows(source.url)])
    if install and deps.scanner is not None:
        deps.scanner.start()
    auth = options.auth or host_of(source.url) in deps.private
    meanwhile = load_for_change if install else load_for_look
    with ExitStack() as stack:
        cache, ask = deps.repositories, deps.ask_server
        tree = open_source(
            source, cache=cache, offline=options.offline, auth=auth, meanwhile=meanwhile, ask=ask, leads=leads
        )
        try:
            opened = stack.enter_context(tree)
        except FetchFailed as error:
            if error.data.get("reason") != "no-repository" or (site := site_below(source)) is None:
                raise
            try:
                tree = open_source(site, offline=options.offline, leads=leads)
                opened = stack.enter_context(tree)
            except KernelError:
                error.hint += f"; no skills are published at {site.url!r} either, https://HOST asks the whole site"
                raise error from None
        yield opened
