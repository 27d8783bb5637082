"""The events of a run in AG-UI 1.0, in the order that `verifyEvents` of its client requires."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
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
        if self._text and not isinstance(event.body, RunContent):
            yield {"type": "TEXT_MESSAGE_END", "messageId": self._text}
            self._text = ""
        match event.body:
            case RunStarted() as body if not self._is_started:  # a killed process may have begun it in the same log
                yield from self._started(event, body)
            case RunContent(text=text):
                if not self._text:
                    self._text = name
                    yield {"type": "TEXT_MESSAGE_START", "messageId": name, "role": "assistant"}
                yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": self._text, "delta": text}
            case StepStarted() as body:
                yield from self._step_started(event, body, name)
            case StepCompleted(report=report):
                yield from self._step_completed(event, report)
            case ToolCallStarted() as body:
                yield from self._call_started(body, name)
            case ToolCallCompleted(call=call, state=state, result=result, elapsed=elapsed):
                shown = self._calls.pop(call, "")
                if state == "pending" and not result:  # the run that continues has the result
                    self._pending = shown
                elif shown:
                    facts = {"navigator": {"state": state, "elapsed": elapsed}}
                    yield {**_result(shown, name, result), **self._owner(), "metadata": facts}
            case SkillActivated(skill=skill) as body:
                content = {**asdict(body), "text": say("page.loading", self._language, skill=skill)}
                yield {"type": "ACTIVITY_SNAPSHOT", "messageId": name, "activityType": "SKILL", "content": content}
            case ApprovalRequested() as body:
                self._asked = body
            case ApprovalResolved(granted=False) if self._waiting is not None:  # a call that the person declined
                yield _result(self._waiting.id, name, say("tool.declined", self._language, tool=self._waiting.tool))
                self._waiting = None
            case Usage() as body:
                provider, _, model = body.model.rpartition(":")
                none: Sent = {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0, "cachedInputTokens": 0}
                head = {"model": model, **({"provider": provider} if provider else {})}
                usage = self._usage.setdefault(body.model, head | none)
                usage["inputTokens"] += body.input_tokens
                usage["outputTokens"] += body.output_tokens
                usage["totalTokens"] += body.input_tokens + body.output_tokens
                usage["cachedInputTokens"] += body.cached_tokens
            case RunCompleted() as body:
                yield from self._completed(event, body)
            case RunError(error=error):
                yield from self._failed(str(error.get("msg", "")), str(error.get("type", "")))
            case RunCancelled(reason=reason) if not self._thread.speaks:  # before 1.0 there is no other event for it
                yield from self._failed(reason, "cancelled")
            case RunCancelled():
                yield from self._closed()
                yield self._finished({"type": "cancelled"})
            case body if isinstance(body, CUSTOM):
                yield {"type": "CUSTOM", "name": event.type, "value": asdict(body)}

    def _started(self, event: Event, body: RunStarted) -> Iterator[Sent]:
        self._is_started, thread = True, self._thread
        self._language = "zh" if body.language == "zh" else "en"
        head: Sent = {"threadId": thread.id, "runId": thread.run, "protocolVersion": PROTOCOL}
        if thread.parent:
            head["parentRunId"] = thread.parent
        yield {"type": "RUN_STARTED", **head, "metadata": {"navigator": {"run": event.run}}}
        if thread.history is not None:
            message = {"id": f"{event.run}:user", "role": "user", "content": body.message}
            yield {"type": "MESSAGES_SNAPSHOT", "messages": [*thread.history, message]}

    def _step_started(self, event: Event, body: StepStarted, name: str) -> Iterator[Sent]:
        """Starts a step; no two open steps have the same name."""
        target = str(body.packet.get("task_spec", {}).get("target") or body.agent)
        is_open = any(step.name == target for step in self._steps.values())
        step = OpenStep(f"{target} ({event.seq})" if is_open else target, "" if body.agent == KERNEL else name)
        self._steps[event.seq] = step
        yield {"type": "STEP_STARTED", "stepName": step.name}
        if step.agent and self._thread.speaks:
            yield {"type": "SUBAGENT_STARTED", "subagentRunId": name, "name": body.agent, "description": target}

    def _step_completed(self, event: Event, report: Mapping[str, Any]) -> Iterator[Sent]:
        step = self._steps.pop(-1 if event.parent is None else event.parent, None)
        if step is None:
            return
        state, head = report.get("state"), {"subagentRunId": step.agent}
        if step.agent and self._thread.speaks and state in FAILED:
            summary = str(report.get("summary", ""))
            yield {"type": "SUBAGENT_ERROR", **head, "message": summary, "code": str(state)}
        elif step.agent and self._thread.speaks:
            outcome = {"type": "suspended" if state == "pending" else "success"}
            yield {"type": "SUBAGENT_FINISHED", **head, "outcome": outcome}
        yield {"type": "STEP_FINISHED", "stepName": step.name}

    def _call_started(self, body: ToolCallStarted, name: str) -> Iterator[Sent]:
        """Starts a call; a call that waited for an approval is shown already, so only its result is new."""
        if self._waiting is not None and self._waiting.tool == body.tool:
            self._calls[body.call], self._waiting = self._waiting.id, None
            return
        self._calls[body.call] = name
        yield {"type": "TOOL_CALL_START", "toolCallId": name, "toolCallName": body.tool, **self._owner()}
        args = json.dumps(dict(body.args), ensure_ascii=False, default=str)
        yield {"type": "TOOL_CALL_ARGS", "toolCallId": name, "delta": args, **self._owner()}
        yield {"type": "TOOL_CALL_END", "toolCallId": name, **self._owner()}

    def _owner(self) -> Sent:
        """The id of the subagent that works now, as a field; empty if there is none."""
        agent = next(reversed(self._steps.values())).agent if self._steps and self._thread.speaks else ""
        return {"subagentRunId": agent} if agent else {}

    def _completed(self, event: Event, body: RunCompleted) -> Iterator[Sent]:
        """Ends the run; a run whose report has a state of `FAILED` has failed, whatever its summary says."""
        yield from self._closed()
        if body.state in FAILED:
            yield from self._failed(body.summary, body.state)
            return
        result = {"run": event.run, "state": body.state, "summary": body.summary}
        waits = [interrupt(self._asked, self._pending)] if self._asked else []
        outcome = {"type": "interrupt", "interrupts": waits} if waits else _DONE
        yield {**self._finished(outcome), "result": result}

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


def _result(call: str, name: str, text: str) -> Sent:
    return {"type": "TOOL_CALL_RESULT", "messageId": name, "toolCallId": call, "content": text, "role": "tool"}
