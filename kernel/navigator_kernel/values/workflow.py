"""Workflows of up to three steps: the plan, and the journal's view of a run (WFL-1..10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field, to_builtins

from navigator_kernel.text import Language
from navigator_kernel.values.packet import Report, shaped

MAX_STEPS = 3  # WFL-3
RunState = Literal["proposed", "running", "waiting", "stopped", "done", "aborted"]
OPEN = ("running", "waiting", "stopped")
Location = Literal["inline", "file", "both"]
OutputFormat = Literal["markdown", "json", "text"]
FOLDER = "mybox/workflows"
PLAN = "plan"  # approval of a whole plan
REPEAT = "repeat"  # approval to repeat a step that was running when the program ended

_LABELS: Mapping[Language, str] = {"en": "[Workflow]", "zh": "[工作流]"}
_PLANS: Mapping[Language, str] = {"en": "(plan: {file})", "zh": "(方案: {file})"}


class WorkflowStep(Struct, frozen=True, kw_only=True):
    """`text` names the step, `input` is the message that it gets, `skill` is the skill, the script of `bin/` or the MCP
    server that it is bound to, owned by `agent` (X-39). `output` describes its result in words."""

    text: str
    skill: str
    agent: str
    input: str
    output: str = ""


class Sandboxed(Struct, frozen=True, kw_only=True):
    """The files that a workflow declares, relative to the project."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ("mybox/workspace",)
    forbidden: tuple[str, ...] = ()
    network: bool = False


class Output(Struct, frozen=True, kw_only=True):
    """Where to write the last result; `file_path` is relative to the run's workspace."""

    location: Location = "inline"
    format: OutputFormat = "markdown"
    file_path: str = ""


class WorkflowPlan(Struct, frozen=True, kw_only=True):
    """A workflow file as values (part 3, item 5). `timeout_seconds` limits each step; 0 is the skill's own limit."""

    name: str
    description: str
    steps: tuple[WorkflowStep, ...]
    version: str = "1.0.0"
    depends_on: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    timeout_seconds: float = 0.0
    sandbox: Sandboxed = field(default_factory=Sandboxed)
    output: Output = field(default_factory=Output)

    @property
    def file(self) -> str:
        """The workflow's path, relative to the project (WFL-9)."""
        return f"{FOLDER}/{self.name}.md"


class StepRecord(Struct, frozen=True, kw_only=True):
    """An attempt of a step, counted from 1. Without a report it was under way when the process ended."""

    step: int
    attempt: int
    digest: str
    started: str
    ended: str = ""
    report: Report | None = None


class WorkflowRun(Struct, frozen=True, kw_only=True):
    """The journal's record of one run. `granted` are the subjects that the person agreed to for it; while it is only
    proposed, those that approval of its plan covers."""

    token: str
    session: str
    state: RunState
    plan: WorkflowPlan
    created: str
    updated: str
    granted: tuple[str, ...] = ()
    records: tuple[StepRecord, ...] = ()

    def last(self, step: int) -> StepRecord | None:
        """The newest attempt of `step`, or None."""
        return next((record for record in reversed(self.records) if record.step == step), None)

    @property
    def has_begun(self) -> bool:
        """False for a plan that waits for its first yes or was declined."""
        return bool(self.records) or self.state not in {"proposed", "aborted"}

    @property
    def open_steps(self) -> list[str]:
        """`step NUMBER (TARGET)` for each step that has not succeeded; empty for a run that is not under way."""
        done = {one.step for one in self.records if one.report is not None and one.report.state == "success"}
        steps = enumerate(self.plan.steps, 1) if self.has_begun and self.state in OPEN else ()
        return [f"step {number} ({step.skill})" for number, step in steps if number not in done]

    @property
    def done(self) -> int:
        """The number of steps that have succeeded."""
        return len({r.step for r in self.records if r.report is not None and r.report.state == "success"})


class WorkflowView(Struct, frozen=True, kw_only=True):
    """The state of a workflow in a reply. `left` are the steps beyond the limit, in the person's words, `idle` the
    prompt skills if there is no model for them; `result` is the file that the last step's result was written to,
    relative to the project's root; `again` is the message that runs the same once more, empty if none does."""

    token: str
    state: RunState
    plan: WorkflowPlan
    done: int = 0
    left: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    result: str = ""
    again: str = ""

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"token": self.token, "state": self.state, "done": self.done, "file": self.plan.file}
        steps = [
            {"step": at, "text": step.text, "skill": step.skill, "agent": step.agent, "input": step.input}
            for at, step in enumerate(self.plan.steps, 1)
        ]
        return {**base, "name": self.plan.name, "steps": steps, "left": list(self.left), "result": self.result}


def outline(plan: WorkflowPlan, language: Language) -> list[str]:
    """The lines of WFL-10: the task with its file, and one line per step."""
    head = f"{_LABELS[language]} {plan.description} {_PLANS[language].format(file=plan.file)}"
    steps = enumerate(plan.steps, 1)
    return [head, *(f"  Step {at}: {step.text} → {step.skill} → {step.agent}_agent" for at, step in steps)]


def plan_to_dict(plan: WorkflowPlan) -> dict[str, Any]:
    """The plan as JSON values; `plan_from` is its inverse."""
    values: dict[str, Any] = to_builtins(plan)
    return values


def plan_from(raw: Mapping[str, Any]) -> WorkflowPlan:
    """Parses `raw`; KeyError or ValueError if it is invalid."""
    return shaped({name: raw[name] for name in WorkflowPlan.__struct_fields__}, WorkflowPlan)
