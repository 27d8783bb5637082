"""Creates a complete kernel: `assemble(root, settings)`."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.clock import SystemClock, TimedIds
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.adapters.stores.preferences import Preferences
from navigator_kernel.bootstrap.built_in import changed_by, open_built_in, open_changes
from navigator_kernel.bootstrap.consents import open_consents
from navigator_kernel.bootstrap.extensions import LoadedPlugins, open_plugins
from navigator_kernel.bootstrap.lifecycle import open_lifecycle
from navigator_kernel.bootstrap.models import open_desk, open_judge, open_models, open_specialist, open_tools
from navigator_kernel.bootstrap.parts import (
    box_writer,
    open_audit,
    open_catalogue,
    open_journal,
    open_lessons,
    open_mapping,
    open_meaning,
    open_redaction,
    open_run_log,
    open_sandbox,
    open_underway,
    state_writer,
    writer_for,
)
from navigator_kernel.bootstrap.places import (
    box_of,
    preference_pages,
    project_state,
    scripts,
    shipped_digests,
    shipped_home,
)
from navigator_kernel.bootstrap.plugin_parts import dispatcher_of, read_agent, read_notice, router_of
from navigator_kernel.bootstrap.servers import approved_tools, open_pins, open_servers
from navigator_kernel.config.settings import user_state
from navigator_kernel.dispatch import InProcessDispatcher
from navigator_kernel.errors import NotFound
from navigator_kernel.ports import Agent, AgentPorts, Clock, Kernel, ProjectPorts
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.sandbox.contain import PackagedRunner
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.values.job import NPM
from navigator_kernel.values.owner import Viewer
from navigator_kernel.values.packet import shown_path

if TYPE_CHECKING:
    from navigator_kernel.adapters.files.writer import FolderWriter
    from navigator_kernel.adapters.processes.environments import Environments
    from navigator_kernel.adapters.stores.audit import AuditLog
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.model_ports import ModelRegistry, Tools, Underway
    from navigator_kernel.plugins import Plugins
    from navigator_kernel.routing.meaning import SemanticRanker
    from navigator_kernel.sandbox.consents import ConsentStore
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
    from navigator_kernel.values.chat import GuardedTool
    from navigator_kernel.values.redact import Redact


def assemble(
    root: Path,
    settings: Settings,
    clock: Clock | None = None,
    *,
    unsafe: bool = False,
    here: Path | None = None,
    shared: SharedParts | None = None,
) -> Kernel:
    """Creates the kernel for the project at `root`, without writing anything or starting a process. With `unsafe`,
    commands run unconfined if nothing can confine them. Paths of a message start at `here`, or at the current folder. A
    kernel takes one turn at a time; `shared` has the parts that several kernels of a process share. NotFound if `root`
    is not a folder."""
    files = ProjectFiles(_folder(root), here or Path.cwd(), viewer := Viewer())
    clock, shared = clock or SystemClock(), shared or share(root, settings)
    extensions = shared.extensions
    catalogue, redact = shared.catalogue, open_redaction(settings)
    audit, mapping, plugins = open_audit(root, redact), open_mapping(root), extensions.plugins
    consents = open_consents(audit)
    allowed, kept, servers = scripts(root), _kept(root, redact), tuple(sorted(settings.servers))
    ports = _ports(root, settings, catalogue, consents, audit, clock, viewer, unsafe=unsafe)
    (agents, observe), own = (
        _agents(extensions, ports),
        CascadeRouter(catalogue, mapping, allowed, servers, shared.meaning),
    )
    desk = _desk(project_ports(root, shared.meaning), plugins, consents, audit, settings, ports, kept["underway"])
    return Kernel(
        root=root,
        settings=settings,
        catalogue=catalogue,
        mapping=mapping,
        router=router_of(plugins, catalogue, own),
        agents=agents,
        dispatcher=dispatcher_of(plugins, agents, InProcessDispatcher(agents, clock, observe), clock),
        consents=consents,
        files=files,
        root_files=ProjectFiles(root, root, viewer),
        memory=Preferences(preference_pages(root, consents)),
        writer=writer_for("turn", root),
        box=box_of(root),
        keep=partial(_keep, root, audit),
        clock=clock,
        ids=TimedIds(clock),
        scripts=allowed,
        **kept,
        **_hooks(extensions),
        viewer=viewer,
        redact=redact,
        audit=audit,
        changed=partial(changed_by, root),
        undo=lambda run: open_changes(root).undo(run),
        **_minds(root, settings, catalogue, clock, desk, redact, files, kept["underway"]),
    )


class SharedParts(NamedTuple):
    """The parts that several kernels of one process share: the skills, the index that messages are matched with, and
    the plugins."""

    catalogue: ResourceCatalogue
    meaning: SemanticRanker
    extensions: LoadedPlugins


def share(root: Path, settings: Settings, extensions: LoadedPlugins | None = None) -> SharedParts:
    """Opens the parts that several threads may use at once; nothing is read before their first use."""
    held = extensions or open_plugins(_folder(root))
    return SharedParts(open_catalogue(root, held.sources(root)), open_meaning(root, settings, held.plugins), held)


def _folder(root: Path) -> Path:
    if not root.is_dir():
        raise NotFound(f"no folder is called {str(root)!r}", hint="name the project's folder")
    return root


def _kept(root: Path, redact: Redact) -> dict[str, Any]:
    """The stores that a turn writes to: journal, lessons, run log, interrupted calls."""
    log, lessons = open_run_log(root), open_lessons(root, redact)
    held = {"journal": open_journal(root, redact), "lessons": lessons, "run_log": log}
    return {**held, "underway": open_underway(root, redact)}


def _hooks(extensions: LoadedPlugins) -> dict[str, Any]:
    """Functions that call the hooks of plugins, and one that returns the failures of plugins."""
    plugins = extensions.plugins
    return {
        "precheck_hook": lambda count: plugins.first("kernel_precheck", count, read_notice),
        "finish_hook": lambda reply: plugins.all("kernel_finish_turn", reply),
        "failures": lambda: tuple(failure.to_dict() for failure in plugins.failures),
    }


def project_ports(root: Path, meaning: SemanticRanker) -> ProjectPorts:
    """The services of the project for plugins, with the encoder of `meaning`; nothing is opened yet."""
    state = project_state(root)
    return ProjectPorts(
        root=root, state=state.folder, writer=state_writer(state), encoder=lambda: meaning.index.encoder
    )


def _desk(
    project: ProjectPorts,
    plugins: Plugins,
    consents: ConsentStore,
    audit: AuditLog,
    settings: Settings,
    ports: AgentPorts,
    underway: Underway,
) -> Callable[[Tools], Tools]:
    """A factory for the tools of skills, given the tools of every skill."""
    more = partial(_of_servers, settings, consents, ports)
    held, hosts = settings.policy, settings.policy.fetch
    open_built = partial(open_built_in, project.root, ports.catalogue, ports.sandbox, consents, audit, hosts)
    built_in = partial(open_built, underway.intend, policy=held, allow=settings.allow)
    return partial(open_desk, project, plugins, consents, audit, settings, more, built_in)


def _of_servers(settings: Settings, consents: ConsentStore, ports: AgentPorts) -> Sequence[GuardedTool]:
    """The tools of MCP servers; imported only if there is a server."""
    if not settings.servers:
        return ()

    return approved_tools(settings, consents, ports.mcp)


def _minds(
    root: Path,
    settings: Settings,
    catalogue: ResourceCatalogue,
    clock: Clock,
    desk: Callable[[Tools], Tools],
    redact: Redact,
    files: ProjectFiles,
    underway: Underway,
) -> dict[str, Any]:
    """The models, the judge and the specialist that use them, and the tools for other agents' models."""
    models: ModelRegistry | None = open_models(settings)
    judge = open_judge(settings, models, catalogue)
    box = box_of(root) / "workspace"
    specialist = open_specialist(settings, models, catalogue, clock, desk, redact, root, box, files.named, underway)
    tools = partial(open_tools, desk, catalogue)
    return {"models": models, "judge": judge, "specialist": specialist, "tools": tools}


def _ports(
    root: Path,
    settings: Settings,
    catalogue: ResourceCatalogue,
    consents: ConsentStore,
    audit: AuditLog,
    clock: Clock,
    viewer: Viewer,
    *,
    unsafe: bool,
) -> AgentPorts:
    """The services of agents; processes that they start go through the gate."""
    workspace, contained = _workspace(root), open_sandbox(unsafe=unsafe)
    fresh = partial(fresh_folder, partial(box_writer, root))
    gate = ConsentGate(consents, PackagedRunner(contained, _made), settings.policy, audit, fresh, viewer, _makeable)
    return AgentPorts(
        root=root,
        catalogue=catalogue,
        sandbox=gate,
        consents=consents,
        lifecycle=open_lifecycle(root),
        mcp=open_servers(root, settings, gate, contained, open_pins(settings, consents, audit), workspace),
        clock=clock,
        scripts=scripts(root),
        shipped=shipped_digests(),
        workspace=workspace,
        release=shipped_home().bin,
        answers={"doctor": partial(_doctor, root, settings)},
    )


def _doctor(root: Path, settings: Settings, args: Sequence[str]) -> tuple[int, str]:
    from navigator_kernel.bootstrap.health import answered  # imported only on request

    return answered(root, lambda: settings, lambda: assemble(root, settings), args)


def _agents(
    extensions: LoadedPlugins, ports: AgentPorts
) -> tuple[Mapping[str, Agent], Callable[[str, BaseException], None]]:
    """Agents by name and alias, and what notes an error of one with its plugin. The first of a name wins; others, and
    other objects, are reported as failures."""
    found: dict[str, Agent] = {}
    plugins, hook, owners = extensions.plugins, "kernel_register_agents", dict[str, str]()
    registered = plugins.all(hook, ports, read_agent)
    for plugin, agent in registered:
        if agent.name in found:
            plugins.fail(plugin, hook, ValueError(f"an agent called {agent.name!r} exists already"))
        else:
            found[agent.name], owners[agent.name] = agent, plugin
    for agent in tuple(found.values()):
        for alias in agent.aliases:
            found.setdefault(alias, agent)

    def observe(agent: str, error: BaseException) -> None:
        plugins.fail(owners[found[agent].name], "handle", error)

    return found, observe


def _made(requirements: Sequence[str]) -> Path:
    """Returns the environment with these packages, all of Python or all of Node, and makes it if it is missing. It is
    kept outside every project, because its contents count as agreed to."""
    environments, name = _environments(requirements)
    return environments.path(name) or environments.make(name, requirements)


def _makeable(packages: Sequence[str]) -> None:
    """NotLoadable if packages are missing and the program that would install them is, too."""
    for is_node in (False, True):
        if wanted := [one for one in packages if one.startswith(NPM) == is_node]:
            environments, name = _environments(wanted)
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


def _workspace(root: Path) -> Callable[[str], Path]:
    def workspace(run: str) -> Path:
        """Returns `mybox/workspace/<run>`, and makes it if it is missing."""
        path = box_of(root) / "workspace" / run
        box_writer(root).make_folder(path)
        return path

    return workspace


def _keep(root: Path, audit: AuditLog, run: str, name: str, data: bytes) -> str:
    """Records and writes a file of a run. Returns its path for messages, relative to the project if it lies in it."""
    path = box_of(root) / "workspace" / run / name
    shown = shown_path(path, root)
    audit.record("wrote", run=run, path=shown, sha256=hashlib.sha256(data).hexdigest())
    box_writer(root).write(path, data)
    return shown


def fresh_folder(writer: Callable[[], FolderWriter], folder: Path) -> Path:
    """Returns `folder` if it is empty, else a new folder in it: no process writes among the files of another one."""
    with os.scandir(folder) as entries:
        if next(entries, None) is None:
            return folder
    number = 2
    while os.path.lexists(folder / str(number)):
        number += 1
    writer().make_folder(folder / str(number))
    return folder / str(number)
