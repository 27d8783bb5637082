"""Chat: a message starts a run, and its events are streamed (EVT-1, EVT-4, EVT-6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.bootstrap.turns import LONGEST, Turns, refuse_message
from navigator_kernel.events import Event, RunError, RunStarted
from navigator_kernel.gateway.runs import Run, may_approve
from navigator_kernel.gateway.streams.feeds import RECENT, Feed
from navigator_kernel.gateway.streams.page_events import LAST, Frames, as_sent
from navigator_kernel.gateway.streams.sse import EventStreamResponse
from navigator_kernel.text import Language, lazy_compile
from navigator_kernel.values.http.endpoint import Call, Caller, Endpoint, HttpProblem
from navigator_kernel.values.http.sse import EVENT_STREAM, PING, frame
from navigator_kernel.values.request import Message, Session
from navigator_kernel.values.rights import words_in

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

AT_ONCE = 0.1  # seconds that the headers of an answer wait for the first event, so that an error has its own status
_POSITION = lazy_compile(r"([a-z0-9-]{1,80}):(\d{1,9})")

Which = Literal["page", "all"]


class ChatMessage(Struct, frozen=True, forbid_unknown_fields=True):
    """The person's message. `language` is that of the answer; by default it is the message's. `allow` are the rights
    that a skill's tools have for this message without a question, as `--allow` gives them: `run`, `scripts`, `read`,
    `edit:FOLDER/`. It needs a token with the role approve."""

    message: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    language: Language | None = None
    allow: Annotated[tuple[str, ...], Meta(max_length=100)] = ()


class StartedRun(Struct, frozen=True, kw_only=True):
    """A run that has started."""

    run: str
    session: str


class Events(Struct, frozen=True, forbid_unknown_fields=True):
    """`page` selects the events that a page shows, `all` those of the run log."""

    events: Which = "page"


class Following(Struct, frozen=True, forbid_unknown_fields=True):
    """`after` is a position in the run: only later events are sent."""

    events: Which = "page"
    after: int | None = None


async def chat(gateway: Gateway, call: Call) -> EventStreamResponse:
    """Streams the events of a run. The run goes on if the client disconnects: its events can be followed later."""
    run = await begin(gateway, call.caller, call.path["session"], call.body, patience=AT_ONCE)
    frames = _frames(run.feed, call.path["session"], call.query.events)

    async def pieces() -> AsyncIterator[bytes]:
        async for piece in _pieces(run.feed.read(), frames):
            yield piece
        # The run could not begin after the headers of the answer were sent
        if not run.feed.events and (error := run.reply.exception()) is not None:
            body = RunError(error={"type": type(error).__name__, "msg": str(error)})
            event = Event(run=run.id, turn=0, step=None, seq=0, ts=SystemClock().now(), parent=None, body=body)
            for piece in frames.pieces([event], -1):
                yield piece

    return EventStreamResponse(pieces(), ((b"x-run-id", run.id.encode()),))


async def start_run(gateway: Gateway, call: Call) -> StartedRun:
    """Starts a run and returns at once; follow its events with `GET /api/runs/{run}/events`."""
    run = await begin(gateway, call.caller, call.path["session"], call.body)
    return StartedRun(run=run.id, session=call.path["session"])


async def run_events(gateway: Gateway, call: Call) -> EventStreamResponse:
    """Replays the events of a run after `Last-Event-ID` or `after`, then follows it to its end."""
    run = call.path["run"]
    session = gateway.session_of_run(call.caller, run)
    position, last = call.query.after, call.headers.get("last-event-id", "")
    found = _POSITION.fullmatch(last)
    if position is None and last and (found is None or found[1] != run):
        raise HttpProblem(400, "usage", "Last-Event-ID does not belong to this run")
    after = int(found[2]) if position is None and found else -1 if position is None else int(position)
    frames = _frames(gateway.runs.feeds.find(run), session, call.query.events)
    return EventStreamResponse(_pieces(gateway.runs.feeds.follow(run, after), frames, after))


async def all_events(gateway: Gateway, call: Call) -> EventStreamResponse:
    """Streams the events of all runs that the token may see, from now on or after `Last-Event-ID`. An event `Reset`
    means that some were missed: read the lists again."""
    feeds, last = gateway.runs.feeds, call.headers.get("last-event-id", "")
    epoch, _, number = last.partition(":")
    known = epoch == feeds.epoch and number.isascii() and number.isdigit() and len(number) < 16
    after = min(int(number), feeds.last) if known else feeds.last
    missed = bool(last) and (not known or feeds.last - after > RECENT)

    async def pieces() -> AsyncIterator[bytes]:
        languages = dict[str, Language]()
        if missed:
            yield frame({}, event="Reset", name=f"{feeds.epoch}:{feeds.last}")
        async for news in feeds.follow_all(after):
            session = None if news is None else gateway.session_name(call.caller, news.session)
            if news is None:
                yield PING
            elif session is not None:
                body, run = news.event.body, news.event.run
                if isinstance(body, RunStarted):
                    languages[run] = "zh" if body.language == "zh" else "en"
                language = languages.get(run, "en")
                if isinstance(body, LAST):
                    languages.pop(run, None)
                sent = as_sent(news.event, session, language, call.query.events)
                if sent is not None:
                    yield frame(sent.data, event=sent.event, name=f"{feeds.epoch}:{news.number}")

    return EventStreamResponse(pieces())


async def begin(
    gateway: Gateway, caller: Caller, session: str, body: ChatMessage, patience: float | None = None
) -> Run:
    """Starts the run of a message and waits for its first event, at most `patience` seconds; raises the error if it
    cannot start."""
    refuse_message(body.message)
    if body.allow and not caller.may("approve"):
        hint = "navigator serve --new-token --role approve"
        raise HttpProblem(403, "role", "`allow` needs a token with the role approve", hint=hint)
    name = gateway.session_id(caller, session)
    message = Message(text=body.message, attended=False, language=body.language, allow=words_in(body.allow))

    def asked(turns: Turns) -> tuple[Message, Session]:
        return message, turns.session(name)

    run = gateway.runs.start(name, asked, partial(may_approve, caller))
    with suppress(TimeoutError):
        await asyncio.wait_for(run.begun(), patience)
    return run


async def _pieces(events: AsyncIterator[Sequence[Event]], frames: Frames, after: int = -1) -> AsyncIterator[bytes]:
    async with aclosing(events) as held:  # type: ignore[type-var]  # an asynchronous generator
        async for news in held:
            if not news:
                yield PING
            for piece in frames.pieces(news, after):
                yield piece


def _frames(feed: Feed | None, session: str, which: Which) -> Frames:
    """The frames that all readers of a run share while it is active."""
    if feed is None:
        return Frames(session, which)
    return feed.frames.setdefault((session, which), Frames(session, which))


_endpoint = partial(Endpoint, tag="chat", role="chat")
_stream = partial(_endpoint, media=EVENT_STREAM)
_message: Any = {"body": ChatMessage, "errors": (409,)}
_follow: Any = {"tag": "runs", "query": Following, "headers": ("Last-Event-ID",), "errors": (404,)}
_STREAM, _FOLLOW = "Send a message and stream the events of its run", "Replay the events of a run, then follow it"
_START: Any = {**_message, "answer": StartedRun, "status": 202}

ENDPOINTS = (
    _stream("POST", "/api/chat/{session}", _STREAM, chat, query=Events, sends=("X-Run-Id",), **_message),
    _endpoint("POST", "/api/sessions/{session}/runs", "Send a message without waiting", start_run, **_START),
    _stream("GET", "/api/events", "Follow all runs in one stream", all_events, tag="runs", query=Events),
    _stream("GET", "/api/runs/{run}/events", _FOLLOW, run_events, **_follow),
)
