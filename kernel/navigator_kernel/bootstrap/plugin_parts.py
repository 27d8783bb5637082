"""Loads plugins: shipped agents by path, installed packages by entry point, other folders only when trusted. The
objects that they bring are checked, and wrapped so that each call is guarded; the kernel's own take over where one
fails."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.bootstrap.places import installed_plugins, left_out, open_consents, shipped_home
from navigator_kernel.config.settings import user_file
from navigator_kernel.dispatch import GRACE
from navigator_kernel.errors import KernelError
from navigator_kernel.guard import Hung, limit
from navigator_kernel.model_ports import Tool
from navigator_kernel.plugins import Plugins, add_entry_points, add_folders, build_manager, warn
from navigator_kernel.ports import Agent
from navigator_kernel.skills.catalog.receipts import folder_digest
from navigator_kernel.values.chat import GuardedTool, Result, ToolSpec
from navigator_kernel.values.http.endpoint import Endpoint
from navigator_kernel.values.packet import Report
from navigator_kernel.values.reply import Notice
from navigator_kernel.values.route import Action, Retrieval

if TYPE_CHECKING:
    from navigator_kernel.events import Event
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.ports import AgentPorts, Catalogue, Dispatcher, DispatchPorts, ProjectPorts, Router
    from navigator_kernel.values.packet import Packet

T = TypeVar("T")
ROUTERS, DISPATCHERS = "kernel_register_routers", "kernel_register_dispatchers"


class LoadedPlugins(Struct, frozen=True, kw_only=True):
    """The loaded plugins, and the folders that were found and are not trusted."""

    plugins: Plugins
    untrusted: tuple[Path, ...] = ()

    def sources(self, root: Path) -> tuple[Path, ...]:
        """Folders of skills that plugins bring."""

        def read(item: Any) -> Path:
            if "\0" in str(folder := Path(item)):
                raise ValueError("a path holds a null character")
            return folder

        return tuple(folder for _, folder in self.plugins.all("kernel_register_sources", root, read))


def open_plugins(root: Path, *, agents: bool = True, tell: Callable[[str], None] = warn) -> LoadedPlugins:
    """Loads all plugins but those that NAVIGATOR_PLUGINS leaves out. A project's `agents/` is loaded only if its digest
    is trusted. `tell` is called with each failure."""
    plugins, without = build_manager(tell=tell), left_out()
    untrusted: list[Path] = []
    if agents:
        own = shipped_home().agents
        add_folders(plugins, own, "agents", shipped=True)
        for prefix, folder in (("project", root / "agents"), ("user", user_file().parent / "agents")):
            if (
                "off" in without
                or not folder.is_dir()
                or folder.resolve() == own.resolve()
                or not any(folder.glob("*/agent.py"))
            ):
                continue
            if open_consents().trusted(agents_subject(folder.resolve())):
                add_folders(plugins, folder, prefix, without)
            else:
                untrusted.append(folder)
    add_entry_points(plugins, installed_plugins())
    return LoadedPlugins(plugins=plugins, untrusted=tuple(untrusted))


def agents_subject(folder: Path) -> str:
    """The subject of trust in a folder of agents: its path and digest."""
    return f"agents:{folder}@{folder_digest(folder)}"


def agents_of(plugins: Plugins, ports: AgentPorts) -> tuple[Mapping[str, Agent], Mapping[str, str]]:
    """The agents by name and alias, and the plugin of each by name. The first of a name wins; others, and other
    objects, are recorded as failures."""
    hook, agents, owners = "kernel_register_agents", dict[str, Agent](), dict[str, str]()
    for plugin, agent in plugins.all(hook, ports, read_agent):
        if agent.name in agents:
            plugins.fail(plugin, hook, ValueError(f"an agent called {agent.name!r} exists already"))
        else:
            agents[agent.name], owners[agent.name] = agent, plugin
    for agent in tuple(agents.values()):
        for alias in agent.aliases:
            agents.setdefault(alias, agent)
    return agents, owners


def encoder_of(plugins: Plugins, root: Path) -> Encoder | None:
    """The first encoder that a plugin provides; an object that is not an encoder is recorded as a failure."""
    from navigator_kernel.adapters.index.use_encoder import ENCODING, PluginEncoder, read_encoder

    hook = "kernel_register_encoders"
    for name, (encoder, key, dimensions) in plugins.all(hook, root, read_encoder):
        return PluginEncoder(encoder, key, dimensions, partial(plugins.call, name, hook, seconds=ENCODING))
    return None


def tools_of(plugins: Plugins, project: ProjectPorts, seconds: float) -> Sequence[GuardedTool]:
    """The tools of plugins, each with `seconds` for a call; anything that is neither a tool nor an endpoint, and a tool
    whose name is taken, is recorded as a failure."""
    from navigator_kernel.tools.built_in import specs

    found: dict[str, GuardedTool] = {}
    taken = {spec.name for spec in specs("en", ("",))}
    for hook, given in (("kernel_register_tools", project.root), ("kernel_register_tools_and_endpoints", project)):
        for plugin, tool in plugins.all(
            hook, given, lambda item: None if isinstance(item, Endpoint) else read_tool(item)
        ):
            if tool is None:  # an endpoint, for `navigator serve` only
                continue
            if tool.name in taken or tool.name in found:
                plugins.fail(plugin, hook, ValueError(f"a tool called {tool.name!r} exists already"))
                continue
            found[tool.name] = tool if plugins.is_shipped(plugin) else limited(tool, plugins, plugin, seconds)
    return tuple(found.values())


def router_of(plugins: Plugins, catalogue: Catalogue, own: Router) -> Router:
    """The first router of a plugin, or `own`."""
    for name, held in plugins.all(ROUTERS, catalogue, partial(_having, methods=("recognise", "retrieve"))):
        return PluginRouter(plugins=plugins, plugin=name, held=held, own=own, catalogue=catalogue)
    return own


def dispatcher_of(plugins: Plugins, agents: Mapping[str, Agent], ports: DispatchPorts) -> Dispatcher:
    """The first dispatcher of a plugin, or the in-process one."""
    read = partial(_having, methods=("submit", "result", "cancel"))
    for name, held in plugins.all(DISPATCHERS, agents, read, ports=ports):
        return PluginDispatcher(plugins=plugins, plugin=name, held=held, own=ports.local(), ports=ports)
    return ports.local()


def read_stores(item: Any) -> Any:
    """The item; TypeError if it is no `ports.SharedStores`."""
    return _having(item, ("open", "claim", "place"))


def read_agent(item: Any) -> Agent:
    """The item; TypeError if it is not an agent."""
    if not isinstance(item, Agent):
        raise TypeError(f"{type(item).__name__} is not an agent")
    if not all(isinstance(word, str) for word in (item.name, item.description, *item.aliases)):
        raise TypeError("an agent's name, aliases and description are texts")
    return item


def read_notice(item: Any) -> Notice:
    if not isinstance(item, Notice):
        raise TypeError(f"{type(item).__name__} is not a notice")
    return item


def read_tool(item: Any) -> GuardedTool:
    """The tool, with all that it says about itself; TypeError if the item is not a tool."""
    if not isinstance(item, Tool) or not isinstance(spec := item.spec, ToolSpec) or not spec.schema:
        raise TypeError(f"{type(item).__name__} is not a tool")
    if not all(isinstance(word, str) for word in (item.name, item.confirm, *item.effects)):
        raise TypeError("a tool's name, confirm and effects are texts")
    outward, effects = bool(getattr(item, "outward", True)), tuple(item.effects)
    return GuardedTool(name=item.name, spec=spec, run=item.run, effects=effects, confirm=item.confirm, outward=outward)


def limited(tool: GuardedTool, plugins: Plugins, plugin: str, seconds: float) -> GuardedTool:
    """A plugin's tool with `seconds` for each call; a failure is recorded, and is an error for the model."""

    async def run(arguments: Mapping[str, Any]) -> Result:
        async def ran() -> Result:
            result = await tool.run(arguments)
            if not isinstance(result, Result):
                raise TypeError(f"it returned {type(result).__name__}, not a Result")
            return result

        try:
            return await plugins.run(plugin, f"tool {tool.name}", ran, seconds)
        except Exception as error:  # noqa: BLE001 - it is recorded; the model gets the error, the turn continues
            return Result(error=f"{type(error).__name__}: {error}")

    return replace(tool, run=run)


class PluginRouter(Struct, frozen=True, kw_only=True):
    """Implements `ports.Router` over a plugin's router; where that fails, the kernel's `own` answers."""

    plugins: Plugins
    plugin: str
    held: Router
    own: Router
    catalogue: Catalogue

    def recognise(self, text: str) -> Action | None:
        def recognised() -> Action | None:
            action: object = self.held.recognise(text)
            if not isinstance(action, (*get_args(Action), type(None))):
                raise TypeError(f"{type(action).__name__} is not an action")
            checked: Action | None = None if action is None else _converted(action, type(action))
            return checked

        try:
            return self.plugins.call(self.plugin, ROUTERS, recognised)
        except Exception:  # noqa: BLE001 - it is recorded
            return self.own.recognise(text)

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        def retrieved() -> Retrieval:
            retrieval: object = self.held.retrieve(text, k)
            if not isinstance(retrieval, Retrieval):
                raise TypeError(f"{type(retrieval).__name__} is not a Retrieval")
            checked: Retrieval = _converted(retrieval, Retrieval)
            for name in (*(one.name for one in checked.candidates), *checked.offered):
                if self.catalogue.find(name) is None:
                    raise ValueError(f"no skill is called {name!r}")
            return checked

        try:
            return self.plugins.call(self.plugin, ROUTERS, retrieved)
        except Exception:  # noqa: BLE001 - it is recorded
            return self.own.retrieve(text, k, files)

    def varied(self, names: Sequence[str]) -> Sequence[str]:
        return self.own.varied(names)


class PluginDispatcher(Struct, frozen=True, kw_only=True):
    """Implements `ports.Dispatcher` over a plugin's dispatcher. A packet that it leaves, or that it fails to take with
    an error that is not the kernel's, goes to the kernel's `own`; one that it may have accepted is never sent twice."""

    plugins: Plugins
    plugin: str
    held: Dispatcher
    own: Dispatcher
    ports: DispatchPorts
    _packets: dict[str, Packet] = field(default_factory=dict)
    _refused: dict[str, Report] = field(default_factory=dict)

    async def submit(self, packet: Packet) -> str:
        async def submitted() -> str | None:
            task: object = await self.held.submit(packet)
            if not isinstance(task, str | None):
                raise TypeError(f"submit returned {type(task).__name__}, not the id of a task")
            return task

        task: str | None = None
        try:
            task = await self._run(submitted, limit())
        except Hung:
            raise
        except KernelError as error:
            task = packet.context.idempotency_key
            self._refused[task] = self.ports.failed(packet, error, 0)
        except Exception:  # noqa: BLE001, S110 - it is recorded
            pass
        if task is None:
            return await self.own.submit(packet)
        self._packets[task] = packet
        return task

    async def result(self, task: str) -> Report:
        packet = self._packets.get(task)
        if packet is None:
            return await self.own.result(task)
        if (refused := self._refused.pop(task, None)) is not None:
            del self._packets[task]
            return refused
        began = self.ports.clock.monotonic()

        async def reported() -> Report:
            report = await self.held.result(task)
            if not isinstance(report, Report):
                raise TypeError(f"result returned {type(report).__name__}, not a Report")
            return report

        try:
            report = await self._run(reported, packet.constraints.timeout + GRACE)
        except Exception as error:  # noqa: BLE001 - it is recorded, and the report says so
            report = self.ports.failed(packet, error, self.ports.clock.monotonic() - began)
        self._packets.pop(task, None)
        return report

    def events(self, task: str) -> AsyncIterator[Event]:
        return (self.held if task in self._packets else self.own).events(task)

    async def cancel(self, task: str) -> None:
        if self._packets.pop(task, None) is None:
            await self.own.cancel(task)
            return
        with suppress(Exception):  # it is recorded
            await self._run(lambda: self.held.cancel(task), limit())

    def heartbeat(self, task: str) -> float:
        return (self.held if task in self._packets else self.own).heartbeat(task)

    async def _run(self, function: Callable[[], Awaitable[T]], seconds: float) -> T:
        return await self.plugins.run(self.plugin, DISPATCHERS, function, seconds)


def _having(item: Any, methods: Sequence[str]) -> Any:
    for name in methods:
        if not callable(getattr(item, name, None)):
            raise TypeError(f"{type(item).__name__} has no method {name!r}")
    return item


def _converted(value: Any, kind: type[Any]) -> Any:
    """The value with its fields checked; numbers of other libraries become Python's."""
    return msgspec.convert(msgspec.to_builtins(value, enc_hook=float), kind, strict=False)
