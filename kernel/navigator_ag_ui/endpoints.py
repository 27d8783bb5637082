"""The endpoints of AG-UI: stream runs, with approvals as interrupts, and restore threads."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING

from navigator_ag_ui.events import AgUiRun, Sent, Thread, answered_alone
from navigator_ag_ui.input import RunAgentInput, answer_of, message_of, unanswered_call
from navigator_kernel.errors import NotFound
from navigator_kernel.text import Language, language_of
from navigator_kernel.values.http.endpoint import Call, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import EVENT_STREAM, PING, EventStream, frame

if TYPE_CHECKING:
    from navigator_kernel.ports import ServedRun, ServedTurns

RECALLED = 200  # history entries of a thread

# The sentences that only a client of AG-UI shows
GONE: Mapping[Language, str] = {
    "en": "Nothing waits for this answer: it was answered or withdrawn, or was asked over a day ago.",
    "zh": "没有等待该回答的操作：它已被回答或撤回，或提问已超过一天。",
}
ANSWER_FIRST: Mapping[Language, str] = {
    "en": "An approval waits, and your message was not read. Answer it first, then send the message again.\n{question}",
    "zh": "有一项操作正在等待你的确认，刚才的消息未被处理。请先回答，再重新发送。\n{question}",
}


async def run_agent(turns: ServedTurns, call: Call) -> EventStream:
    """Begins a run with the last message, or with the answer to an interrupt, and streams its events. A client that
    leaves does not end the run; `DELETE /api/runs/{run}` does, with the run that RUN_STARTED names in its metadata."""
    request: RunAgentInput = call.body
    waits = await turns.waiting(call.caller, request.thread_id)
    text = message_of(request)
    # Other answers than that to `waits` are ignored, as the protocol requires
    entry = next((entry for entry in request.resume or () if waits and entry.interrupt_id == waits.id), None)
    run = None
    if entry is not None:
        answer = answer_of(entry)
        with suppress(NotFound):  # it has just been answered
            run = await turns.answer(call.caller, entry.interrupt_id, answer)
    if run is None and text and waits is None:
        run = await turns.say(call.caller, request.thread_id, text)
    if run is not None:
        return _stream(run, _thread(request, is_resumed=bool(request.resume)))
    if waits is None and not request.resume:
        raise HttpProblem(422, "invalid", "the last message is not the person's", hint='"role": "user", and some text')
    # The response to an answer that comes too late, or to a message that comes before the answer
    thread, language = _thread(request, is_resumed=True), language_of(text)
    sentence = GONE[language] if waits is None else ANSWER_FIRST[language].format(question=waits.detail)
    return EventStream(pieces=_sent(answered_alone(thread, sentence, waits)))


async def connect_agent(turns: ServedTurns, call: Call) -> EventStream:
    """Sends a thread again, for a client that lost its stream or opens it again: its messages, then the run in
    progress, to its end, or the last one. Empty if there is no run."""
    request: RunAgentInput = call.body
    run = await turns.last(call.caller, request.thread_id)
    if run is None:
        return EventStream(pieces=_sent(()))
    said = [entry for entry in await turns.history(call.caller, request.thread_id, RECALLED) if entry.run != run.id]
    history = [{"id": f"{entry.run}:{entry.role}", "role": entry.role, "content": entry.text} for entry in said]
    return _stream(
        run, Thread(id=request.thread_id, run=request.run_id, speaks=request.protocol_version or "", history=history)
    )


def _thread(request: RunAgentInput, *, is_resumed: bool) -> Thread:
    return Thread(
        id=request.thread_id,
        run=request.run_id,
        parent=request.parent_run_id or "",
        speaks=request.protocol_version or "",
        waiting=unanswered_call(request) if is_resumed else None,
    )


def _stream(run: ServedRun, thread: Thread) -> EventStream:
    async def pieces() -> AsyncIterator[bytes]:
        sender = AgUiRun(thread)
        async with aclosing(run.events) as events:  # type: ignore[type-var]  # an asynchronous generator
            async for news in events:
                if not news:
                    yield PING
                for event in news:
                    if sent := b"".join(frame(piece) for piece in sender.of(event)):
                        yield sent
        for piece in sender.cut():
            yield frame(piece)

    ended = {"type": "RUN_ERROR", "message": "the token was revoked or has expired", "code": "token"}
    return EventStream(pieces=pieces(), headers={"X-Run-Id": run.id}, last=frame(ended))


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
