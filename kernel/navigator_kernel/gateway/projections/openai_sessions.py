"""Reads the conversation that an OpenAI client sends as a whole each time, and finds its session."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.stores.sessions import Conversations
from navigator_kernel.bootstrap.turns import RECALLED, Turns
from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import RunStarted
from navigator_kernel.values.http.endpoint import Caller, HttpProblem
from navigator_kernel.values.request import Said, Session

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

HEADER, FIELD = "x-session-id", "session_id"
NEW = "openai-"  # prefix of the names of sessions without a given name


class Conversation(Struct, frozen=True, kw_only=True):
    """What a client sent. `text` is the person's last message, `before` the messages before it, `system` the program's
    own text; `session`, and `previous`, the run that the message continues, are empty if they are not named; `user` is
    whom the client works for."""

    text: str
    before: tuple[Said, ...] = ()
    system: str = ""
    session: str = ""
    previous: str = ""
    user: str = ""


class Found(Struct, frozen=True, kw_only=True):
    """The session's name in the kernel. A new session begins with `before`."""

    name: str
    before: tuple[Said, ...] = ()


def named_session(headers: Mapping[str, str], metadata: Mapping[str, str] | None) -> str:
    """The session that a request names, or empty."""
    return headers.get(HEADER, "") or (metadata or {}).get(FIELD, "")


async def find_session(gateway: Gateway, caller: Caller, conversation: Conversation) -> Found:
    """Finds the session whose end this conversation continues, or a new one that begins with its messages. A
    conversation that was changed, or that continues from an earlier message, is a new one. NotFound if the previous run
    does not exist."""
    return await asyncio.to_thread(_find, gateway, caller, conversation)


async def keep_end(gateway: Gateway, caller: Caller, conversation: Conversation, answer: str, session: Session) -> None:
    """Records the session and turn of the conversation after the answer; an empty answer is left out. If that fails,
    the next message begins a new session with the earlier messages. A named session is not recorded: the client may not
    have sent all of its messages, so that another conversation would look the same."""
    if conversation.session or conversation.previous:
        return
    ended = (*conversation.before, _said("user", conversation.text), _said("assistant", answer))
    digest = _digest(caller, replace(conversation, before=ended if answer.strip() else ended[:-1]))
    try:
        await asyncio.to_thread(_store(gateway).keep, digest, session.id, session.turn)
    except KernelError as error:
        logging.getLogger("navigator").warning("%s", error.message)


def open_session(turns: Turns, found: Found) -> Session:
    """Opens the session, on the turn's thread. A new one stores `before` as history, which may be the person's data."""
    session = turns.session(found.name)
    if not found.before:
        return session
    is_private = any(one.role == "assistant" for one in found.before)
    session = replace(session, history=found.before, private=is_private)
    turns.project.sessions.save(session, found.before)
    return session


def _find(gateway: Gateway, caller: Caller, conversation: Conversation) -> Found:
    if conversation.session:
        name = gateway.session_id(caller, conversation.session)
        return Found(name=name, before=() if _turns(gateway, name) is not None else _beginning(conversation))
    if conversation.previous:
        # The session of the run; if it has continued since, a new one with its history up to the run
        run = conversation.previous
        gateway.session_of_run(caller, run)
        first = gateway.log.read(run)[0]
        name = first.body.session if isinstance(first.body, RunStarted) else ""
        turns = _turns(gateway, name)
        if turns is None or turns <= first.turn + 1:
            return Found(name=name)
        held = tuple(one for one in gateway.sessions.history(name) if one.run <= run)  # a run's id begins with its time
        return _new(gateway, caller, replace(conversation, before=held))
    known = _store(gateway).find(_digest(caller, conversation)) if conversation.before else []
    for one in known:
        if _turns(gateway, one.session) == one.turn:
            return Found(name=one.session)
    return _new(gateway, caller, conversation)


def _new(gateway: Gateway, caller: Caller, conversation: Conversation) -> Found:
    name = gateway.session_id(caller, f"{NEW}{gateway.ids.new()}")
    return Found(name=name, before=_beginning(conversation))


def _beginning(conversation: Conversation) -> tuple[Said, ...]:
    """The program's text, as if the person had said it, and then the last `RECALLED` of the earlier messages."""
    said = [_said("user", conversation.system)] if conversation.system.strip() else []
    return (*said, *conversation.before[-RECALLED:])


def _turns(gateway: Gateway, name: str) -> int | None:
    try:
        return gateway.sessions.load(name).turn
    except NotFound:
        return None


def _digest(caller: Caller, conversation: Conversation) -> str:
    """The digest of the caller, the user and the earlier messages; blanks at the ends do not count."""
    said: Sequence[tuple[str, str]] = [(one.role, one.text.strip()) for one in conversation.before]
    held = json.dumps([caller.id, conversation.user, said], ensure_ascii=True)
    return hashlib.sha256(held.encode()).hexdigest()


def _said(role: str, text: str) -> Said:
    return Said(role="assistant" if role == "assistant" else "user", text=text, run="")


def _store(gateway: Gateway) -> Conversations:
    project = gateway.project
    file = project.state.folder / "conversations.sqlite"
    return Conversations(file=file, writer=project.state_writer, clock=gateway.clock, shared=project.shared)


TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text"})
_PROGRAM = frozenset({"system", "developer"})
_NOT_FORCED = ("auto", "none")


class Part(Struct, frozen=True):
    """A part of a message's content."""

    type: str
    text: str = ""
    refusal: str = ""


def text_of(content: str | Sequence[Part] | None, role: str) -> str:
    """The text of a message; 400 if a person's message has a part of another kind."""
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.type not in TEXTS and role == "user":
            hint = "name a file of the project with @path in the text"
            raise HttpProblem(400, "unsupported_content", f"only texts can be read, not {part.type!r}", hint=hint)
    return "\n".join(part.text or part.refusal for part in content if part.type in TEXTS)


def conversation_of(
    said: Sequence[tuple[str, str]], *, user: str = "", session: str = "", previous: str = ""
) -> Conversation:
    """The last message and the ones before it, from pairs of role and text. Tools' messages are the client's own and
    are left out. 400 if the last message is not the person's."""
    told = [one for one in said if one[0] in {"user", "assistant"} and (one[0] == "user" or one[1].strip())]
    if not told or told[-1][0] != "user" or said[-1][0] in {"assistant", "tool", "function"}:
        raise HttpProblem(400, "usage", "the last message must have the role user")
    before = tuple(
        Said(role="assistant" if role == "assistant" else "user", text=text, run="") for role, text in told[:-1]
    )
    system = "\n\n".join(text for role, text in said if role in _PROGRAM and text.strip())
    return Conversation(text=told[-1][1], before=before, system=system, session=session, previous=previous, user=user)


def refuse_forced_tool(choice: str | Mapping[str, Any] | None) -> None:
    """Raises 400 if the answer must be a call of the client's tool: the kernel calls its own tools and ignores the
    client's, as a model may."""
    if choice is not None and choice not in _NOT_FORCED:
        raise HttpProblem(400, "unsupported_tool", "the tools of a request are not called", hint="tool_choice: auto")


def refuse_format(wanted: Mapping[str, Any] | None) -> None:
    """Raises 400 for a format of the answer that nothing here would enforce."""
    if wanted is not None and wanted.get("type", "text") != "text":
        raise HttpProblem(400, "unsupported_format", f"an answer is a text, not {wanted.get('type')!r}")
