"""The sentences that only clients of other protocols show, each in English and Chinese."""

from __future__ import annotations

from collections.abc import Mapping

OF_CLIENTS: Mapping[str, tuple[str, str]] = {
    "host.is.yes": ("yes", "是"),
    "host.is.no": ("no", "否"),
    "host.is.partly": ("partly", "部分"),
    "host.is.unknown": ("unknown", "未知"),
    "host.restart": ("restart {host} to use Navigator", "重启 {host} 后即可使用 Navigator"),
    "host.has": ("{host} already has Navigator", "{host} 中已有 Navigator"),
    "host.restart_without": ("restart {host} to stop using Navigator", "重启 {host} 后不再使用 Navigator"),
    "host.has_not": ("{host} has no entries of Navigator", "{host} 中没有 Navigator 的设置"),
    "host.listed": (
        "Claude Code also lists the {count} skills of .claude/skills itself, with about {tokens} tokens in every "
        "session; navigator host install claude-code --hide-skills leaves the choice to Navigator",
        "Claude Code 自身也会列出 .claude/skills 中的 {count} 个技能，每个会话约占 {tokens} 个 token；"
        "navigator host install claude-code --hide-skills 可将选择交给 Navigator",
    ),
    "host.beyond": (
        "{count} of them do not fit in its list, so its model does not see their descriptions",
        "其中 {count} 个超出其列表容量，模型看不到它们的描述",
    ),
    "head.requests": ("requests", "请求"),
    "head.tokens in": ("tokens in", "输入 token"),
    "head.from a cache": ("from a cache", "来自缓存"),
    "head.tokens out": ("tokens out", "输出 token"),
    "head.cost": ("cost", "费用"),
    "head.host": ("host", "智能体"),
    "head.installed": ("installed", "已安装"),
    "head.files": ("files", "文件"),
    "openai.answer": ("Answer `yes` or `no`.", "请回复“是”或“否”。"),
    "openai.may_not": (
        "Answer `no`, or approve it elsewhere: this token does not have the role approve.",
        "请回复“否”，或在别处批准：此令牌没有 approve 角色。",
    ),
}
