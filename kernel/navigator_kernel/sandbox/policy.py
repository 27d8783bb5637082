"""Decides what a run may do: its actor's row of the authority table, its request, and the person's policy.

A run may do only what all three allow (X-16). The gate refuses by these decisions, and `navigator policy explain`
prints them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple

from navigator_kernel.adapters.processes.process import PASSED_ON
from navigator_kernel.config.denials import denial, project_denial, run_denial, tool_denial
from navigator_kernel.sandbox.authority import TABLE, Permission
from navigator_kernel.sandbox.confinement import DISK, FILE, MEMORY, MIB, PROCESSES
from navigator_kernel.values.allowed import EVERY, FETCH, LOOKING, RUN, allowed_tools
from navigator_kernel.values.job import ASKED, OUTPUT_LIMIT, Want

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Policy
    from navigator_kernel.ports import Executor
    from navigator_kernel.values.job import Actor

Verdict = Literal["allow", "ask", "deny"]
WORDS: Mapping[Actor, str] = {
    "type_a": "skills",
    "shell": "shell",
    "script": "script",
    "mcp_server": "mcp",
    "tool": "tools",
}
GIVEN: Mapping[Want, str] = {
    "network": "reach the network",
    "packages": "use packages in an environment of its own",
    "project": "read the project",
}
OF_RUN: Mapping[bool, str] = {False: "run commands in the workspace", True: "run its own scripts"}  # by `is_script`
SAID: Mapping[Want, str] = {"network": "network: true", "packages": "dependencies", "project": "reads: project"}


class Decision(NamedTuple):
    """`rule` is the reason for the verdict, `detail` adds to it."""

    what: str
    verdict: Verdict
    rule: str
    detail: str = ""

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


class Standing(NamedTuple):
    """The facts about a skill's bytes and this machine: `trusted` to run, and `granted` everything that it wants;
    `rung` is the sandbox."""

    shipped: bool
    trusted: bool
    granted: bool
    rung: str


def refusal(
    policy: Policy, actor: Actor, name: str, wants: Collection[Want], *, is_script: bool = False
) -> Decision | None:
    """The first request of a run that the person denies, or None; `is_script` says that a tool runs a script of its
    skill."""
    if rule := denial(policy, name, (WORDS[actor],)):
        return Decision("run", "deny", rule)
    if actor == "tool" and (rule := run_denial(policy, name, is_script=is_script)):
        return Decision(OF_RUN[is_script], "deny", rule)
    rules = ((want, denial(policy, name, (want,))) for want in wants)
    return next((Decision(GIVEN[want], "deny", rule) for want, rule in rules if rule), None)


def explained(executor: Executor, standing: Standing, policy: Policy, tool: str = "") -> tuple[Decision, ...]:
    """The decisions in the order in which they are made; the first that denies what the skill wants ends a run."""
    skill = executor.skill
    if not tool:
        return tuple(_of_command(executor, standing, policy)) if skill.command else (_PROMPT,)
    if tool in EVERY and not skill.command and tool not in (skill.tools or ()):
        return _PROMPT, of_built_in(tool, executor, policy), *_within(tool, skill.name, policy)
    decisions = _of_command(executor, standing, policy) if skill.command else (_PROMPT,)
    return (*decisions, of_tool(tool, skill.name, skill.tools, policy))


def of_built_in(tool: str, executor: Executor, policy: Policy) -> Decision:
    """Whether a model that works on a prompt skill may call the built-in tool."""
    what, skill = f"call {tool}", executor.skill
    if rule := tool_denial(policy, skill.name, tool):
        return Decision(what, "deny", rule)
    if tool == FETCH and not policy.fetch:
        return Decision(what, "deny", "your settings: [policy] names no hosts in fetch")
    if not skill.allowed_tools and skill.tools is not None:
        return Decision(what, "deny", "its manifest names other tools, and has no allowed-tools")
    if not skill.allowed_tools and executor.standing == "unknown":
        return Decision(what, "deny", "you neither installed nor trust it")
    if tool not in allowed_tools(skill.allowed_tools).tools:
        return Decision(what, "deny", "its allowed-tools does not name it")
    hosts = f"only from {', '.join(policy.fetch)}" if tool == FETCH else ""
    return Decision(what, "allow" if tool in LOOKING else "ask", "built-in tool of prompt skills", hosts)


def _within(tool: str, name: str, policy: Policy) -> Iterator[Decision]:
    """What a built-in tool may do, as far as the person denies some of it."""
    if tool == RUN:
        for is_script, what in OF_RUN.items():
            rule = run_denial(policy, name, is_script=is_script)
            yield Decision(what, "deny" if rule else "ask", rule or "in the sandbox, without network")
        rule = denial(policy, name, ("packages",))
        yield Decision(GIVEN["packages"], "deny" if rule else "ask", rule or "asked with their names")
    elif tool != FETCH:
        rule = project_denial(policy, name)
        named = "a file that your message names needs no yes to be read"
        yield Decision("use files of the project", "deny" if rule else "ask", rule or named)


def of_tool(tool: str, name: str, listed: tuple[str, ...] | None, policy: Policy) -> Decision:
    """Whether the skill `name`, whose manifest lists the tools `listed`, may call `tool`."""
    what = f"call {tool}"
    if rule := tool_denial(policy, name, tool, by_server="__" in tool):
        return Decision(what, "deny", rule)
    if listed is None:
        return Decision(what, "deny", "its manifest names no tools")
    if tool in listed:
        return Decision(what, "allow", "its manifest lists it in tools")
    return Decision(what, "deny", "its manifest does not list it in tools")


_PROMPT = Decision("start a process", "deny", "it has no command", "its text is given to a model")


def _of_command(executor: Executor, standing: Standing, policy: Policy) -> Iterator[Decision]:
    row = next(right for right in TABLE if right.actor == "type_a")
    name = executor.skill.name
    yield refusal(policy, "type_a", name, ()) or _of_run(executor, standing)
    if standing.rung:
        yield Decision("be contained", "allow", f"{standing.rung} works here")
    else:
        yield Decision("be contained", "deny", "nothing here can contain it", "exit code 8; see navigator doctor")
    yield Decision("read its own folder and the files that it is given", "allow", "authority table: type_a")
    yield _of_want("project", executor, policy) or Decision(
        GIVEN["project"], "allow", "its manifest: reads: project", "but for mybox"
    )
    yield from _of_writing(row)
    for want in ASKED:
        yield _of_want(want, executor, policy) or _of_asking(want, standing)
    yield Decision("see the environment", "deny", "allow-list", f"but for {', '.join(PASSED_ON)}")
    limits = f"{MEMORY // MIB} MiB for a process, {FILE // MIB} MiB for a file, {DISK // MIB} MiB of disk"
    limits += f", {PROCESSES} processes, {OUTPUT_LIMIT // MIB} MiB of output"
    yield Decision("use the machine", "allow", "limits of the sandbox", limits)


def _of_run(executor: Executor, standing: Standing) -> Decision:
    if standing.shipped:
        return Decision("run", "allow", "its bytes are the released ones")
    if standing.trusted:
        return Decision("run", "allow", "you agreed to these bytes from there", "one that changes ends it")
    if executor.is_changed:
        return Decision("run", "deny", "its bytes differ from the installed ones", "exit code 6")
    return Decision("run", "ask", "nobody has agreed to these bytes", "exit code 9 without a yes")


def _of_writing(row: Permission) -> Iterator[Decision]:
    yield Decision(f"write to {row.writes[0]}", "allow", "authority table: type_a", "its HOME and TMPDIR")
    yield Decision("write anywhere else", "deny", "authority table: type_a")


def _of_want(want: Want, executor: Executor, policy: Policy) -> Decision | None:
    """The denial by the manifest, if it does not ask, or by the person; None if nothing denies it."""
    if want not in executor.wants:
        return Decision(GIVEN[want], "deny", f"its manifest does not say {SAID[want]}")
    rule = denial(policy, executor.skill.name, (want,))
    return Decision(GIVEN[want], "deny", rule, "so it does not run") if rule else None


def _of_asking(want: Want, standing: Standing) -> Decision:
    if standing.granted:
        return Decision(GIVEN[want], "allow", "you agreed to that for these bytes")
    return Decision(GIVEN[want], "ask", f"its manifest: {SAID[want]}", "exit code 9 without a yes")
