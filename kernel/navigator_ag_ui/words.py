"""The sentences that only a client of AG-UI shows, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from navigator_kernel.text import Language

GONE: Mapping[Language, str] = {
    "en": "Nothing waits for this answer: it was answered or withdrawn, or was asked over a day ago.",
    "zh": "没有等待该回答的操作：它已被回答或撤回，或提问已超过一天。",
}
ANSWER_FIRST: Mapping[Language, str] = {
    "en": "An approval waits, and your message was not read. Answer it first, then send the message again.\n{question}",
    "zh": "有一项操作正在等待你的确认，刚才的消息未被处理。请先回答，再重新发送。\n{question}",
}
