"""The events of a run in AG-UI 1.0, in the order that `verifyEvents` of its client requires."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from navigator_ag_ui.input import UnansweredCall
from navigator_kernel.events import (
    ApprovalRequested,
    ApprovalResolved,
    ClarificationAsked,
    Event,
    Progress,
    RunCancelled,
    RunCompleted,
    RunContent,
    RunError,
    RunStarted,
    SkillActivated,
    SkillChosen,
    SkillLoaded,
    SkillsOffered,
    SkillsShortlisted,
    SkillUsed,
    StepCompleted,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
    UICommand,
    Usage,
)
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language

PROTOCOL = "1.0"
KERNEL = "kernel"  # the agent of steps without a subagent
FAILED = frozenset({"error", "timeout"})
CUSTOM = (
    UICommand,
    SkillsOffered,
    SkillsShortlisted,
    SkillChosen,
    SkillLoaded,
    SkillUsed,
    ClarificationAsked,
    Progress,
)
ANSWER = {
    "type": "object",
    "properties": {"approved": {"type": "boolean"}, "scope": {"type": "string", "enum": ["once", "session"]}},
    "required": ["approved"],
}

Sent = dict[str, Any]


class Thread(Struct, frozen=True, kw_only=True):
    """The recipient of the answer: the client's names of the conversation and of the run. `speaks` is its version of
    the protocol, empty before 1.0; `waiting` is the tool call that it shows without a result; `history` are the
    messages before this run if the client needs them, None if it has them."""

    id: str
    run: str
    parent: str = ""
    speaks: str = ""
    waiting: UnansweredCall | None = None
    history: Sequence[Mapping[str, Any]] | None = None


class OpenStep(Struct, frozen=True):
    """`agent` is the id of its subagent, empty without one."""

    name: str
    agent: str


class AgUiRun:
    """One run. Open steps are closed before RUN_FINISHED, and nothing follows the last event."""

    def __init__(self, thread: Thread) -> None:
        self._thread = thread
        self._language: Language = "en"
        self._is_started = self.is_ended = False
        self._text = ""
        self._steps: dict[int, OpenStep] = {}
        self._calls: dict[str, str] = {}
        self._waiting = thread.waiting
        self._pending = ""
        self._asked: ApprovalRequested | None = None
        self._usage: dict[str, Sent] = {}
        self._translators: Mapping[type, Callable[[Event, Any, str], Iterator[Sent]]] = {
            RunStarted: self._started,
            StepStarted: self._step_started,
            StepCompleted: self._step_completed,
            RunContent: self._content,
            ToolCallStarted: self._call_started,
            ToolCallCompleted: self._call_completed,
            SkillActivated: self._activity,
            ApprovalRequested: self._approval,
            ApprovalResolved: self._resolved,
            Usage: self._count,
            RunCompleted: self._completed,
            RunError: self._broken,
            RunCancelled: self._cancelled,
        }

    def of(self, event: Event) -> Iterator[Sent]:
        """The events that the client gets for `event`."""
        if self.is_ended:
            return
        at = int(datetime.fromisoformat(event.ts).timestamp() * 1000)
        for sent in self._translated(event, f"{event.run}:{event.seq}"):
            yield {"type": sent.pop("type"), "timestamp": at, **sent}

    def cut(self) -> Iterator[Sent]:
        """The last event of a run whose log has no end."""
        if not self.is_ended:
            yield from self._failed("the run was not finished", "unfinished")

    def _translated(self, event: Event, name: str) -> Iterator[Sent]:
        """Translates an event; a message ends at the first event that is not its text."""
        if not isinstance(event.body, RunContent):
            if self._text:
                yield {"type": "TEXT_MESSAGE_END", "messageId": self._text}
            self._text = ""
        translate = self._translators.get(type(event.body))
        if translate is not None:
            yield from translate(event, event.body, name)
        elif isinstance(event.body, CUSTOM):
            yield {"type": "CUSTOM", "name": event.type, "value": asdict(event.body)}

    def _started(self, event: Event, body: RunStarted, _: str) -> Iterator[Sent]:
        """Starts the run, only once: a run that a killed process began continues in the same log."""
        if self._is_started:
            return
        self._is_started, thread = True, self._thread
        self._language = "zh" if body.language == "zh" else "en"
        head: Sent = {"threadId": thread.id, "runId": thread.run, "protocolVersion": PROTOCOL}
        if thread.parent:
            head["parentRunId"] = thread.parent
        yield {"type": "RUN_STARTED", **head, "metadata": {"navigator": {"run": event.run}}}
        if thread.history is not None:
            message = {"id": f"{event.run}:user", "role": "user", "content": body.message}
            yield {"type": "MESSAGES_SNAPSHOT", "messages": [*thread.history, message]}

    def _content(self, _: Event, body: RunContent, name: str) -> Iterator[Sent]:
        if not self._text:
            self._text = name
            yield {"type": "TEXT_MESSAGE_START", "messageId": name, "role": "assistant"}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._text, "delta": body.text}

    def _step_started(self, event: Event, body: StepStarted, name: str) -> Iterator[Sent]:
        """Starts a step; no two open steps have the same name."""
        target = str(body.packet.get("task_spec", {}).get("target") or body.agent)
        is_open = any(step.name == target for step in self._steps.values())
        step = OpenStep(f"{target} ({event.seq})" if is_open else target, "" if body.agent == KERNEL else name)
        self._steps[event.seq] = step
        yield {"type": "STEP_STARTED", "stepName": step.name}
        if step.agent and self._thread.speaks:
            yield {"type": "SUBAGENT_STARTED", "subagentRunId": name, "name": body.agent, "description": target}

    def _step_completed(self, event: Event, body: StepCompleted, _: str) -> Iterator[Sent]:
        step = self._steps.pop(-1 if event.parent is None else event.parent, None)
        if step is None:
            return
        if step.agent and self._thread.speaks:
            yield _subagent_end(step.agent, body.report)
        yield {"type": "STEP_FINISHED", "stepName": step.name}

    def _call_started(self, _: Event, body: ToolCallStarted, name: str) -> Iterator[Sent]:
        """Starts a call; a call that waited for an approval is shown already, so only its result is new."""
        if self._waiting is not None and self._waiting.tool == body.tool:
            self._calls[body.call], self._waiting = self._waiting.id, None
            return
        self._calls[body.call] = name
        yield {"type": "TOOL_CALL_START", "toolCallId": name, "toolCallName": body.tool, **self._owner()}
        args = json.dumps(dict(body.args), ensure_ascii=False, default=str)
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": name, "delta": args, **self._owner()}
        yield {"type": "TOOL_CALL_END", "toolCallId": name, **self._owner()}

    def _call_completed(self, _: Event, body: ToolCallCompleted, name: str) -> Iterator[Sent]:
        """Ends a call; one that waits for an approval has no result yet, the run that continues has it."""
        call = self._calls.pop(body.call, "")
        if body.state == "pending" and not body.result:
            self._pending = call
        elif call:
            facts = {"navigator": {"state": body.state, "elapsed": body.elapsed}}
            yield {**_result(call, name, body.result), **self._owner(), "metadata": facts}

    def _owner(self) -> Sent:
        """The id of the subagent that works now, as a field; empty if there is none."""
        agent = next(reversed(self._steps.values())).agent if self._steps and self._thread.speaks else ""
        return {"subagentRunId": agent} if agent else {}

    def _activity(self, _: Event, body: SkillActivated, name: str) -> Iterator[Sent]:
        content = {**asdict(body), "text": say("page.loading", self._language, skill=body.skill)}
        yield {"type": "ACTIVITY_SNAPSHOT", "messageId": name, "activityType": "SKILL", "content": content}

    def _approval(self, _: Event, body: ApprovalRequested, _name: str) -> Iterator[Sent]:
        self._asked = body
        return iter(())

    def _resolved(self, _: Event, body: ApprovalResolved, name: str) -> Iterator[Sent]:
        """Gives a result to a call that the person declined."""
        if self._waiting is not None and not body.granted:
            yield _result(self._waiting.id, name, say("tool.declined", self._language, tool=self._waiting.tool))
            self._waiting = None

    def _count(self, _: Event, body: Usage, _name: str) -> Iterator[Sent]:
        none: Sent = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0, "cachedInputTokens": 0}
        usage = self._usage.setdefault(body.model, _model(body.model) | none)
        usage["inputTokens"] += body.input_tokens
        usage["outputTokens"] += body.output_tokens
        usage["totalTokens"] += body.input_tokens + body.output_tokens
        usage["cachedInputTokens"] += body.cached_tokens
        return iter(())

    def _completed(self, event: Event, body: RunCompleted, _: str) -> Iterator[Sent]:
        """Ends the run; a run whose report has a state of `FAILED` has failed, whatever its summary says."""
        yield from self._closed()
        if body.state in FAILED:
            yield from self._failed(body.summary, body.state)
            return
        result = {"run": event.run, "state": body.state, "summary": body.summary}
        waits = [interrupt(self._asked, self._pending)] if self._asked else []
        outcome = {"type": "interrupt", "interrupts": waits} if waits else _DONE
        yield {**self._finished(outcome), "result": result}

    def _broken(self, _: Event, body: RunError, _name: str) -> Iterator[Sent]:
        yield from self._failed(str(body.error.get("msg", "")), str(body.error.get("type", "")))

    def _cancelled(self, _: Event, body: RunCancelled, _name: str) -> Iterator[Sent]:
        """Ends a cancelled run, which is not a failure; before 1.0 the protocol has no other event for it."""
        if not self._thread.speaks:
            yield from self._failed(body.reason, "cancelled")
            return
        yield from self._closed()
        yield self._finished({"type": "cancelled"})

    def _closed(self) -> Iterator[Sent]:
        """The events that end the open steps."""
        for step in reversed(self._steps.values()):
            if step.agent and self._thread.speaks:
                yield {"type": "SUBAGENT_ERROR", "subagentRunId": step.agent, "message": "stopped", "code": "stopped"}
            yield {"type": "STEP_FINISHED", "stepName": step.name}
        self._steps.clear()

    def _finished(self, outcome: Mapping[str, Any]) -> Sent:
        self.is_ended = True
        head = {"type": "RUN_FINISHED", "threadId": self._thread.id, "runId": self._thread.run}
        return {**head, "outcome": outcome, **self._spent()}

    def _failed(self, message: str, code: str) -> Iterator[Sent]:
        self.is_ended = True
        yield {"type": "RUN_ERROR", "message": message, "code": code, **self._spent()}

    def _spent(self) -> Sent:
        return {"usage": list(self._usage.values())} if self._usage else {}


_DONE: Mapping[str, Any] = {"type": "success"}


def interrupt(approval: ApprovalRequested, call: str = "") -> Sent:
    """The interrupt of an approval: `resume` answers it by its id until it expires."""
    sent: Sent = {"id": approval.id, "reason": "tool_call" if call else "confirmation", "message": approval.detail}
    if call:
        sent["toolCallId"] = call
    sent |= {"responseSchema": ANSWER, "metadata": {"navigator": {"subject": approval.subject}}}
    return {**sent, "expiresAt": approval.expires} if approval.expires else sent


def answered_alone(thread: Thread, text: str, waits: ApprovalRequested | None = None) -> Iterator[Sent]:
    """A run without a turn of the kernel: it consists of `text` and the approval that still waits."""
    name = f"{thread.run}:answer"
    head = {"threadId": thread.id, "runId": thread.run}
    yield {"type": "RUN_STARTED", **head, "protocolVersion": PROTOCOL}
    yield {"type": "TEXT_MESSAGE_START", "messageId": name, "role": "assistant"}
    yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": name, "delta": text}
    yield {"type": "TEXT_MESSAGE_END", "messageId": name}
    call = thread.waiting.id if thread.waiting else ""
    outcome = {"type": "interrupt", "interrupts": [interrupt(waits, call)]} if waits else _DONE
    yield {"type": "RUN_FINISHED", **head, "outcome": outcome}


def _model(name: str) -> Sent:
    provider, _, model = name.rpartition(":")
    return {"model": model, **({"provider": provider} if provider else {})}


def _subagent_end(agent: str, report: Mapping[str, Any]) -> Sent:
    state, head = report.get("state"), {"subagentRunId": agent}
    if state in FAILED:
        return {"type": "SUBAGENT_ERROR", **head, "message": str(report.get("summary", "")), "code": str(state)}
    outcome = {"type": "suspended" if state == "pending" else "success"}
    return {"type": "SUBAGENT_FINISHED", **head, "outcome": outcome}


def _result(call: str, name: str, text: str) -> Sent:
    return {"type": "TOOL_CALL_RESULT", "messageId": name, "toolCallId": call, "content": text, "role": "tool"}
