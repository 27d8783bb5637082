"""What a skill may do, each with the rule that says so: for a person who asks (X-16, SAF-1).

Nothing is decided here: the words are those of the gate, the authority table and the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

from navigator_kernel.adapters.process import PASSED_ON
from navigator_kernel.sandbox.authority import TABLE
from navigator_kernel.sandbox.confinement import DISK, FILE, MEMORY, MIB, PROCESSES
from navigator_kernel.values.job import OUTPUT_LIMIT

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

Verdict = Literal["allow", "ask", "deny"]


class Decision(NamedTuple):
    """`rule` is what decides, `detail` what follows from it."""

    what: str
    verdict: Verdict
    rule: str
    detail: str = ""

    def to_dict(self) -> dict[str, str]:
        return self._asdict()


class Standing(NamedTuple):
    """What is known of a skill's bytes and of this machine: `changed` says what was changed, `rung` is the sandbox."""

    shipped: bool
    trusted: bool
    changed: str
    rung: str


def explained(skill: SkillDef, standing: Standing, tool: str = "") -> tuple[Decision, ...]:
    """In the order in which they are made; the first that denies ends a run."""
    decisions = list(_of_command(skill, standing)) if skill.command else [_PROMPT]
    return (*decisions, *([_of_tool(skill, tool)] if tool else ()))


_PROMPT = Decision("start a process", "deny", "it has no command", "its text is handed to a model")


def _of_command(skill: SkillDef, standing: Standing) -> Iterator[Decision]:
    row = next(right for right in TABLE if right.actor == "type_a")
    yield _of_run(standing)
    if standing.rung:
        yield Decision("be contained", "allow", f"{standing.rung} works here")
    else:
        yield Decision("be contained", "deny", "nothing here can contain it", "exit code 8; see navigator doctor")
    yield Decision("read its own folder and the files that it is given", "allow", "authority table: type_a")
    if "project" in skill.reads:
        yield Decision("read the project", "allow", "its manifest: reads: project", "but for mybox")
    else:
        yield Decision("read the project", "deny", "its manifest does not say reads: project")
    yield Decision(f"write to {row.writes[0]}", "allow", "authority table: type_a", "its HOME and TMPDIR")
    yield Decision("write anywhere else", "deny", "authority table: type_a")
    yield Decision("reach the network", "deny", "authority table: type_a")
    yield Decision("see the environment", "deny", "allow-list", f"but for {', '.join(PASSED_ON)}")
    limits = f"{MEMORY // MIB} MiB for a process, {FILE // MIB} MiB for a file, {DISK // MIB} MiB of disk"
    limits += f", {PROCESSES} processes, {OUTPUT_LIMIT // MIB} MiB of output"
    yield Decision("use the machine", "allow", "limits of the sandbox", limits)


def _of_run(standing: Standing) -> Decision:
    if standing.changed:
        return Decision("run", "deny", "its bytes are not those that were installed", standing.changed)
    if standing.shipped:
        return Decision("run", "allow", "its bytes are those of this release")
    if standing.trusted:
        return Decision("run", "allow", "you trusted these bytes", "one that changes ends it")
    return Decision("run", "ask", "nobody has agreed to these bytes", "exit code 9 without a yes")


def _of_tool(skill: SkillDef, tool: str) -> Decision:
    what = f"call {tool}"
    if skill.tools is None:
        return Decision(what, "allow", "its manifest restricts no tools")
    if tool in skill.tools:
        return Decision(what, "allow", "its manifest lists it in tools")
    return Decision(what, "deny", "its manifest does not list it in tools")
