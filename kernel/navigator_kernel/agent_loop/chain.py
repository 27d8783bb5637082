"""Combines several models into one: if a model fails before its first word, the next one is asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import KernelError, ModelFailed
from navigator_kernel.values.chat import Spent, Tried, spent_of

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.values.chat import Asked, Completion

# Failures that another model would not avoid
OWN_FAULT = frozenset({"filtered", "refused", "over_budget"})


class ModelChain(Struct, frozen=True):
    """Implements `model_ports.ChatModel` over one or more models."""

    models: Sequence[ChatModel]

    @property
    def name(self) -> str:
        return self.models[0].name

    @property
    def context(self) -> int:
        """The smallest that is known, so that each model can take over."""
        return min((model.context for model in self.models if model.context), default=0)

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """Lists earlier failures in `tried`. Raises the last failure, with all of them in `data["tried"]`."""
        heard, tried, began = False, list[Tried](), time.monotonic()

        def tell(text: str) -> None:
            nonlocal heard
            heard = True
            if told is not None:
                told(text)

        for model in self.models:
            try:
                left = max(asked.limit - (time.monotonic() - began), 1.0)
                done = await model.complete(replace(asked, limit=left), tell if told is not None else None)
                return replace(done, tried=(*tried, *done.tried))
            except KernelError as error:
                took = error.data.get("usage")
                spent = spent_of(took) if took else Spent()
                tried.append(Tried(model=model.name, why=error.message, spent=spent))
                error.data = {**error.data, "tried": [one.to_dict() for one in tried]}
                if model is self.models[-1] or heard or _is_own_fault(error, asked):
                    raise
        raise AssertionError("the last model returns or raises")

    async def close(self) -> None:
        for model in self.models:
            await model.close()


def _is_own_fault(error: KernelError, asked: Asked) -> bool:
    """Whether another model would fail in the same way."""
    kind = error.data.get("kind") if isinstance(error, ModelFailed) else None
    return kind in OWN_FAULT or (kind == "rejected" and asked.shape is not None)
