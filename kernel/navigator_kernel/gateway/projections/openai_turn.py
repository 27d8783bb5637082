"""Runs a turn for an OpenAI client: begins it from a conversation, streams it, and stops it if the client leaves.

Notes about what the kernel does come beside the answer, and clients show them as a model's reasoning.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct
from starlette.responses import Response

from navigator_kernel.bootstrap.turns import Turns, refuse_message
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import (
    Body,
    Progress,
    RunContent,
    RunStarted,
    SkillActivated,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
    UICommand,
    Usage,
)
from navigator_kernel.gateway.problems import problem_of
from navigator_kernel.gateway.projections.openai_models import skill_of
from navigator_kernel.gateway.projections.openai_sessions import Conversation, find_session, keep_end, open_session
from navigator_kernel.gateway.runs import Run, may_approve
from navigator_kernel.gateway.streams.sse import disconnected
from navigator_kernel.language.rendering import file_lines
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, clean, shorten
from navigator_kernel.values.chat import Spent, spent_by
from navigator_kernel.values.request import Message, Session

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.values.http.endpoint import Call
    from navigator_kernel.values.packet import Report
    from navigator_kernel.values.redact import Redact
    from navigator_kernel.values.reply import Reply


FAILED = (
    424  # a turn that failed after its start: clients repeat a request after 409, 429 and 5xx, and a turn has effects
)


class Piece(Struct, frozen=True):
    """One piece of a stream: `text` belongs to the answer, `note` says what the kernel does, `ping` is empty."""

    kind: Literal["text", "note", "ping"]
    text: str = ""


class TurnFailed(Exception):
    """The turn ended without an answer; `code` is a stable word for programs."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class OpenAITurn:
    """One run. Read `pieces` once; then `text`, `spent` and `is_cut` are those of the whole answer."""

    def __init__(self, gateway: Gateway, call: Call, conversation: Conversation, run: Run) -> None:
        self.run, self.session = run, gateway.session_name(call.caller, run.session) or run.session
        self.text, self.spent, self.is_cut = "", Spent(), False
        self._gateway, self._call, self._conversation = gateway, call, conversation
        self._language: Language = "en"
        self._is_apart = False  # whether something was done since the last text

    @property
    def headers(self) -> tuple[tuple[bytes, bytes], ...]:
        return (b"x-run-id", self.run.id.encode()), (b"x-session-id", self.session.encode())

    async def pieces(self) -> AsyncIterator[Piece]:
        """The pieces until the turn ends; TurnFailed if it ends without an answer."""
        async with aclosing(self.run.feed.read()) as events:  # type: ignore[type-var]  # an asynchronous generator
            async for news in events:
                if not news:
                    yield Piece("ping")
                for event in news:
                    match event.body:
                        case RunStarted(language="zh"):
                            self._language = "zh"
                        case Usage():
                            self.spent += spent_by(event.body)
                        case RunContent(text=text) if event.step is not None and clean(text):
                            yield self._said(clean(text))
                            continue
                    if note := note_of(event.body, self._language):
                        self._is_apart = True
                        yield Piece("note", f"{note}\n")
        try:
            reply = await self.run.reply
        except KernelError as error:
            raise TurnFailed(error.code, error.message) from error
        except Exception as error:
            raise TurnFailed("error", "the run failed") from error
        report, redact = reply.report, self._gateway.project.redact
        if report.state in {"error", "timeout"}:
            await self._keep_end(reply, "")
            code = "timeout" if report.state == "timeout" else str(report.data.get("code", "error"))
            # The reason why a turn failed, with the hint
            parts = report.summary, str(report.data.get("hint", ""))
            raise TurnFailed(code, clean(str(redact(" - ".join(filter(None, parts))))))
        may = self._call.caller.may("approve")
        rest = rest_of(reply, self._language, redact, has_text=bool(self.text), may_approve=may)
        if rest:
            self._is_apart = True
            yield self._said(rest)
        self.is_cut = report.data.get("reason") == "length"
        await self._keep_end(reply, self.text)

    async def _keep_end(self, reply: Reply, answer: str) -> None:
        await keep_end(self._gateway, self._call.caller, self._conversation, answer, reply.session)

    def stop(self) -> None:
        """Ends the run if it is under way."""
        if not self.run.reply.done():
            with suppress(NotFound):
                self._gateway.runs.stop(self.run.id)

    def _said(self, text: str) -> Piece:
        """Adds `text` to the answer, as a new paragraph if something else was done since the last text."""
        has_gap = self.text.endswith("\n") or text.startswith("\n")
        gap = GAP if self.text.strip() and self._is_apart and not has_gap else ""
        self._is_apart = False
        self.text += gap + text
        return Piece("text", gap + text)


async def begin(gateway: Gateway, call: Call, model: str, conversation: Conversation) -> OpenAITurn:
    """Begins the turn of the last message; raises the error that kept it from beginning."""
    refuse_message(conversation.text)
    skill = await asyncio.to_thread(skill_of, gateway, model)
    found = await find_session(gateway, call.caller, conversation)
    message = Message(text=conversation.text, attended=False, skill=skill)

    def asked(turns: Turns) -> tuple[Message, Session]:
        return message, open_session(turns, found)

    run = gateway.runs.start(found.name, asked, partial(may_approve, call.caller))
    await run.begun()
    return OpenAITurn(gateway, call, conversation, run)


class TurnResponse:
    """Sends `answer`; the run ends if the client leaves, as it cannot come back to the run."""

    def __init__(self, turn: OpenAITurn, answer: ASGIApp) -> None:
        self._turn, self._answer = turn, answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._answer(scope, receive, send)
        finally:
            self._turn.stop()


class WholeAnswer:
    """Waits for `whole`, the answer at the end of a turn, and sends it as JSON."""

    def __init__(self, turn: OpenAITurn, whole: Awaitable[Mapping[str, Any]]) -> None:
        self._turn, self._whole = turn, whole

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def respond() -> Response:
            try:
                data = msgspec.json.encode(await self._whole)
            except Exception as error:  # noqa: BLE001 - every failure becomes a problem document
                return problem_of(error)
            sent = {name.decode(): value.decode() for name, value in self._turn.headers}
            return Response(data, headers={"cache-control": "no-store", **sent}, media_type="application/json")

        waiting = asyncio.ensure_future(respond())
        gone = asyncio.ensure_future(disconnected(receive))
        try:
            await asyncio.wait({waiting, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (waiting, gone):
                task.cancel()
            await asyncio.wait({waiting, gone})
        if not waiting.cancelled():
            await waiting.result()(scope, receive, send)


ARGUMENTS, RESULT = 200, 300  # characters to show
_OWN = frozenset({"skills", "kernel"})  # agents whose work shows as skills and tools


def note_of(body: Body, language: Language) -> str:
    """The line for an event; empty if it has none."""
    match body:
        case SkillActivated(skill=skill):
            text = say("page.loading", language, skill=skill)
        case StepStarted(agent=agent) if agent not in _OWN:
            text = f"{agent}…"
        case ToolCallStarted(tool=tool, args=args) if not _is_own(tool):
            text = f"{tool} {shorten(json.dumps(dict(args), ensure_ascii=False), ARGUMENTS)}"
        case ToolCallCompleted(tool=tool, state=state, result=result) if not _is_own(tool):
            text = f"{tool}: {state} {shorten(result, RESULT)}"
        case Progress(text=said):
            text = said
        case UICommand(type="toast", payload=payload):
            text = str(payload.get("message", ""))
        case _:
            return ""
    return clean(text, lines=False).strip()


def _is_own(tool: str) -> bool:
    """Whether it is a call of the kernel's own; these have the name of an agent before a dot."""
    return "." in tool


# Adds to a model's streamed text the rest of an answer: an output, a question and how to answer it, a reason.

GAP = "\n\n"


def rest_of(reply: Reply, language: Language, redact: Redact, *, has_text: bool, may_approve: bool) -> str:
    """The text to add to the streamed text; empty if a model's answer is complete. `has_text` says whether any text was
    streamed, `may_approve` whether the token that sent the message may approve."""
    report, waits = reply.report, reply.session.approval is not None
    if report.by_model and has_text:
        parts = [] if report.state == "success" else [report.summary]
    else:
        steps = report.data.get("steps", ()) if report.data.get("reason") == "plan" else ()
        numbered = "\n".join(f"{at}. {step}" for at, step in enumerate(steps, 1))
        parts = [(reply.question if waits else "") or _whole(report), numbered]
    if report.by_model:
        hint = report.data.get("hint", "") if report.data.get("written") else ""
        parts.append("\n".join([*file_lines(report, language), *([hint] if hint else [])]))
    if waits:
        parts.append(say("openai.answer" if may_approve else "openai.may_not", language))
    return clean(str(redact(GAP.join(filter(None, parts)))))


def _whole(report: Report) -> str:
    """The output, after the summary if it is a JSON object, or what can be done where there is none."""
    raw = (report.raw or "").strip()
    if not raw:
        return "\n".join([report.summary, *(f"- {way}" for way in report.data.get("ways", ()))])
    with suppress(ValueError, RecursionError):
        if not report.by_model and raw.startswith("{") and isinstance(json.loads(raw), dict):
            return f"{report.summary}{GAP}```json\n{raw}\n```"
    return raw
