"""One project of this person: `Project`, which opens each of its parts when it is first used."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from navigator_kernel.adapters.clock import SystemClock, TimedIds
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.project_state import BOX, PrivateWriter, ProjectState, ProjectWriter
from navigator_kernel.bootstrap.places import (
    MAPPING,
    Agreed,
    installed_plugins,
    memory_subject,
    open_consents,
    private_writer,
    project_state,
    scripts,
    shipped_digests,
    shipped_home,
    standing_places,
    tool_file,
)
from navigator_kernel.config.project_root import is_project
from navigator_kernel.config.settings import Settings, load_settings, user_file, user_state
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import Busy, KernelError, NotFound, NotLoadable
from navigator_kernel.sandbox.authority import writable
from navigator_kernel.values.job import NPM

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.changes import ChangeStore, Sized
    from navigator_kernel.adapters.files.project_files import ProjectFiles
    from navigator_kernel.adapters.mcp_client.servers import Servers
    from navigator_kernel.adapters.processes.environments import Environments
    from navigator_kernel.adapters.stores.audit import AuditLog
    from navigator_kernel.adapters.stores.journal import SqliteJournal
    from navigator_kernel.adapters.stores.lessons import Lessons
    from navigator_kernel.adapters.stores.preferences import Preferences
    from navigator_kernel.adapters.stores.run_log import RunLog
    from navigator_kernel.adapters.stores.sessions import SqliteSessions
    from navigator_kernel.adapters.stores.underway import Underway
    from navigator_kernel.agent_loop.specialist import Specialist
    from navigator_kernel.bootstrap.models import ModelRegistry
    from navigator_kernel.bootstrap.plugin_parts import LoadedPlugins
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.ports import (
        Agent,
        Clock,
        Dispatcher,
        DispatchPorts,
        Ids,
        ProjectPorts,
        Router,
        SharedStores,
    )
    from navigator_kernel.routing.cascade import CascadeRouter
    from navigator_kernel.routing.meaning import SemanticRanker
    from navigator_kernel.routing.phase_one import ModelJudge
    from navigator_kernel.sandbox.consents import ConsentStore
    from navigator_kernel.sandbox.contain import ContainedRunner
    from navigator_kernel.sandbox.guard import ConsentGate
    from navigator_kernel.sandbox.servers import ToolPins
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
    from navigator_kernel.skills.catalog.listing import Root
    from navigator_kernel.skills.lifecycle import Lifecycle
    from navigator_kernel.skills.source.mapping import SkillMapping
    from navigator_kernel.tools.built_in import BuiltInTools
    from navigator_kernel.tools.delivering import Delivery
    from navigator_kernel.tools.guarded import GuardedTools
    from navigator_kernel.tools.places import Place
    from navigator_kernel.tools.writing import Change
    from navigator_kernel.values.chat import GuardedTool, Spent
    from navigator_kernel.values.mcp import OfferedTool
    from navigator_kernel.values.packet import Packet, Report
    from navigator_kernel.values.reply import Notice, Reply
    from navigator_kernel.values.request import Session
    from navigator_kernel.values.resource import SkillDef

PROJECT_ID = "NAVIGATOR_PROJECT_ID"
DIRECT = 64  # server tools offered for a message without a skill
# Parts that do not depend on the settings
_KEPT = ("plugins", "shared", "roots", "catalogue", "mapping", "state", "state_writer", "audit", "consents", "lessons")
T = TypeVar("T")

if TYPE_CHECKING:
    part = cached_property
else:

    class part(cached_property):  # noqa: N801 - a decorator
        """A part of a project, opened when it is first used; if several threads ask for it at once, by one of them."""

        def __get__(self, project, owner=None):
            if project is None:
                return self
            with project._opening:  # noqa: SLF001 - of the same class
                return super().__get__(project, owner)


class Project:
    """The project at `root`, opened once per process: command line, gateway, library and plugins share it, and several
    threads may use it. Opening a part writes nothing and starts no process. It holds the state of no turn.

    `settings` are the settings, or a function that loads them when they are first needed. Paths of a message start at
    `here`, by default the current folder. With `unsafe`, commands run unconfined if nothing can confine them. Without
    `agents` it takes no turn, and loads only the plugins of installed packages; in a process that `stays`, connections
    to models stay open after a turn. NotFound if `root` is not a folder.
    """

    def __init__(
        self,
        root: Path,
        settings: Settings | Callable[[], Settings] | None = None,
        *,
        here: Path | None = None,
        clock: Clock | None = None,
        unsafe: bool = False,
        agents: bool = True,
        stays: bool = False,
    ) -> None:
        if not root.is_dir():
            raise NotFound(f"no folder is called {str(root)!r}", hint="name the project's folder")
        self.root, self.here, self.unsafe = root, here or Path.cwd(), unsafe
        self.clock: Clock = clock or SystemClock()
        self._settings, self._takes_turns, self._stays = settings, agents, stays
        self._opening = RLock()

    @part
    def settings(self) -> Settings:
        if isinstance(self._settings, Settings):
            return self._settings
        return load_settings(self.root) if self._settings is None else self._settings()

    def with_settings(self, settings: Settings) -> Project:
        """The same project with other settings; the parts that do not depend on them stay open."""
        given: dict[str, Any] = {"here": self.here, "clock": self.clock, "unsafe": self.unsafe}
        other = Project(self.root, settings, agents=self._takes_turns, stays=self._stays, **given)
        same = (*_KEPT, "encoder") if settings.encoder == self.settings.encoder else _KEPT
        same = (*same, "meaning") if "encoder" in same and settings.boldness == self.settings.boldness else same
        vars(other).update({name: vars(self)[name] for name in same if name in vars(self)})
        return other

    @part
    def ids(self) -> Ids:
        return TimedIds(self.clock)

    # Places, and who may write there

    @part
    def state(self) -> ProjectState:
        """The person's own state of the project."""
        return project_state(self.root)

    def refuse_replaced(self) -> None:
        """Busy if the person gave the project another state since this process opened it. One that was deleted is made
        again."""
        state = project_state(self.root)
        if state.folder != self.state.folder:
            raise Busy(f"the state of {str(self.root)!r} was replaced meanwhile", hint="run the command again")
        if self.state.record is not None and state.record is None:
            state.claim()

    @part
    def state_writer(self) -> PrivateWriter:
        """Writes the person's state of the project, which is claimed before the first write."""
        return PrivateWriter(self.state.folder, self.state.claim)

    @part
    def box(self) -> Path:
        """The folder of logs and of runs' files: the project's `mybox`, or the person's own state (X-42) for a folder
        that is not a project, in which nothing is written, and for one that this person cannot write to."""
        box = self.root / BOX
        is_open = os.access(box if box.is_dir() else self.root, os.W_OK | os.X_OK)
        return box if is_open and is_project(os.path.realpath(self.root)) else self.state.folder / BOX

    @part
    def box_writer(self) -> FolderWriter:
        """Writes the files of a turn, in the project or in the person's state."""
        return self.writer if self.box == self.root / BOX else self.state_writer

    @part
    def writer(self) -> FolderWriter:
        return self.writer_for("turn")

    def writer_for(self, actor: str) -> FolderWriter:
        """What writes the paths of one row of the authority table."""
        return ProjectWriter(writable(actor, self.root, standing_places()), self.root)

    def workspace(self, run: str) -> Path:
        """`mybox/workspace/<run>`, which is made if it is missing."""
        path = self.box / "workspace" / run
        self.box_writer.make_folder(path)
        return path

    def keep(self, run: str, name: str, data: bytes) -> str:
        """Records and writes a file of a run. Returns its path for messages, relative to the project if it lies in
        it."""
        from hashlib import sha256

        from navigator_kernel.values.packet import shown_path

        path = self.box / "workspace" / run / name
        shown = shown_path(path, self.root)
        self.audit.record("wrote", run=run, path=shown, sha256=sha256(data).hexdigest())
        self.box_writer.write(path, data)
        return shown

    @part
    def files(self) -> ProjectFiles:
        """Reads the project's files; relative paths start at the current folder."""
        from navigator_kernel.adapters.files.project_files import ProjectFiles

        return ProjectFiles(self.root, self.here)

    @part
    def root_files(self) -> ProjectFiles:
        """Reads the project's files; relative paths start at the project."""
        from navigator_kernel.adapters.files.project_files import ProjectFiles

        return ProjectFiles(self.root, self.root)

    # What is stored

    @part
    def redact(self) -> Callable[[Any], Any]:
        """A function from a value to the value without secrets: those of this process's environment and of MCP
        servers' settings, and text that looks like one."""
        from navigator_kernel.adapters.secrets.redaction import SHORTEST, Redactor, secrets_of

        environments: list[Mapping[str, str]] = [os.environ]
        keys: list[str] = []
        try:
            environments += [server.env for server in self.settings.servers.values()]
            keys = [provider.key for provider in self.settings.models.providers.values() if provider.key]
        except KernelError:  # commands that work without readable settings know none of their secrets
            pass
        known = [value for environment in environments for value in secrets_of(environment)]
        known += [value for key in keys if len(value := os.environ.get(key, "")) >= SHORTEST]
        return Redactor(tuple(known)).value

    @part
    def audit(self) -> AuditLog:
        """The log of what was allowed, refused, run and written in this project."""
        from navigator_kernel.adapters.stores.audit import AuditLog

        home = user_state()
        return AuditLog(
            file=self.state.folder / "audit.jsonl",
            writer=self.state_writer,
            clock=SystemClock(),
            key=home / "audit.key",
            key_writer=private_writer(home),
            redact=self.redact,
            shared=self.shared,
        )

    @part
    def consents(self) -> ConsentStore:
        """The person's consents; changes are recorded in the audit log."""
        return open_consents(self.audit, self.shared)

    @part
    def shared(self) -> SharedStores | None:
        """What several hosts keep the project's state in, if NAVIGATOR_PROJECT_ID names the project; None on one
        machine, without the import of what loads plugins."""
        return self._shared_stores() if os.environ.get(PROJECT_ID) else None

    def _shared_stores(self) -> SharedStores:
        from navigator_kernel.bootstrap.plugin_parts import open_plugins, read_stores

        plugins = open_plugins(self.root, agents=False).plugins  # a project's own may not
        stores: SharedStores | None = plugins.first("kernel_register_stores", self.plugin_ports, read_stores)
        if stores is None:
            hint = f"set NAVIGATOR_DATABASE_URL, or unset {PROJECT_ID}"
            raise NotLoadable(f"{PROJECT_ID} is set, and no plugin has a database for it", hint=hint)
        return stores

    @part
    def sessions(self) -> SqliteSessions:
        """The conversations."""
        from navigator_kernel.adapters.stores.sessions import SqliteSessions

        file = self.state.folder / "sessions.sqlite"
        return SqliteSessions(file, self.state_writer, SystemClock(), self.redact, self.shared)

    @part
    def journal(self) -> SqliteJournal:
        """The runs of workflows."""
        from navigator_kernel.adapters.stores.journal import SqliteJournal

        file = self.state.folder / "workflows.sqlite"
        return SqliteJournal(file, self.state_writer, SystemClock(), self.redact, self.shared)

    @part
    def lessons(self) -> Lessons:
        """The messages from which the router learned."""
        from navigator_kernel.adapters.stores.lessons import Lessons

        return Lessons(self.state.folder / "lessons.json", self.state_writer, SystemClock(), self.redact)

    @part
    def underway(self) -> Underway:
        """The calls of turns that are under way, so that a killed turn can continue."""
        from navigator_kernel.adapters.stores.underway import Underway

        return Underway(self.state.folder / "underway", self.state_writer, SystemClock(), self.redact, self.shared)

    @part
    def run_log(self) -> RunLog:
        """The events of runs."""
        from navigator_kernel.adapters.stores.run_log import RunLog

        return RunLog(self.box / "logs" / "runs", self.box_writer, shared=self.shared)

    @part
    def memory(self) -> Preferences:
        """The person's preferences, and the project's, which must be trusted (X-30)."""
        from navigator_kernel.adapters.stores.preferences import PreferenceFile, Preferences

        own = self.root / ".claude" / "memory" / "preferences.md"

        def is_trusted(data: bytes) -> bool:
            from hashlib import sha256

            return self.consents.trusted(memory_subject(own, f"sha256:{sha256(data).hexdigest()}"))

        users = PreferenceFile(source="user", path=user_file().parent / "preferences.md", accepted=lambda _: True)
        return Preferences((users, PreferenceFile(source="project", path=own, accepted=is_trusted)))

    @part
    def changes(self) -> ChangeStore:
        """The changes that tools made to the project's files."""
        from navigator_kernel.adapters.files.changes import ChangeStore
        from navigator_kernel.tools.places import CLOSED

        folder, root = self.state.folder / "changes", self.root.resolve()
        return ChangeStore(folder, self.state_writer, root, CLOSED, self.run_log.began)

    def changed(self, run: str) -> tuple[str, ...]:
        """The files of the project that tools changed in the run."""
        try:
            return tuple(dict.fromkeys(change.path for change in self.changes.of(run)))
        except NotFound:
            return ()

    def undo(self, run: str) -> Sequence[tuple[str, str]]:
        """Puts back the files that a run changed, and says how that went for each."""
        return self.changes.undo(run)

    def copy_in(self, run: str, source: Sized, place: Place, now: Sized | None) -> None:
        """Copies a file of a workspace to `place`, where the file `now` is, and keeps the earlier content for the run.
        One that fits into memory is kept before and after, as any change is."""
        from navigator_kernel.adapters.files.changes import LARGEST, opened_bytes

        path, workspaces = "/".join(place.parts), (self.box / "workspace").resolve()
        named = source.root.joinpath(*source.parts).relative_to(workspaces).as_posix()
        if max(source.size, now.size if now else 0) > LARGEST:
            self.changes.copy(run, path, now.digest if now else "", source, named)
        else:
            self.changes.make(run, path, opened_bytes(now) if now else None, opened_bytes(source), named)

    # Plugins

    @part
    def plugins(self) -> LoadedPlugins:
        from navigator_kernel.bootstrap.plugin_parts import open_plugins

        return open_plugins(self.root, agents=self._takes_turns)

    @property
    def _brought(self) -> LoadedPlugins | None:
        """The plugins; None, without the import of what loads them, if there can be none."""
        return self.plugins if self._takes_turns or "plugins" in vars(self) or installed_plugins() else None

    @part
    def plugin_ports(self) -> ProjectPorts:
        """What plugins get of the project."""
        from navigator_kernel.ports import ProjectPorts

        return ProjectPorts(
            root=self.root,
            state=self.state.folder,
            writer=self.state_writer,
            encoder=lambda: self.meaning.index.encoder,
        )

    def precheck_hook(self, count: int) -> Notice | None:
        """What plugins say before the first turn of a session, given the number of skills."""
        from navigator_kernel.bootstrap.plugin_parts import read_notice

        notice: Notice | None = self.plugins.plugins.first("kernel_precheck", count, read_notice)
        return notice

    def finish_hook(self, reply: Reply) -> None:
        self.plugins.plugins.all("kernel_finish_turn", reply)

    def failures(self) -> Sequence[Mapping[str, str]]:
        """The failures of plugins, at the latest while their parts were opened."""
        _ = self.agents, self.dispatcher, self.router
        return tuple(failure.to_dict() for failure in self.plugins.plugins.failures)

    # Skills, and how they are chosen

    @part
    def roots(self) -> tuple[Root, ...]:
        """Every folder of resources, those that plugins bring included."""
        from navigator_kernel.bootstrap.roots import resource_roots

        return resource_roots(self.root, self._brought.sources(self.root) if self._brought else ())

    @part
    def catalogue(self) -> ResourceCatalogue:
        from navigator_kernel.adapters.stores.manifest_store import ManifestStore
        from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
        from navigator_kernel.skills.catalog.switches import read_switches

        state, folder = self.state.folder, user_state() / "cache" / "manifests"
        name = blake2b(os.fsencode(self.root.resolve()), digest_size=12).hexdigest()
        return ResourceCatalogue(
            roots=self.roots,
            disabled=lambda: read_switches(state).disabled,
            shipped=self.shipped,
            kept=ManifestStore(folder / f"{name}.json", lambda: private_writer(folder)),
            agreed=Agreed(),
        )

    @part
    def mapping(self) -> SkillMapping:
        """The person's page of seen skills, then the shipped one; the project's own page gives only names (X-42,
        X-43)."""
        from navigator_kernel.skills.source.mapping import SkillMapping

        seen, shipped, own = (folder / MAPPING for folder in (user_state(), shipped_home().docs, self.root / "docs"))
        return SkillMapping([seen, shipped], named=None if own.resolve() == shipped.resolve() else own)

    @part
    def shipped(self) -> Mapping[str, str]:
        """`<skill>` and `bin/<script>.py` → digest, of this release."""
        return shipped_digests()

    @property
    def release(self) -> Path:
        """The folder of this release's scripts."""
        return shipped_home().bin

    def record_use(self, skill: str) -> None:
        """Adds one use of a skill, for the bonus in a search (LIF-16)."""
        from navigator_kernel.skills.catalog.switches import add_use

        add_use(self.state.folder, skill, self.state_writer)

    @part
    def scripts(self) -> Mapping[str, Path]:
        """The scripts that the worker may run, by name."""
        return scripts(self.root)

    @part
    def lifecycle(self) -> Lifecycle:
        """The only part that may change installed skills."""
        from navigator_kernel.bootstrap.lifecycle import lifecycle_of

        return lifecycle_of(self)

    @part
    def encoder(self) -> Encoder | None:
        """The encoder of a plugin or the shipped one; None if it is switched off or cannot be loaded."""
        from navigator_kernel.adapters.index.use_encoder import KeptVectors, UseEncoder, installed

        if self.settings.encoder == "off":
            return None
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a second thread saves 1 ms of 2, or loses 60 if it is busy
        if (brought := self._brought) is not None:
            from navigator_kernel.bootstrap.plugin_parts import encoder_of

            if (encoder := encoder_of(brought.plugins, self.root)) is not None:
                return encoder
        if not installed():
            return None
        folder = user_state() / "cache" / "encoders"
        own = UseEncoder(folder, lambda: private_writer(folder))
        return KeptVectors(own, folder, lambda: private_writer(folder))

    @part
    def meaning(self) -> SemanticRanker:
        """The ranker of the kernel's own router; nothing is read before its first use."""
        from navigator_kernel.routing.index import RoutingIndex
        from navigator_kernel.routing.meaning import SemanticRanker

        writer = PrivateWriter(self.state.folder, lambda: self.state.claim(looking=True))
        index = RoutingIndex(self.state.folder / "index", writer, self.encoder)
        return SemanticRanker(index, boldness=self.settings.boldness, lessons=self.lessons.known)

    @part
    def own_router(self) -> CascadeRouter:
        """The kernel's own router."""
        from navigator_kernel.routing.cascade import CascadeRouter

        return CascadeRouter(
            catalogue=self.catalogue,
            mapping=self.mapping,
            scripts=self.scripts,
            servers=tuple(sorted(self.settings.servers)),
            meaning=self.meaning,
        )

    @part
    def router(self) -> Router:
        """The kernel's own router, or a plugin's if one provides it."""
        if (brought := self._brought) is not None:
            from navigator_kernel.bootstrap.plugin_parts import router_of

            return router_of(brought.plugins, self.catalogue, self.own_router)
        return self.own_router

    # Processes

    @part
    def contained(self) -> ContainedRunner:
        """Runs processes in the sandbox, unasked."""
        from navigator_kernel.adapters.processes.process import ProcessRunner
        from navigator_kernel.sandbox.contain import ContainedRunner

        cache = user_state() / "cache"
        memory, writer = cache / "sandbox.json", lambda: private_writer(cache)
        return ContainedRunner(ProcessRunner(), memory, writer, self.unsafe, _make_environment)

    @part
    def sandbox(self) -> ConsentGate:
        """Runs processes that the person's policy and consents allow."""
        from navigator_kernel.sandbox.guard import ConsentGate

        policy = self.settings.policy
        return ConsentGate(self.consents, self.contained, policy, self.audit, self.fresh_folder, _refuse_unmakeable)

    def fresh_folder(self, folder: Path) -> Path:
        """`folder` if it is empty, else a new folder in it: no process writes among the files of another one."""
        with os.scandir(folder) as entries:
            if next(entries, None) is None:
                return folder
        number = 2
        while os.path.lexists(folder / str(number)):
            number += 1
        self.box_writer.make_folder(folder / str(number))
        return folder / str(number)

    # MCP servers

    @part
    def pins(self) -> ToolPins:
        """The tools of MCP servers that the person agreed to."""
        from navigator_kernel.bootstrap.scanning.scanners import suspicions
        from navigator_kernel.sandbox.servers import ToolPins

        return ToolPins(self.consents, self.settings.policy, self.audit, suspicions)

    @part
    def mcp(self) -> Servers:
        """The client of the configured MCP servers; a server is started when it is first called."""
        from navigator_kernel.adapters.mcp_client.servers import Servers
        from navigator_kernel.sandbox.servers import starter

        def secret(name: str) -> str | None:
            """The value from the environment, else from the system's keyring."""
            from navigator_kernel.adapters.models.providers import in_keyring

            return os.environ.get(name) or in_keyring(name) or None

        def keep(run: str, server: str, body: bytes) -> Path:
            folder = self.workspace(run)
            taken = sum(1 for _ in folder.glob(f"mcp-{server}-*.json"))
            file = folder / f"mcp-{server}-{taken + 1}.json"
            self.box_writer.write(file, body, mode=0o600)
            return file

        def folder(name: str) -> Path:
            """The folder of a server's own data, outside the project."""
            path = self.state.folder / "servers" / name
            self.state_writer.make_folder(path)
            return path

        return Servers(
            servers=self.settings.servers,
            started=starter(self.sandbox.check, self.contained.argv, secret, self.root),
            workspace=folder,
            approve=self.pins.require,
            secret=secret,
            keep=keep,
        )

    # Agents

    def answer(self, script: str, args: Sequence[str]) -> tuple[int, str] | None:
        """The exit code and the output of a script that the kernel answers itself; None for any other."""
        if script == "doctor":
            from navigator_kernel.bootstrap.health import answered  # imported only on request

            return answered(self, args)
        return None

    @part
    def _agents(self) -> tuple[Mapping[str, Agent], Mapping[str, str]]:
        from navigator_kernel.bootstrap.plugin_parts import agents_of

        return agents_of(self.plugins.plugins, self)

    @property
    def agents(self) -> Mapping[str, Agent]:
        """Agents by name and alias."""
        return self._agents[0]

    @part
    def dispatcher(self) -> Dispatcher:
        """A plugin's dispatcher, or the one for this machine."""
        from navigator_kernel.bootstrap.plugin_parts import dispatcher_of

        return dispatcher_of(self.plugins.plugins, self.agents, self.dispatch_ports)

    @property
    def dispatch_ports(self) -> DispatchPorts:
        """What a dispatcher, and a worker for other machines, may use."""
        from navigator_kernel.adapters.files.tree import read_inside
        from navigator_kernel.dispatch import InProcessDispatcher, failure
        from navigator_kernel.ports import DispatchPorts
        from navigator_kernel.skills.catalog.receipts import skill_files
        from navigator_kernel.values.packet import Meta
        from navigator_kernel.values.resource import PATHS

        plugins, (agents, owners) = self.plugins.plugins, self._agents

        def observe(agent: str, error: BaseException) -> None:
            plugins.fail(owners[agents[agent].name], "handle", error)

        def digest(packet: Packet) -> str:
            return self.catalogue.create_executor(packet.task_spec.target).digest if packet.agent == "skills" else ""

        def files(packet: Packet) -> Mapping[str, Path]:
            folder = self.catalogue.create_executor(packet.task_spec.target).skill.folder
            return {file.path: folder / file.path for file in skill_files(folder)} if folder else {}

        def named(packet: Packet) -> Mapping[str, Path]:
            if packet.agent != "skills":
                return {}
            specs = self.catalogue.create_executor(packet.task_spec.target).skill.required_params
            checked = {spec.name for spec in specs if spec.validation in PATHS}
            values = [value for name, value in packet.params.required.items() if name in checked]
            root = self.root.resolve()
            paths = [str(path) for path in (*packet.params.value("files", ()), *values) if path]
            inside = {path: (root / path).resolve() for path in paths if not Path(path).is_absolute()}
            return {path: file for path, file in inside.items() if file.is_relative_to(root) and file.is_file()}

        def made(run: str, name: str, limit: int) -> bytes:
            return read_inside(self.box, ("workspace", run, *name.split("/")), limit)

        def failed(packet: Packet, error: BaseException, seconds: float) -> Report:
            meta = Meta(agent=packet.agent, time=round(seconds, 3), ts=self.clock.now())
            return failure(error, meta, packet.context.language)

        return DispatchPorts(
            root=self.root,
            clock=self.clock,
            local=lambda: InProcessDispatcher(agents, self.clock, observe),
            digest=digest,
            failed=failed,
            files=files,
            agree=self.consents.allow_orders,
            named=named,
            keep=self.keep,
            made=made,
            project=self.plugin_ports,
        )

    # Models and their tools

    @part
    def models(self) -> ModelRegistry | None:
        """The configured models; None if no model is set."""
        if self.settings.models.default:
            from navigator_kernel.bootstrap.models import ModelRegistry

            return ModelRegistry(self.settings.models, stays=self._stays)
        return None

    @part
    def judge(self) -> ModelJudge | None:
        """What asks a model to choose a skill; None if no model may choose, or there is none."""
        models, way = self.models, self.settings.router
        if models is not None and way != "local_only":
            from navigator_kernel.routing.phase_one import ModelJudge

            return ModelJudge(models.chain, self.catalogue, "llm_only" if way == "llm_only" else "cascade")
        return None

    def specialist(self, before: Session, spent: Spent) -> Specialist | None:
        """What lets a model work on the orders of one turn; None if there is no model. `before` is the session before
        the turn, `spent` the usage of the turn's choice."""
        return None if self.models is None else self._specialist_with(self.models, before, spent)

    def _specialist_with(self, models: ModelRegistry, before: Session, spent: Spent) -> Specialist:
        from navigator_kernel.agent_loop.loop import Budget
        from navigator_kernel.agent_loop.specialist import Specialist

        settings = self.settings.models
        return Specialist(
            models=models,
            catalogue=self.catalogue,
            tools=self.tools(),
            clock=self.clock,
            root=self.root.resolve(),
            box=self.box / "workspace",
            named=self.files.named,
            history=before.history,
            written=before.written,
            writer=lambda folder: ProjectWriter([folder], self.root),
            private=before.private,
            budget=Budget(tokens=settings.turn_tokens, cost=settings.turn_cost, seconds=settings.turn_seconds),
            spent=spent,
            redact=self.redact,
            usual=self.settings.timeout,
            underway=self.underway,
            delivered=self.changes.delivered,
        )

    def tools(self) -> GuardedTools:
        """New tools for one turn of a model, or for one call of another agent's: the built-in ones, those of plugins
        and of MCP servers, all guarded."""
        from navigator_kernel.agent_loop.skill_tool import SkillTool
        from navigator_kernel.tools.guarded import GuardedTools

        @cache
        def of_servers() -> Sequence[GuardedTool]:
            return self._approved_tools() if self.settings.servers else ()

        @cache
        def tools() -> Mapping[str, GuardedTool]:
            found = {tool.name: tool for tool in self.plugin_tools}
            for own in of_servers():
                found.setdefault(own.name, own)
            return found

        @cache
        def direct() -> Mapping[str, GuardedTool]:
            """Sorts tools that only read first, so that they are not cut off."""
            return {tool.name: tool for tool in sorted(of_servers(), key=lambda tool: bool(tool.effects))[:DIRECT]}

        return GuardedTools(
            tools=tools,
            direct=direct,
            always=SkillTool(self.catalogue),
            built_in=self.built_in(),
            consents=self.consents,
            audit=self.audit,
            policy=self.settings.policy,
        )

    def _approved_tools(self) -> Sequence[GuardedTool]:
        """The tools of MCP servers that the person agreed to, in the form agreed to; a server is asked only when a tool
        is called, and must still offer the same tool."""
        from navigator_kernel.sandbox.servers import load_pins
        from navigator_kernel.tools.outward import mcp_tools

        servers = self.settings.servers

        def may(tool: OfferedTool) -> bool:
            return tool.server in servers and self.consents.trusted(tool.subject)

        async def call(server: str, tool: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
            return await self.mcp.call(server, "call", {"tool": tool, "args": dict(arguments)}, "")

        def outward(server: str) -> bool:
            return server not in servers or servers[server].network or bool(servers[server].url)

        return mcp_tools(load_pins(tool_file()), may, call, outward)

    @part
    def plugin_tools(self) -> Sequence[GuardedTool]:
        from navigator_kernel.bootstrap.plugin_parts import tools_of

        return tools_of(self.plugins.plugins, self.plugin_ports, self.settings.timeout)

    def built_in(self) -> BuiltInTools:
        """The built-in tools of prompt skills. Nothing is written before a call."""
        from navigator_kernel.tools.built_in import BuiltInTools

        def change(run: str, change: Change) -> None:
            self.changes.make(run, "/".join(change.place.parts), change.before, change.after)

        def deliver(run: str, one: Delivery) -> None:
            self.copy_in(run, one.source, one.place, one.now)

        def needed(skill: SkillDef, paths: Sequence[Path], named: Sequence[str], is_node: bool) -> tuple[str, ...]:  # noqa: FBT001 - a port
            from navigator_kernel.skills.formats.dependencies import needed  # imported only if a command runs

            return needed(skill, paths, named, is_node=is_node)

        return BuiltInTools(
            root=self.root,
            box=self.box / "workspace",
            catalogue=self.catalogue,
            sandbox=self.sandbox,
            consents=self.consents,
            audit=self.audit,
            writer=lambda folder: ProjectWriter([folder], self.root),
            change=change,
            copy=deliver,
            needed=needed,
            hosts=self.settings.policy.fetch,
            policy=self.settings.policy,
            allow=self.settings.allow,
            intend=self.underway.intend,
        )


def _make_environment(requirements: Sequence[str]) -> Path:
    """Returns the environment with these packages, all of Python or all of Node, and makes it if it is missing. It is
    kept outside every project, because its contents count as agreed to."""
    environments, name = _environments(requirements)
    return environments.path(name) or environments.make(name, requirements)


def _refuse_unmakeable(packages: Sequence[str]) -> None:
    """NotLoadable if packages are missing and the program that would install them is, too."""
    for is_node in (False, True):
        if requirements := [package for package in packages if package.startswith(NPM) == is_node]:
            environments, name = _environments(requirements)
            if environments.path(name) is None:
                environments.build(Path(), 0.0)


def _environments(requirements: Sequence[str]) -> tuple[Environments, str]:
    """The environments of Python or of Node, and the name of the one with these requirements."""
    from navigator_kernel.adapters.processes.environments import (
        Environments,  # imported only if packages are declared
        NodeEnvironments,
    )
    from navigator_kernel.skills.formats.dependencies import fingerprint

    is_node, folder = requirements[0].startswith(NPM), user_state() / "cache" / "environments"
    name = fingerprint(requirements, ("node", sys.platform, os.uname().machine) if is_node else ())
    return NodeEnvironments(folder) if is_node else Environments(folder), name
