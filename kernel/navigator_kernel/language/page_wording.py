"""Sentences that pages and other clients of the gateway show."""

from __future__ import annotations

from collections.abc import Mapping

OF_PAGES: Mapping[str, tuple[str, str]] = {
    "page.answer_first": (
        "An approval waits, and your message was not read. Answer it first, then send the message again.\n{question}",
        "有一项操作正在等待你的确认，刚才的消息未被处理。请先回答，再重新发送。\n{question}",
    ),
    "page.gone": (
        "Nothing waits for this answer: it was answered or withdrawn, or was asked over a day ago.",
        "没有等待该回答的操作：它已被回答或撤回，或提问已超过一天。",
    ),
}
