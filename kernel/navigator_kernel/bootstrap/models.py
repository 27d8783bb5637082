"""Creates the configured models, each when it is first used."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from navigator_kernel.bootstrap.places import private_writer
from navigator_kernel.config.settings import Models, user_state

if TYPE_CHECKING:
    import asyncio

    from navigator_kernel.agent_loop.models import ModelChain
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.values.chat import Tooling


class ModelRegistry:
    """The configured models of the person. Each is opened once for each event loop, as its connections belong to it;
    with `stays`, they remain open for later turns."""

    def __init__(self, models: Models, *, stays: bool = False) -> None:
        self.models, self._stays = models, stays
        self._open: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, ModelChain]] = WeakKeyDictionary()

    def knows(self, name: str) -> bool:
        """Whether the person's settings have `name`: no others count, so that no skill sends text to its own
        service."""
        return name in {*self.models.aliases, *self.models.aliases.values(), self.models.default, *self.models.fallback}

    def chain(self, name: str = "") -> ModelChain:
        """The model `name` with its fallbacks; the default model if `name` is empty or not known (X-32)."""
        import asyncio  # not at the start, as commands about models have no event loop

        from navigator_kernel.agent_loop.models import ModelChain

        wanted = name if name and self.knows(name) else self.models.default
        opened = self._open.setdefault(asyncio.get_running_loop(), {})
        if wanted not in opened:
            others = [one for one in self.models.fallback if one != wanted]
            opened[wanted] = ModelChain([open_model(one, self.models) for one in (wanted, *others)])
        return opened[wanted]

    async def close(self, *, ends: bool = False) -> None:
        """Closes the models of this event loop that no other turn is asking, after a turn, or because the loop
        `ends`."""
        import asyncio

        if ends or not self._stays:
            for model in self._open.get(asyncio.get_running_loop(), {}).values():
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


async def load_client(models: Models) -> None:
    """Imports the default model's modules, so that the first turn need not: 400 ms. It looks for no key."""
    from navigator_kernel.adapters.models.chat_model import WireModel
    from navigator_kernel.adapters.models.providers import Key

    await WireModel(models.default, models, key=Key("none")).load()
