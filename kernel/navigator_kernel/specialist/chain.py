"""Several models as one: the next is asked where one fails before it has said anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from navigator_kernel.errors import KernelError, ModelFailed

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.values.chat import Asked, Completion

# What another model would not do better
OWN_FAULT = frozenset({"filtered", "over_budget"})


@dataclass(frozen=True, slots=True)
class ModelChain:
    """Implements `ports.ChatModel` over one and more."""

    models: Sequence[ChatModel]

    @property
    def name(self) -> str:
        return self.models[0].name

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """The last failure, with those before it in `data["tried"]`."""
        heard, tried = False, []

        def tell(text: str) -> None:
            nonlocal heard
            heard = True
            if told is not None:
                told(text)

        for model in self.models:
            try:
                return await model.complete(asked, tell if told is not None else None)
            except KernelError as error:
                tried.append({"model": model.name, "why": error.message})
                error.data = {**error.data, "tried": tried}
                last = model is self.models[-1]
                if last or heard or (isinstance(error, ModelFailed) and error.data.get("kind") in OWN_FAULT):
                    raise
        raise AssertionError("the last model returns or raises")

    async def close(self) -> None:
        for model in self.models:
            await model.close()
