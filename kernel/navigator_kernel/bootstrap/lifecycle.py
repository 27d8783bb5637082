"""Creates the lifecycle port, the only part that may change installed skills."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter, make_private
from navigator_kernel.adapters.stores.project_state import PrivateWriter
from navigator_kernel.bootstrap.places import (
    MAPPING,
    Agreed,
    private_writer,
    shipped_digests,
    shipped_home,
    standing_places,
)
from navigator_kernel.config.settings import policy_files, user_cache, user_state
from navigator_kernel.errors import ConsentNeeded, FetchFailed, KernelError, NotFound
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.skills.catalog.aliases import other_words
from navigator_kernel.skills.install.deps import InstallDeps, Scanner, SearchSpace
from navigator_kernel.skills.lifecycle import Lifecycle
from navigator_kernel.text import language_of, warn

if TYPE_CHECKING:
    from navigator_kernel.adapters.sources.repo_cache import RepoCache
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.ports import Audit, Consents
    from navigator_kernel.skills.source.rules import Rules
    from navigator_kernel.values.resource import Level

FOUND = 24  # skills that a search requests from the router
SURE = 0.5  # least confidence for a skill found by meaning alone, and for a good match


def lifecycle_of(project: Project) -> Lifecycle:
    """Opens the port for project, user and shipped skills; the shipped ones only if they are not the project's own."""
    root, home = project.root, Path.home()

    def marketplace_address(name: str) -> str:
        from navigator_kernel.bootstrap.roots import marketplace

        return marketplace(name)

    levels: dict[Level, Path] = {"project": root / ".claude" / "skills", "user": home / ".claude" / "skills"}
    agents: dict[Level, Path] = {"project": root / ".agents" / "skills", "user": home / ".agents" / "skills"}
    if shipped_home().skills.resolve() != levels["project"].resolve():
        levels["shipped"] = shipped_home().skills
    own = [folder / name for folder in (home / ".claude", home / ".agents") for name in ("skills", "skills.lock.json")]
    writer = FolderWriter([*writable("lifecycle", root, standing_places()), *own], within=root)
    return Lifecycle(
        root=root,
        levels=levels,
        agents=agents,
        deps=ProjectDeps(project, writer),
        state=project.state.folder,
        state_writer=project.state_writer,
        shipped=project.shipped,
        agreed=Agreed(),
        roots=lambda: [one for one in project.roots if one.type == "skill"],
        marketplace=marketplace_address,
    )


class ProjectDeps(InstallDeps):
    """The services of a project, each opened when a command needs it."""

    def __init__(self, project: Project, writer: FolderWriter) -> None:
        seen = private_writer(user_state())
        super().__init__(writer=writer, clock=SystemClock(), mapping=project.mapping, seen=seen)
        self._project = project

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
        return self._project.consents

    @cached_property
    def audit(self) -> Audit:
        return self._project.audit

    @cached_property
    def private(self) -> frozenset[str]:
        return self._project.settings.private

    @property
    def rules(self) -> Sequence[Rules]:
        """Read again each time: a server runs for days."""
        from navigator_kernel.skills.source.rules import read_rules

        files = policy_files()
        return read_rules(files) if files else ()

    @cached_property
    def reserved(self) -> Iterable[str]:
        return shipped_digests()

    def ask_server(self, server: str, operation: str, params: Mapping[str, str]) -> Mapping[str, Any]:
        import asyncio

        call = self._project.mcp.call(server, operation, params, self._project.ids.new())
        try:
            return asyncio.run(asyncio.wait_for(call, self._project.settings.timeout))
        except ConsentNeeded as error:
            error.hint = f"navigator mcp approve {server}"
            raise
        except TimeoutError as error:
            raise FetchFailed(
                f"the MCP server {server!r} did not answer", hint="try again", reason="timeout"
            ) from error

    def seek(self, query: str) -> SearchSpace | None:
        """Searches by words of the router's index, for a Chinese query also in English; if they find nothing, by
        meaning. None if the router cannot be used."""
        catalogue, meaning = self._project.catalogue, self._project.meaning
        try:
            skills = [skill for skill in catalogue.list_resources(enabled_only=False) if skill.type == "skill"]
            chosen = tuple(skill for skill in skills if skill.implicit and skill.enabled)
            more = other_words([query]) if language_of(query) == "zh" else []
            candidates = meaning.by_words(chosen, " ".join([query, *more]), FOUND).candidates
            if not candidates:
                near = meaning.retrieve(chosen, query, FOUND).candidates
                candidates = tuple(skill for skill in near if skill.confidence >= SURE)
            sure = frozenset(skill.name for skill in candidates if skill.confidence >= SURE)
            return SearchSpace(skills, [skill.name for skill in candidates], sure)
        except KernelError as error:
            warn("searching without the router: %s", error.message)
            return None


def write_seen(project: Project) -> dict[str, Any]:
    """Adds the rows of the person's page to the project's; NotFound if the project has no page (X-42)."""
    from navigator_kernel.skills.source.mapping import SkillMapping

    page = project.root / "docs" / MAPPING
    if not page.is_file():
        raise NotFound("the project has no docs/skills-mapping.md", hint="navigator init --workstation writes one")
    own = SkillMapping([page])
    before = len(list(own.rows()))
    if (grown := own.grown(project.mapping.seen())) is not None:
        project.writer_for("setup").write(page, grown)
    return {"path": str(page), "added": len(list(own.rows())) - before, "changed": grown is not None}
