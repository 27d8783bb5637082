"""The words of `[policy] deny`, and what each of them denies: to skills, to `!commands`, and to the tools of models.

The gate and the tools refuse by this table, `navigator policy explain` prints it, and the page on safety shows it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from navigator_kernel.values.allowed import RUN, also_denied

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Policy

# What the tool `run` does, and the words that deny it: a command may be a line of a shell, or start one
COMMAND, SCRIPT = ("shell",), ("script", "skills")


def denial(policy: Policy, skill: str, words: Iterable[str]) -> str:
    """The rule of the person's settings that denies one of `words` to `skill` ("" without one), empty if none does."""
    own = f"policy.skills.{skill}" if skill else "policy.direct"
    for word in words:
        for where, denied in (("policy", policy.deny), (own, policy.skills.get(skill, frozenset()))):
            if hit := next((one for one in sorted(denied) if fnmatchcase(word, one)), ""):
                return f"your settings: [{where}] deny {hit}"
    return ""


def tool_denial(policy: Policy, skill: str, tool: str, *, by_server: bool = False) -> str:
    """The rule that denies every call of `tool`, empty if none does; `by_server` says that an MCP server has it."""
    words = ("tools", f"tool:{tool}", *also_denied(tool), *(("mcp",) if by_server else ()))
    rule = denial(policy, skill, words)
    if rule or tool != RUN:
        return rule
    return run_denial(policy, skill, is_script=False) and run_denial(policy, skill, is_script=True)


def run_denial(policy: Policy, skill: str, *, is_script: bool) -> str:
    """The rule that denies commands, or the skill's own scripts, to the tool `run`; empty if none does."""
    return denial(policy, skill, SCRIPT if is_script else COMMAND)


def project_denial(policy: Policy, skill: str) -> str:
    """The rule that denies the files of the project to tools, empty if none does."""
    return denial(policy, skill, ("project",))
