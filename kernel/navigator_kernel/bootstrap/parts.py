"""Creates single parts, so that a command loads only what it uses."""

from __future__ import annotations

import os
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter, Stamp, stamp
from navigator_kernel.adapters.stores.project_state import BOX, PrivateWriter, ProjectWriter
from navigator_kernel.bootstrap.places import (
    box_of,
    installed_plugins,
    private_writer,
    project_state,
    scripts,
    shipped_digests,
    shipped_home,
    standing_places,
)
from navigator_kernel.bootstrap.roots import resource_roots
from navigator_kernel.config.settings import Settings, user_state
from navigator_kernel.digests import blake2b
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.skills.catalog.switches import disabled_names

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.audit import AuditLog
    from navigator_kernel.adapters.stores.journal import SqliteJournal
    from navigator_kernel.adapters.stores.lessons import Lessons
    from navigator_kernel.adapters.stores.project_state import ProjectState
    from navigator_kernel.adapters.stores.run_log import JsonLinesLog
    from navigator_kernel.adapters.stores.sessions import SqliteSessions
    from navigator_kernel.adapters.stores.underway import Underway
    from navigator_kernel.bootstrap.extensions import LoadedPlugins
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.plugins import Plugins
    from navigator_kernel.ports import Catalogue, FileReader, Router
    from navigator_kernel.routing.meaning import SemanticRanker
    from navigator_kernel.sandbox.contain import ContainedRunner
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
    from navigator_kernel.skills.catalog.listing import Root
    from navigator_kernel.skills.source.mapping import SkillMapping
    from navigator_kernel.values.redact import Redact

MAPPING = "skills-mapping.md"


def state_writer(state: ProjectState) -> PrivateWriter:
    """The write port of the person's state of one project, which is claimed before the first write."""
    return PrivateWriter(state.folder, state.claim)


def writer_for(actor: str, root: Path) -> FolderWriter:
    """The write port of one row of the authority table."""
    return ProjectWriter(writable(actor, root, standing_places()), root)


def box_writer(root: Path) -> FolderWriter:
    """The write port for the files of a turn, in the project or in the person's state."""
    inside = box_of(root) == root / BOX
    return writer_for("turn", root) if inside else state_writer(project_state(root))


def open_roots(root: Path) -> tuple[Root, ...]:
    """Every folder of resources, those that plugins bring included."""
    return resource_roots(root, _plugins(root).sources(root) if installed_plugins() else ())


def open_catalogue(root: Path, plugins: tuple[Path, ...] | None = None) -> ResourceCatalogue:
    """The catalogue of the project; `plugins` are the folders that plugins bring, if the caller knows them."""
    from navigator_kernel.adapters.stores.manifest_store import ManifestStore
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue

    state, kept = project_state(root).folder, user_state() / "cache" / "manifests"
    name = blake2b(os.fsencode(root.resolve()), digest_size=12).hexdigest()
    return ResourceCatalogue(
        roots=open_roots(root) if plugins is None else resource_roots(root, plugins),
        disabled=lambda: disabled_names(state),
        shipped=shipped_digests(),
        kept=ManifestStore(kept / f"{name}.json", lambda: private_writer(kept)),
        agreed=Agreed(),
    )


class Agreed:
    """The permanent consents; read again when their file changes."""

    def __init__(self) -> None:
        self._seen: Stamp | None = None
        self._subjects: frozenset[str] = frozenset()

    def __call__(self) -> frozenset[str]:
        seen = stamp(user_state() / "trust.json")
        if seen != self._seen:
            self._seen, self._subjects = seen, _agreed_subjects()
        return self._subjects


def _agreed_subjects() -> frozenset[str]:
    from navigator_kernel.bootstrap.consents import open_consents

    return frozenset(open_consents().subjects())


def open_mapping(root: Path) -> SkillMapping:
    """The person's page of seen skills, then the shipped one; the project's own page gives only names (X-42, X-43)."""
    from navigator_kernel.skills.source.mapping import SkillMapping

    seen, shipped, own = (folder / MAPPING for folder in (user_state(), shipped_home().docs, root / "docs"))
    return SkillMapping([seen, shipped], named=None if own.resolve() == shipped.resolve() else own)


def open_run_log(root: Path) -> JsonLinesLog:
    from navigator_kernel.adapters.stores.run_log import JsonLinesLog

    return JsonLinesLog(box_of(root) / "logs" / "runs", box_writer(root))


def open_sessions(root: Path, settings: Settings | None = None) -> SqliteSessions:
    from navigator_kernel.adapters.stores.sessions import SqliteSessions

    state = project_state(root)
    file = state.folder / "sessions.sqlite"
    return SqliteSessions(file, state_writer(state), SystemClock(), open_redaction(settings))


def open_underway(root: Path, redact: Redact) -> Underway:
    from navigator_kernel.adapters.stores.underway import Underway

    state = project_state(root)
    return Underway(state.folder / "underway", state_writer(state), SystemClock(), redact)


def open_journal(root: Path, redact: Redact | None = None) -> SqliteJournal:
    from navigator_kernel.adapters.stores.journal import SqliteJournal

    state = project_state(root)
    file = state.folder / "workflows.sqlite"
    return SqliteJournal(file, state_writer(state), SystemClock(), redact or open_redaction())


def open_lessons(root: Path, redact: Redact | None = None) -> Lessons:
    from navigator_kernel.adapters.stores.lessons import Lessons

    state = project_state(root)
    return Lessons(state.folder / "lessons.json", state_writer(state), SystemClock(), redact or open_redaction())


def open_audit(root: Path, redact: Redact | None = None) -> AuditLog:
    """The log of what was allowed, refused, run and written in this project."""
    from navigator_kernel.adapters.stores.audit import AuditLog

    state, home = project_state(root), user_state()
    return AuditLog(
        file=state.folder / "audit.jsonl",
        writer=state_writer(state),
        clock=SystemClock(),
        key=home / "audit.key",
        key_writer=private_writer(home),
        redact=redact or open_redaction(),
    )


def open_redaction(settings: Settings | None = None) -> Redact:
    """Replaces secrets of this process's environment and of MCP servers' settings, and text that looks like one."""

    @cache
    def redactor() -> Redact:
        from navigator_kernel.adapters.secrets.redaction import SHORTEST, Redactor, secrets_of

        servers = settings.servers.values() if settings else ()
        environments = (os.environ, *(server.env for server in servers))
        known = [value for held in environments for value in secrets_of(held)]
        providers = settings.models.providers.values() if settings else ()
        known += [value for held in providers if held.key and len(value := os.environ.get(held.key, "")) >= SHORTEST]
        return Redactor(tuple(known)).value

    return lambda value: redactor()(value)


def open_sandbox(*, unsafe: bool = False) -> ContainedRunner:
    from navigator_kernel.adapters.processes.process import ProcessRunner
    from navigator_kernel.sandbox.contain import ContainedRunner

    kept = user_state() / "cache"
    return ContainedRunner(ProcessRunner(), kept / "sandbox.json", lambda: private_writer(kept), unsafe)


def open_meaning(root: Path, settings: Settings, plugins: Plugins | None = None) -> SemanticRanker:
    """The ranker of skills; nothing is read before its first use."""
    from navigator_kernel.routing.index import RoutingIndex
    from navigator_kernel.routing.meaning import SemanticRanker

    encoder = open_encoder(root, settings, plugins)
    state = project_state(root)
    writer = PrivateWriter(state.folder, partial(state.claim, looking=True))
    index = RoutingIndex(state.folder / "index", writer, encoder)
    return SemanticRanker(index, boldness=settings.boldness, lessons=open_lessons(root).known)


def open_encoder(root: Path, settings: Settings, plugins: Plugins | None = None) -> Encoder | None:
    """The encoder of a plugin or the shipped one; None if it is switched off or cannot be loaded."""
    from navigator_kernel.adapters.index.use_encoder import KeptVectors, UseEncoder, installed

    if settings.encoder == "off":
        return None
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread saves 1 ms of 2, or loses 60 on a busy machine
    brought = _plugins_encoder(root, plugins) if plugins is not None else None
    if brought is not None or not installed():
        return brought
    kept = user_state() / "cache" / "encoders"
    encoder = UseEncoder(kept, lambda: private_writer(kept))
    return KeptVectors(encoder, kept, lambda: private_writer(kept))


def _plugins_encoder(root: Path, plugins: Plugins) -> Encoder | None:
    """The first encoder that a plugin provides; an object that is not an encoder is reported as a failure."""
    from navigator_kernel.adapters.index.use_encoder import ENCODING, PluginEncoder, read_encoder

    hook = "kernel_register_encoders"
    for name, (held, key, dimensions) in plugins.all(hook, root, read_encoder):
        return PluginEncoder(held, key, dimensions, partial(plugins.call, name, hook, seconds=ENCODING))
    return None


class Routes(Struct, frozen=True):
    """The services that routing needs."""

    catalogue: Catalogue
    router: Router
    files: FileReader


class RouterParts(Routes, frozen=True):
    """The services that `navigator route` needs, and no more; `meaning` is the ranker of the kernel's own router."""

    meaning: SemanticRanker


def open_router(root: Path, settings: Settings) -> RouterParts:
    """The kernel's own router, or a plugin's if one provides it; the list of plugins comes from a cache."""
    from navigator_kernel.adapters.files.project_files import ProjectFiles
    from navigator_kernel.routing.cascade import CascadeRouter

    plugins = _plugins(root) if installed_plugins() else None
    sources = plugins.sources(root) if plugins else ()
    catalogue = open_catalogue(root, sources)
    meaning = open_meaning(root, settings, plugins.plugins if plugins else None)
    own = CascadeRouter(
        catalogue=catalogue,
        mapping=open_mapping(root),
        scripts=scripts(root),
        servers=tuple(sorted(settings.servers)),
        meaning=meaning,
    )
    router = own if plugins is None else _plugins_router(plugins.plugins, catalogue, own)
    return RouterParts(catalogue=catalogue, router=router, files=ProjectFiles(root, Path.cwd()), meaning=meaning)


def _plugins_router(plugins: Plugins, catalogue: ResourceCatalogue, own: Router) -> Router:
    from navigator_kernel.bootstrap.plugin_parts import router_of

    return router_of(plugins, catalogue, own)


def _plugins(root: Path) -> LoadedPlugins:
    from navigator_kernel.bootstrap.extensions import open_plugins

    return open_plugins(root, agents=False)
