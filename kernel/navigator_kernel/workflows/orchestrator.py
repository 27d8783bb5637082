"""The built-in command `/master-orchestrator <need>` and its answers (CMD-1..6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.text import Language, fold
from navigator_kernel.values.workflow import WorkflowPlan, outline

if TYPE_CHECKING:
    from navigator_kernel.values.packet import Report
    from navigator_kernel.values.request import CommandInstruction, PreprocessingResult

SKILL = "master-orchestrator"
_VERBOSE = ("--verbose", "-v")


class SlashCommand(Struct, frozen=True, kw_only=True):
    """A slash command; `handler` is the function that handles it (CMD-2)."""

    name: str
    type: Literal["skill"]
    description: str
    handler: str
    enabled: bool
    priority: int
    source: Literal["builtin"]
    examples: tuple[str, ...]


COMMAND = SlashCommand(
    name=SKILL,
    type="skill",
    description="Plans a task: its parts, their inputs, the steps and the results; then runs the plan",
    handler="navigator_kernel.workflows.requests.orchestrate",
    enabled=True,
    priority=100,
    source="builtin",
    examples=(
        "/master-orchestrator 需求理解：先统计 @notes.md 的字数，然后检查其中的链接",
        "/master-orchestrator count the words in @notes.md and then check its links",
    ),
)


def is_orchestrated(commands: Sequence[CommandInstruction]) -> bool:
    """Whether the message is this command, spelled either way (X-29)."""
    called = len(commands) == 1 and commands[0].type == COMMAND.type and fold(commands[0].name) == COMMAND.name
    return called and COMMAND.enabled


def is_verbose(command: CommandInstruction) -> bool:
    """Whether `--verbose` or `-v` stands before the need (CMD-4)."""
    return bool(command.args) and command.args[0] in _VERBOSE


def behind(request: PreprocessingResult) -> str:
    """The text after the name of the command, on its line and below."""
    command = request.commands[0]
    at = request.original.index(command.original_string)
    return request.original[at:].partition(command.name)[2].strip()


def without_flag(request: PreprocessingResult) -> PreprocessingResult:
    """The request for the skill, without options about the answer's form."""
    if not is_orchestrated(request.commands) or not is_verbose(request.commands[0]):
        return request
    command = request.commands[0]
    rest = "".join(command.rest.split(None, 1)[1:])
    return replace(request, commands=(replace(command, args=command.args[1:], rest=rest),))


def need_of(request: PreprocessingResult) -> str:
    """The text after the name, without the prefix 需求理解： and the flag (CMD-6)."""
    rest = behind(request)
    first, *more = rest.split(None, 1) or [""]
    rest = "".join(more).strip() if first in _VERBOSE else rest
    return rest.removeprefix("需求理解").lstrip("：: ") if rest.startswith("需求理解") else rest


def answer(report: Report, plan: WorkflowPlan | None, language: Language, *, verbose: bool) -> Mapping[str, Any]:
    """`{success, result, skill}` or `{success: false, error}`; with `verbose` also the whole report (CMD-3)."""
    if report.state in {"error", "timeout"} or (report.state == "pending" and plan is None):
        found: dict[str, Any] = {"success": False, "error": report.summary}
    else:
        result = report.summary if plan is None else _parts(plan, language)
        found = {"success": True, "result": result, "skill": SKILL}
    return {**found, "report": report.to_dict()} if verbose else found


def _parts(plan: WorkflowPlan, language: Language) -> dict[str, Any]:
    """The parts of an answer: decomposition, required resources, steps, expected result (CMD-5)."""
    return {
        "decomposition": [step.text for step in plan.steps],
        "resources": {"skills": list(plan.depends_on), "files": list(plan.sandbox.read)},
        "steps": [line.strip() for line in outline(plan, language)[1:]],
        "expected": [f"{step.skill}: {step.output}" for step in plan.steps],
    }
