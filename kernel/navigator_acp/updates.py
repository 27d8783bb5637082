"""Turns the events of the runs of one prompt into updates that an editor shows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from acp.helpers import (
    SessionUpdate,
    plan_entry,
    start_tool_call,
    text_block,
    tool_content,
    update_agent_message_text,
    update_agent_thought_text,
    update_plan,
)
from acp.helpers import update_tool_call as update_call
from acp.schema import PlanEntryStatus, ToolCallStatus, ToolCallUpdate, ToolKind

from navigator_acp.answer import fenced
from navigator_acp.calls import kind_of, locations_of, shown_input, status_of, title_of
from navigator_acp.words import say
from navigator_kernel.events import (
    ApprovalRequested,
    Event,
    Progress,
    RouteDecided,
    RunContent,
    RunStarted,
    SkillActivated,
    StepCompleted,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
    UICommand,
)
from navigator_kernel.language.wording import because_of
from navigator_kernel.text import Language, clean, shorten

if TYPE_CHECKING:
    from navigator_kernel.values.workflow import WorkflowPlan

SHOWN = 300  # characters of a thought or a plan entry


class Updates:
    """The updates of one prompt. `streamed` says that a model's text was shown in this run, `waiting` names the call
    that waits for approval. The names of calls begin with `prefix`, which no other prompt has."""

    def __init__(self, root: Path, prefix: str) -> None:
        self.streamed = False
        self.waiting = ""
        self.language: Language = "en"
        self._root, self._prefix = root, prefix
        self._asks = self._run_is_new = self._has_text = False
        self._why = ""
        self._seen: set[str] = set()  # skills named already
        self._calls: dict[str, str] = {}  # key of a call → our call id
        self._heads: dict[str, tuple[str, ToolKind]] = {}  # our call id → title and kind
        self._count = 0
        self._steps: tuple[str, ...] = ()
        self._states: dict[int, PlanEntryStatus] = {}

    def of(self, event: Event) -> Iterator[SessionUpdate]:
        """The updates for one event; there may be none."""
        match event.body:
            case RunStarted(language=language):
                self.streamed, self.waiting, self._asks, self._run_is_new = False, "", False, True
                self.language = "zh" if language == "zh" else "en"
            case RunContent(text=text) if event.step is not None or not self._asks:
                self.streamed = self.streamed or event.step is not None
                yield self.message(clean(text))
            case ApprovalRequested():
                self._asks = True  # the question is shown with its options, not as text
            case ToolCallStarted() | ToolCallCompleted() as call:
                yield self._call(call, call.call.removeprefix(f"{event.run}/"))
            case StepStarted() | StepCompleted() as body if 0 < (step := event.step or 0) <= len(self._steps):
                if isinstance(body, StepStarted):
                    self._states[step] = "in_progress"
                else:
                    done = body.report.get("state") in {"success", "partial"}
                    self._states[step] = "completed" if done else "pending"
                    yield _thought(str(body.report.get("summary", "")))
                yield self._plan()
            case RouteDecided(decision={"tier": "session"}):
                self._why = ""  # the message is an answer, not a reason for a skill
            case RouteDecided(decision=decision):
                confidence = f"{decision.get('confidence', 0):.2f}"
                reason, name = str(decision.get("reason", "")), str(decision.get("entity") or "")
                self._why = because_of(reason, self.language, name=name, confidence=confidence)
            case SkillActivated(skill=skill) if skill not in self._seen:
                self._seen.add(skill)
                why = f" ({self._why})" if self._why else ""
                yield _thought(f"{say('skill', self.language, skill=skill)}{why}")
            case Progress(text=text) | UICommand(type="toast", payload={"message": str(text)}):
                yield _thought(text)

    def message(self, text: str) -> SessionUpdate:
        """A piece of the answer; the text of each run begins a new paragraph."""
        gap = "\n\n" if self._run_is_new and self._has_text else ""
        self._run_is_new, self._has_text = False, True
        return update_agent_message_text(f"{gap}{text}")

    def plan(self, plan: WorkflowPlan) -> SessionUpdate:
        """The steps of a workflow, none of them started."""
        self._steps = tuple(shorten(clean(f"{step.text} → {step.skill}"), SHOWN) for step in plan.steps)
        self._states = {}
        return self._plan()

    def ask(self, question: str) -> SessionUpdate:
        """A call for work that waits for approval, if no model made one; `end` ends it."""
        self.waiting = self._new()
        self._calls[self.waiting] = self.waiting
        title, kind = self._heads[self.waiting] = shorten(clean(question, lines=False), SHOWN), "execute"
        return start_tool_call(self.waiting, title, kind=kind, status="pending")

    def question(self, question: str) -> ToolCallUpdate:
        """The waiting call, with everything that a client needs to ask about it."""
        title, kind = self._heads[self.waiting]
        content = tool_content(text_block(fenced(question, whole=True)))
        return ToolCallUpdate(tool_call_id=self.waiting, title=title, kind=kind, status="pending", content=[content])

    def end(self, call: str, status: ToolCallStatus) -> SessionUpdate:
        """Ends a call that has no event for its end."""
        self._calls = {name: ours for name, ours in self._calls.items() if ours != call}
        return update_call(call, status=status)

    def end_all(self) -> list[SessionUpdate]:
        """Ends the calls that a cancelled run leaves open, as failed."""
        return [self.end(call, "failed") for call in tuple(self._calls.values())]

    def _call(self, body: ToolCallStarted | ToolCallCompleted, key: str) -> SessionUpdate:
        """`key` names the call both in the run that asks for approval and in the next run, which makes it."""
        known = self._calls.get(key)
        if isinstance(body, ToolCallCompleted):
            if body.state == "pending":
                self.waiting = known or ""
            else:
                self._calls.pop(key, None)
            shown = [tool_content(text_block(fenced(clean(body.result))))] if body.result else None
            return update_call(known or self._new(), status=status_of(body.state), content=shown)
        if known:  # the call waited for approval and runs now
            return update_call(known, status="in_progress")
        name = self._calls[key] = self._new()
        title, kind = self._heads[name] = title_of(body.tool, body.args), kind_of(body.tool)
        return start_tool_call(
            name,
            title,
            kind=kind,
            status="in_progress",
            locations=locations_of(body.args, self._root) or None,
            raw_input=shown_input(body.args),
        )

    def _plan(self) -> SessionUpdate:
        steps = enumerate(self._steps, 1)
        return update_plan(plan_entry(text, status=self._states.get(at, "pending")) for at, text in steps)

    def _new(self) -> str:
        self._count += 1
        return f"{self._prefix}.{self._count}"


def _thought(text: str) -> SessionUpdate:
    return update_agent_thought_text(f"{shorten(clean(text), SHOWN)}\n")
