"""Creates the configured models, each when it is first used."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from navigator_kernel.adapters.stores.project_state import ProjectWriter
from navigator_kernel.bootstrap.places import private_writer
from navigator_kernel.config.settings import user_state
from navigator_kernel.values.http.endpoint import Endpoint

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from navigator_kernel.config.settings import Models, Settings
    from navigator_kernel.model_ports import BuiltIn, ChatModel, Judge, Specialist, Tools, Underway
    from navigator_kernel.model_ports import ModelRegistry as RegistryPort
    from navigator_kernel.plugins import Plugins
    from navigator_kernel.ports import Audit, Catalogue, Clock, Consents, ProjectPorts
    from navigator_kernel.routing.phase_one import Mode
    from navigator_kernel.values.chat import GuardedTool, Spent, Tooling
    from navigator_kernel.values.redact import Redact
    from navigator_kernel.values.request import Session

DIRECT = 64  # server tools offered for a message without a skill


class ModelRegistry(Struct, frozen=True):
    """Implements `model_ports.ModelRegistry`."""

    models: Models
    _open: dict[str, ChatModel] = field(default_factory=dict)

    def knows(self, name: str) -> bool:
        """Whether the person's settings have `name`: no others count, so that no skill sends text to its own
        service."""
        return name in {*self.models.aliases, *self.models.aliases.values(), self.models.default, *self.models.fallback}

    def chain(self, name: str = "") -> ChatModel:
        from navigator_kernel.agent_loop.models import ModelChain

        wanted = name if name and self.knows(name) else self.models.default
        if wanted not in self._open:
            others = [one for one in self.models.fallback if one != wanted]
            self._open[wanted] = ModelChain([open_model(one, self.models) for one in (wanted, *others)])
        return self._open[wanted]

    async def close(self) -> None:
        for model in self._open.values():
            await model.close()


def tooling_file() -> Path:
    """The file with the results of `navigator model test`."""
    return user_state() / "models.json"


def tooling_of(name: str, models: Models) -> str:
    """How the model uses tools: from the settings, else from its test, else empty."""
    from navigator_kernel.adapters.models.providers import kept_tooling, served, spelled_out

    provider, model = spelled_out(name, models)
    held = served(provider, models)
    return (held.tools if held else "") or kept_tooling(tooling_file()).get(f"{provider}:{model}", "")


def keep_found(name: str, tooling: Tooling) -> None:
    """Keeps how the model `provider:model` uses tools, for all projects of the person."""
    from navigator_kernel.adapters.models.providers import keep_tooling

    keep_tooling(tooling_file(), private_writer(user_state()), name, tooling)


def open_model(name: str, models: Models) -> ChatModel:
    """Opens the model, adapted to how it uses tools; by default it calls them itself."""
    from navigator_kernel.adapters.models.chat_model import WireModel
    from navigator_kernel.agent_loop.models import TextCalls, WithoutTools

    model, tooling = WireModel(name, models), tooling_of(name, models)
    return TextCalls(model) if tooling == "schema" else WithoutTools(model) if tooling == "none" else model


def open_models(settings: Settings) -> ModelRegistry | None:
    """The configured models; None if no model is set."""
    return ModelRegistry(settings.models) if settings.models.default else None


async def load_client(models: Models) -> None:
    """Imports the default model's modules, so that the first turn need not: 400 ms. It looks for no key."""
    from navigator_kernel.adapters.models.chat_model import WireModel
    from navigator_kernel.adapters.models.providers import Key

    await WireModel(models.default, models, key=Key("none")).load()


def open_specialist(
    settings: Settings,
    models: RegistryPort | None,
    catalogue: Catalogue,
    clock: Clock,
    desk: Callable[[Tools], Tools],
    redact: Redact,
    root: Path,
    box: Path,
    named: Callable[[str], Sequence[Path]],
    underway: Underway,
) -> Callable[[Session, Spent], Specialist | None]:
    """A function that returns the specialist for one turn, with tools from `desk`, or None if there is no model. It
    gets the session before the turn and the usage of the turn's choice. `box` contains the workspaces of runs, `named`
    returns the files that a message names."""

    def specialist(before: Session, spent: Spent) -> Specialist | None:
        return None if models is None else build(models, before, spent)

    def build(models: RegistryPort, before: Session, spent: Spent) -> Specialist:
        from navigator_kernel.agent_loop.loop import Budget
        from navigator_kernel.agent_loop.skill_tool import SkillTool
        from navigator_kernel.agent_loop.specialist import Specialist as Working

        held = settings.models
        return Working(
            models=models,
            catalogue=catalogue,
            tools=desk(SkillTool(catalogue)),
            clock=clock,
            root=root.resolve(),
            box=box,
            named=named,
            history=before.history,
            written=before.written,
            writer=lambda folder: ProjectWriter([folder], root),
            private=before.private,
            budget=Budget(tokens=held.turn_tokens, cost=held.turn_cost, seconds=held.turn_seconds),
            spent=spent,
            redact=redact,
            usual=settings.timeout,
            underway=underway,
        )

    return specialist


def open_judge(settings: Settings, models: RegistryPort | None, catalogue: Catalogue) -> Judge | None:
    """The judge, or None if no model may choose or there is no model."""
    if models is None or settings.router == "local_only":
        return None
    return _judge(models, catalogue, "llm_only" if settings.router == "llm_only" else "cascade")


def _judge(models: RegistryPort, catalogue: Catalogue, mode: Mode) -> Judge:
    from navigator_kernel.routing.phase_one import ModelJudge

    return ModelJudge(models.chain, catalogue, mode)


def open_tools(desk: Callable[[Tools], Tools], catalogue: Catalogue) -> Tools:
    """The tools for another agent's model, with the same checks; each instance serves one call."""
    from navigator_kernel.agent_loop.skill_tool import SkillTool

    return desk(SkillTool(catalogue))


def open_desk(
    project: ProjectPorts,
    plugins: Plugins,
    consents: Consents,
    audit: Audit,
    settings: Settings,
    more: Callable[[], Sequence[GuardedTool]],
    built_in: Callable[[], BuiltIn],
    always: Tools,
) -> Tools:
    """The built-in tools, those of plugins, and `more`, all guarded; anything else is recorded as a failure."""
    from navigator_kernel.tools.guarded import GuardedTools

    @cache
    def tools() -> Mapping[str, GuardedTool]:
        found = {tool.name: tool for tool in tools_of(plugins, project, settings.timeout)}
        for own in more():
            found.setdefault(own.name, own)
        return found

    @cache
    def direct() -> Mapping[str, GuardedTool]:
        """Sorts tools that only read first, so that they are not cut off."""
        held = sorted(more(), key=lambda tool: bool(tool.effects))
        return {tool.name: tool for tool in held[:DIRECT]}

    return GuardedTools(
        tools=tools,
        direct=direct,
        always=always,
        built_in=built_in(),
        consents=consents,
        audit=audit,
        policy=settings.policy,
    )


def tools_of(plugins: Plugins, project: ProjectPorts, seconds: float) -> Sequence[GuardedTool]:
    """The tools of plugins, each with `seconds` for a call; anything that is neither a tool nor an endpoint, and a tool
    whose name is taken, is recorded as a failure."""
    from navigator_kernel.bootstrap.plugin_parts import limited, read_tool
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
