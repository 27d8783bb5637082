"""The sentences that only clients of other protocols show, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

OF_CLIENTS: Mapping[str, tuple[str, str]] = {
    "acp.skill": ("skill {skill}", "技能 {skill}"),
    "acp.allow": ("Yes, this once", "同意这一次"),
    "acp.session": ("Yes, in this session", "同意，本次会话中有效"),
    "acp.reject": ("No", "不同意"),
    "openai.answer": ("Answer `yes` or `no`.", "请回复“是”或“否”。"),
    "openai.may_not": (
        "Answer `no`, or approve it elsewhere: this token does not have the role approve.",
        "请回复“否”，或在别处批准：此令牌没有 approve 角色。",
    ),
}
