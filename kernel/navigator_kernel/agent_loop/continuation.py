"""Decides whether a model's answer is complete: by rules, or by asking it if no rule decides (X-27, JIT-7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from navigator_kernel.errors import KernelError
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, lazy_compile
from navigator_kernel.values.chat import Asked, ChatMessage, Completion

if TYPE_CHECKING:
    from navigator_kernel.model_ports import ChatModel
    from navigator_kernel.values.work import AgentState

END = 200  # characters at the end of an answer that are searched for an announcement
LIMIT = 20.0  # seconds
_ANNOUNCES = lazy_compile(
    r"\b(?:next,? i(?:['’]ll| will)|i(?:['’]ll| will) (?:now|then|next)|let me (?:now|next)|now i(?:['’]ll| will))\b"
    r"[^.!?]*[.:…]*\s*$"
    r"|(?:接下来|下一步|然后)[，,]?我?(?:将|会|要)[^。！？]*[。：…]*\s*$|(?:现在|让)我(?:来|将|再)[^。！？]*[。：…]*\s*$",
    re.IGNORECASE,
)
_YES = lazy_compile(r'"continue"\s*:\s*true')


async def goes_on(
    progress: AgentState, model: ChatModel, language: Language, lost: Callable[[KernelError], None]
) -> tuple[bool, Completion | None]:
    """Whether the answer goes on: yes if it was cut off; if it announces work, after some was done, the model is asked;
    otherwise no. The model's reply is returned, too, as it has a cost; `lost` gets a failure, which may also have
    one."""
    if progress.finish == "length":
        return True, None
    text = progress.messages[-1].text[-END:]
    if not progress.rounds or not _ANNOUNCES.search(text):
        return False, None
    asked = Asked(
        messages=(
            ChatMessage(role="system", text=say("prompt.continue_check", language)),
            ChatMessage(role="user", text=text),
        ),
        temperature=0.1,
        tokens=200,
        limit=LIMIT,
    )
    try:
        done = await model.complete(asked)
    except KernelError as error:
        lost(error)
        return False, None
    return _YES.search(done.message.text) is not None, done
