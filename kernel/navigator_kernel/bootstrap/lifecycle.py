"""Creates the lifecycle port, the only part that may change installed skills."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter, make_private
from navigator_kernel.adapters.stores.project_state import PrivateWriter
from navigator_kernel.bootstrap.consents import open_consents
from navigator_kernel.bootstrap.parts import (
    MAPPING,
    Agreed,
    open_audit,
    open_mapping,
    open_roots,
    open_router,
    state_writer,
    writer_for,
)
from navigator_kernel.bootstrap.places import (
    private_writer,
    project_state,
    shipped_digests,
    shipped_home,
    standing_places,
)
from navigator_kernel.config.settings import load_settings, user_cache, user_state
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.skills.catalog.aliases import other_words
from navigator_kernel.skills.install.deps import InstallDeps, SearchSpace
from navigator_kernel.skills.lifecycle import Lifecycle
from navigator_kernel.text import language_of, warn

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.ports import Audit, Catalogue, Consents
    from navigator_kernel.routing.meaning import SemanticRanker
    from navigator_kernel.skills.install.deps import Scanner, Seek
    from navigator_kernel.values.resource import Level

FOUND = 24  # skills that a search requests from the router
SURE = 0.5  # least confidence for a skill found by meaning alone, and for a good match


def open_lifecycle(root: Path) -> Lifecycle:
    """Opens the port for project, user and shipped skills; the shipped ones only if they are not the project's own."""
    home = Path.home()
    levels: dict[Level, Path] = {"project": root / ".claude" / "skills", "user": home / ".claude" / "skills"}
    agents: dict[Level, Path] = {"project": root / ".agents" / "skills", "user": home / ".agents" / "skills"}
    if shipped_home().skills.resolve() != levels["project"].resolve():
        levels["shipped"] = shipped_home().skills
    own = [folder / name for folder in (home / ".claude", home / ".agents") for name in ("skills", "skills.lock.json")]
    state = project_state(root)
    writer = FolderWriter([*writable("lifecycle", root, standing_places()), *own], within=root)
    return Lifecycle(
        root=root,
        levels=levels,
        agents=agents,
        deps=ProjectDeps(root, writer),
        state=state.folder,
        state_writer=state_writer(state),
        shipped=shipped_digests(),
        agreed=Agreed(),
        roots=lambda: [one for one in open_roots(root) if one.type == "skill"],
    )


class ProjectDeps(InstallDeps):
    """The services of a project, each opened when a command needs it."""

    def __init__(self, root: Path, writer: FolderWriter) -> None:
        seen = private_writer(user_state())
        super().__init__(writer=writer, clock=SystemClock(), mapping=open_mapping(root), seen=seen)
        self.root = root

    @cached_property
    def scanner(self) -> Scanner:
        from navigator_kernel.bootstrap.scanning.scanners import Scanners  # takes 7 ms, and most commands scan nothing

        return Scanners()

    @cached_property
    def repositories(self) -> RepoCache | None:
        """The cache of all projects, in the person's cache folder, never in a project."""
        from navigator_kernel.adapters.sources.repo_cache import RepoCache

        folder = user_cache() / "repos"
        return RepoCache(folder, PrivateWriter(folder, lambda: make_private(folder.parent)))

    @cached_property
    def consents(self) -> Consents:
        return open_consents(self.audit)

    @cached_property
    def audit(self) -> Audit:
        return open_audit(self.root)

    @cached_property
    def private(self) -> frozenset[str]:
        return load_settings(self.root).private

    @cached_property
    def reserved(self) -> Iterable[str]:
        return shipped_digests()

    def seek(self, query: str) -> SearchSpace | None:
        def parts() -> tuple[Catalogue, SemanticRanker]:
            opened = open_router(self.root, load_settings(self.root))
            return opened.catalogue, opened.meaning

        return _sought(parts, query)


def write_seen(root: Path) -> dict[str, Any]:
    """Adds the rows of the person's page to the project's; NotFound if the project has no page (X-42)."""
    from navigator_kernel.skills.source.mapping import SkillMapping

    page = root / "docs" / MAPPING
    if not page.is_file():
        raise NotFound("the project has no docs/skills-mapping.md", hint="navigator init --workstation writes one")
    own = SkillMapping([page])
    before = len(list(own.rows()))
    if (grown := own.grown(open_mapping(root).seen())) is not None:
        writer_for("setup", root).write(page, grown)
    return {"path": str(page), "added": len(list(own.rows())) - before, "changed": grown is not None}


def seek_in(catalogue: Catalogue, meaning: SemanticRanker) -> Seek:
    """A search for skills that uses parts that are already open."""
    return partial(_sought, lambda: (catalogue, meaning))


def _sought(parts: Callable[[], tuple[Catalogue, SemanticRanker]], query: str) -> SearchSpace | None:
    """The skills that the router finds, or None if it cannot be used."""
    try:
        return _space(*parts(), query)
    except KernelError as error:
        warn("searching without the router: %s", error.message)
        return None


def _space(catalogue: Catalogue, meaning: SemanticRanker, query: str) -> SearchSpace:
    """Searches by words of the router's index, for a Chinese query also in English; if they find nothing, by
    meaning."""
    with catalogue.once():
        skills = catalogue.list_resources(enabled_only=False)
    chosen = tuple(one for one in skills if one.type == "skill" and one.implicit and one.enabled)
    more = other_words([query]) if language_of(query) == "zh" else []
    candidates = meaning.by_words(chosen, " ".join([query, *more]), FOUND).candidates
    if not candidates:
        candidates = tuple(one for one in meaning.retrieve(chosen, query, FOUND).candidates if one.confidence >= SURE)
    sure = frozenset(one.name for one in candidates if one.confidence >= SURE)
    return SearchSpace([one for one in skills if one.type == "skill"], [one.name for one in candidates], sure)
