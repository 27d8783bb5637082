"""The endpoints of AG-UI: stream runs, with approvals as interrupts, and restore threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING

from navigator_ag_ui.events import AgUiRun, Sent, Thread, answered_alone
from navigator_ag_ui.input import RunAgentInput, answer_of, message_of, unanswered_call
from navigator_ag_ui.words import ANSWER_FIRST, GONE
from navigator_kernel.errors import NotFound
from navigator_kernel.text import language_of
from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import EVENT_STREAM, PING, EventStream, frame

if TYPE_CHECKING:
    from navigator_kernel.events import ApprovalRequested
    from navigator_kernel.ports import ServedRun, ServedTurns
    from navigator_kernel.values.http.endpoint import Caller

RECALLED = 200  # history entries of a thread


async def run_agent(turns: ServedTurns, call: Call) -> EventStream:
    """Begins a run with the last message, or with the answer to an interrupt, and streams its events. A client that
    leaves does not end the run; `DELETE /api/runs/{run}` does, with the run that RUN_STARTED names in its metadata."""
    asked: RunAgentInput = call.body
    waits = await turns.waiting(call.caller, asked.thread_id)
    text = message_of(asked)
    run = await _answer(turns, call.caller, asked, waits)
    if run is None and text and waits is None:
        run = await turns.say(call.caller, asked.thread_id, text)
    if run is not None:
        return _stream(run, _thread(asked, is_resumed=bool(asked.resume)))
    if waits is None and not asked.resume:
        raise HttpProblem(422, "invalid", "the last message is not the person's", hint='"role": "user", and some text')
    return _alone(asked, waits, text)


async def connect_agent(turns: ServedTurns, call: Call) -> EventStream:
    """Sends a thread again, for a client that lost its stream or opens it again: its messages, then the run in
    progress, to its end, or the last one. Empty if there is no run."""
    asked: RunAgentInput = call.body
    run = await turns.last(call.caller, asked.thread_id)
    if run is None:
        return EventStream(pieces=_sent(()))
    said = [one for one in await turns.history(call.caller, asked.thread_id, RECALLED) if one.run != run.id]
    history = [{"id": f"{one.run}:{one.role}", "role": one.role, "content": one.text} for one in said]
    return _stream(
        run, Thread(id=asked.thread_id, run=asked.run_id, speaks=asked.protocol_version or "", history=history)
    )


async def _answer(
    turns: ServedTurns, caller: Caller, asked: RunAgentInput, waits: ApprovalRequested | None
) -> ServedRun | None:
    """The run that continues with the answer to `waits`; None if there is no such answer. Other answers are ignored, as
    the protocol says."""
    entry = next((one for one in asked.resume or () if waits and one.interrupt_id == waits.id), None)
    if entry is None:
        return None
    answer = answer_of(entry)
    try:
        return await turns.answer(caller, entry.interrupt_id, answer)
    except NotFound:  # it has just been answered
        return None


def _alone(asked: RunAgentInput, waits: ApprovalRequested | None, text: str) -> EventStream:
    """The response to an answer that comes too late, or to a message that comes before the answer."""
    thread, language = _thread(asked, is_resumed=True), language_of(text)
    said = GONE[language] if waits is None else ANSWER_FIRST[language].format(question=waits.detail)
    return EventStream(pieces=_sent(answered_alone(thread, said, waits)))


def _thread(asked: RunAgentInput, *, is_resumed: bool) -> Thread:
    return Thread(
        id=asked.thread_id,
        run=asked.run_id,
        parent=asked.parent_run_id or "",
        speaks=asked.protocol_version or "",
        waiting=unanswered_call(asked) if is_resumed else None,
    )


def _stream(run: ServedRun, thread: Thread) -> EventStream:
    ended = {"type": "RUN_ERROR", "message": "the token was revoked or has expired", "code": "token"}
    return EventStream(pieces=_pieces(run, thread), headers={"X-Run-Id": run.id}, last=frame(ended))


async def _pieces(run: ServedRun, thread: Thread) -> AsyncIterator[bytes]:
    sender = AgUiRun(thread)
    async with aclosing(run.events) as held:  # type: ignore[type-var]  # an asynchronous generator
        async for news in held:
            if not news:
                yield PING
            for event in news:
                if sent := b"".join(frame(one) for one in sender.of(event)):
                    yield sent
    for one in sender.cut():
        yield frame(one)


async def _sent(events: Iterable[Sent]) -> AsyncIterator[bytes]:
    for event in events:
        yield frame(event)


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
