"""AG-UI 1.0 (https://docs.ag-ui.com): streams runs, with approvals as interrupts, and restores threads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, Event, RunStarted
from navigator_kernel.gateway.access import ENDED
from navigator_kernel.gateway.api.chat import EVENT_STREAM, ChatMessage, begin
from navigator_kernel.gateway.api.sessions import WaitingApproval, begin_answer, waiting_in
from navigator_kernel.gateway.projections.ag_ui_events import AgUiRun, Sent, Thread, answered_alone
from navigator_kernel.gateway.projections.ag_ui_input import (
    RunAgentInput,
    answer_of,
    message_of,
    unanswered_call,
)
from navigator_kernel.gateway.streams.sse import PING, EventStreamResponse, frame
from navigator_kernel.language.wording import say
from navigator_kernel.text import language_of
from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.gateway.runs import Run
    from navigator_kernel.values.http.endpoint import Caller

RECALLED = 200  # history entries of a thread
LOOKED_AT = 200  # newest runs searched for the last one of a thread


async def run_agent(gateway: Gateway, call: Call) -> EventStreamResponse:
    """Begins a run with the last message, or with the answer to an interrupt, and streams its events. A client that
    leaves does not end the run; `DELETE /api/runs/{run}` does, with the run that RUN_STARTED names in its metadata."""
    asked: RunAgentInput = call.body
    waits = await asyncio.to_thread(waiting_in, gateway, call.caller, asked.thread_id)
    text = message_of(asked)
    run = await _answer(gateway, call.caller, asked, waits)
    if run is None and text and waits is None:
        run = await begin(gateway, call, asked.thread_id, ChatMessage(message=text))
    if run is not None:
        thread = _thread(asked, is_resumed=bool(asked.resume))
        return _stream(run.feed.read(), thread, run.id)
    if waits is None and not asked.resume:
        raise HttpProblem(422, "invalid", "the last message is not the person's", hint='"role": "user", and some text')
    return _alone(asked, waits, text)


async def connect_agent(gateway: Gateway, call: Call) -> EventStreamResponse:
    """Sends a thread again, for a client that lost its stream or opens it again: its messages, then the run in
    progress, to its end, or the last one. Empty if there is no run."""
    asked: RunAgentInput = call.body
    name = gateway.session_id(call.caller, asked.thread_id)
    run = next((run.id for run in gateway.runs.under_way() if run.session == name), "")
    run = run or await asyncio.to_thread(_last_run, gateway, name)
    if not run:
        return EventStreamResponse(_sent(()))
    history = await asyncio.to_thread(_messages, gateway, name, run)
    thread = Thread(id=asked.thread_id, run=asked.run_id, speaks=asked.protocol_version or "", history=history)
    return _stream(gateway.runs.feeds.follow(run), thread, run)


def _stream(events: AsyncIterator[Sequence[Event]], thread: Thread, run: str) -> EventStreamResponse:
    headers = ((b"x-run-id", run.encode()),)
    return EventStreamResponse(_pieces(events, thread), headers, _token_ended)


def _token_ended() -> bytes:
    return frame({"type": "RUN_ERROR", "message": ENDED, "code": "token"})


async def _answer(gateway: Gateway, caller: Caller, asked: RunAgentInput, waits: WaitingApproval | None) -> Run | None:
    """The run that continues with the answer to `waits`; None if there is no such answer. Other answers are ignored, as
    the protocol says. 403 for a yes with a token that may not approve."""
    entry = next((one for one in asked.resume or () if waits and one.interrupt_id == waits.id), None)
    if entry is None:
        return None
    answer = answer_of(entry)
    if answer in {"yes", "session"} and not caller.may("approve"):
        raise HttpProblem(403, "role", "this token may not approve", hint="use a token with the role approve")
    try:
        return await begin_answer(gateway, caller, entry.interrupt_id, answer)
    except NotFound:  # it has just been answered
        return None


def _alone(asked: RunAgentInput, waits: WaitingApproval | None, text: str) -> EventStreamResponse:
    """The response to an answer that comes too late, or to a message that comes before the answer."""
    thread, language = _thread(asked, is_resumed=True), language_of(text)
    if waits is None:
        return EventStreamResponse(_sent(answered_alone(thread, say("page.gone", language))))
    said = say("page.answer_first", language, question=waits.question)
    held = ApprovalRequested(subject=waits.subject, detail=waits.question, id=waits.id, expires=waits.expires)
    return EventStreamResponse(_sent(answered_alone(thread, said, held)))


def _thread(asked: RunAgentInput, *, is_resumed: bool) -> Thread:
    return Thread(
        id=asked.thread_id,
        run=asked.run_id,
        parent=asked.parent_run_id or "",
        speaks=asked.protocol_version or "",
        waiting=unanswered_call(asked) if is_resumed else None,
    )


async def _pieces(events: AsyncIterator[Sequence[Event]], thread: Thread) -> AsyncIterator[bytes]:
    run = AgUiRun(thread)
    async with aclosing(events) as held:  # type: ignore[type-var]  # an asynchronous generator
        async for news in held:
            if not news:
                yield PING
            for event in news:
                if sent := b"".join(frame(one) for one in run.of(event)):
                    yield sent
    for one in run.cut():
        yield frame(one)


async def _sent(events: Iterable[Sent]) -> AsyncIterator[bytes]:
    for event in events:
        yield frame(event)


def _last_run(gateway: Gateway, name: str) -> str:
    """The newest run of the session, empty if there is none."""
    try:
        gateway.sessions.load(name)
    except NotFound:
        return ""
    return next((run for run in gateway.log.runs()[:LOOKED_AT] if _session_of(gateway, run) == name), "")


def _session_of(gateway: Gateway, run: str) -> str:
    try:
        first = gateway.log.read(run)[0].body
    except (KernelError, IndexError):
        return ""  # the log is damaged: `navigator doctor` reports it
    return first.session if isinstance(first, RunStarted) else ""


def _messages(gateway: Gateway, name: str, run: str) -> list[dict[str, Any]]:
    """The messages of the session, except those of `run`."""
    said = (one for one in gateway.sessions.history(name, RECALLED) if one.run != run)
    return [{"id": f"{one.run}:{one.role}", "role": one.role, "content": one.text} for one in said]


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/ag-ui",
        role="chat",
        summary="Run the agent for an AG-UI client",
        handler=run_agent,
        tag="ag-ui",
        body=RunAgentInput,
        media=EVENT_STREAM,
        errors=(409,),
    ),
    Endpoint(
        method="POST",
        path="/ag-ui/connect",
        role="chat",
        summary="Read an AG-UI thread again, and follow its run",
        handler=connect_agent,
        tag="ag-ui",
        body=RunAgentInput,
        media=EVENT_STREAM,
    ),
)
