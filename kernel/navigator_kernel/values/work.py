"""A task for the agent loop, and its progress (JIT-6)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from navigator_kernel.events import UICommand
from navigator_kernel.text import Language
from navigator_kernel.values.chat import CUT_OFF, ChatMessage, Cut, Finish, ShownFile, Spent, ToolCall
from navigator_kernel.values.packet import Packet, Report, shaped
from navigator_kernel.values.standing import Standing

if TYPE_CHECKING:
    from navigator_kernel.values.redact import Redact
    from navigator_kernel.values.request import Session

RESULTS = ".tool-results"  # the folder of a workspace with the whole results of tools that are shortened for a model
PROGRESS = "progress"  # the order's parameter for its progress before it waited


class AgentTask(Struct, frozen=True, kw_only=True):
    """`guide` is the text of the skill, `digest` that of its folder, `tools` are the names that it declares; `history`
    are the earlier messages, `memories` the recalled memories, `model` is an alias or `provider:model`, `now` ISO 8601.
    `step` is the number within its run; `limit` is in seconds, 0 for that of the turn; `unknown` is a model that the
    skill asks for but that is not set. `standing` is how far the person accepts the skill ("trusted" without a skill);
    `private` is true if the model's first input contains files, memories, earlier results, or answers of a session in
    which such data was read. The built-in tools work for the resource `target` in its `folder`, in
    `workspace` and in the `project`, on the files that the person `named`, and can read those that `earlier` turns of
    the session wrote, all absolute paths; `allowed` are the words of its `allowed-tools`.
    `begun` is the call that was active when a process was killed, and is made now; `intent` are the digests of its
    file before and after, if they were known by then. `likely` are lines about skills that may fit, for a message
    without a skill. `note` is a sentence for the person beside the answer: why the skill's model has no tools."""

    run: str
    step: int
    request: str
    language: Language
    now: str = ""
    skill: str = ""
    digest: str = ""
    guide: str = ""
    tools: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    history: tuple[ChatMessage, ...] = ()
    model: str = ""
    unknown: str = ""
    limit: float = 0.0
    standing: Standing = "trusted"
    private: bool = False
    target: str = ""
    folder: str = ""
    workspace: str = ""
    project: str = ""
    named: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    allowed: tuple[str, ...] = ()
    begun: str = ""
    intent: tuple[str, ...] = ()
    likely: tuple[str, ...] = ()
    note: str = ""


class AgentState(Struct, frozen=True, kw_only=True):
    """`messages` are those after the opening: answers, calls and results of tools; `cut` says how they are shortened
    for the model. `began` is when the work began (`AgentTask.now`), `spent_before` what it had spent when the person
    said to continue, `words` what they said then, until the model has it. `workspace` names the folder of its files,
    which stays the same when the task continues in another run. `refusal` is the person's reason against the waiting
    call, "" for a no without a reason and None if nothing was refused; `refused` are the calls that the person refused,
    which are not asked about again; `notes` are sentences beside the answer. `begun` is the call that was active when
    the work ended, `intent` the digests of the file that it was about to change, before and after. `skill`
    is the resource and the digest of the skill that the model loaded, with `@` between them."""

    messages: tuple[ChatMessage, ...] = ()
    rounds: int = 0
    continuations: int = 0
    cut: Cut = Cut()
    began: str = ""
    words: str = ""
    spent_before: Spent = field(default_factory=Spent)
    spent: Spent = field(default_factory=Spent)
    model: str = ""
    finish: Finish = "stop"
    workspace: str = ""
    refusal: str | None = None
    refused: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    begun: str = ""
    intent: tuple[str, ...] = ()
    skill: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The result in the form of a report."""
        told: dict[str, Any] = {"model": self.model, "rounds": self.rounds, "continuations": self.continuations}
        return {**told, "usage": self.spent.to_dict()}

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """The calls of the last answer without a result."""
        asked = next((at for at in reversed(range(len(self.messages))) if self.messages[at].role == "assistant"), None)
        if asked is None:
            return ()
        answered = {message.call for message in self.messages[asked + 1 :]}
        return tuple(call for call in self.messages[asked].calls if call.id not in answered)

    @property
    def has_worked(self) -> bool:
        """Whether a call was made, or was under way when the work ended."""
        return bool(self.begun) or any(message.role == "tool" for message in self.messages)

    @property
    def is_answered(self) -> bool:
        """Whether the last message is the model's answer and no call is open."""
        return bool(self.messages) and self.messages[-1].role == "assistant" and not self.open_calls

    @property
    def is_cut_off(self) -> bool:
        """Whether the rest of an answer is asked for that was cut off."""
        return bool(self.messages) and self.messages[-1].name == CUT_OFF and self.messages[-1].role == "user"

    @property
    def spent_now(self) -> Spent:
        """What was spent since the person said to continue."""
        return self.spent - self.spent_before

    def with_words(self) -> AgentState:
        """The state in which the person's words are the last message."""
        return replace(self, messages=(*self.messages, ChatMessage(role="user", text=self.words)), words="")

    def kept(self) -> str:
        """The state as JSON; `progress_of` is the inverse."""
        return json.dumps(msgspec.to_builtins(self), ensure_ascii=False)

    @property
    def text(self) -> str:
        """The model's text for the person, since they said to continue; the texts of two answers are two paragraphs."""
        text, is_rest = "", False
        for message in self.messages:
            if message.role == "assistant" and message.text:
                text += ("" if is_rest else gap(text)) + message.text
            elif message.role == "user" and not message.name:
                text = ""
            is_rest = message.role == "user" and message.name == CUT_OFF
        return text


def gap(before: str) -> str:
    """What stands between the texts of two answers, so that they are two paragraphs; `before` ends the first one."""
    return "\n\n"[len(before) - len(before.rstrip("\n")) :] if before else ""


def redacted(progress: AgentState, redact: Redact) -> AgentState:
    """Redacts messages and tool results; arguments of calls stay unchanged, as consent is bound to them."""
    messages = tuple(replace(message, text=redact(message.text)) for message in progress.messages)
    return replace(progress, messages=messages)


def progress_of(text: str) -> AgentState:
    """The inverse of `AgentState.kept`, also for the states of earlier versions; ValueError, KeyError or TypeError for
    invalid text."""
    body = json.loads(text)
    return shaped({**body, "messages": body["messages"]}, AgentState)


def with_progress(packet: Packet, report: Report) -> Packet:
    """The packet, to continue from the state in its report."""
    return _continuing(packet, report.progress) if report.progress else packet


def _continuing(packet: Packet, state: str) -> Packet:
    return replace(packet, params=replace(packet.params, optional={**packet.params.optional, PROGRESS: state}))


def is_unfinished(session: Session) -> bool:
    """Whether a model's work stopped at a limit or a failure after it had done something, so that it can go on."""
    return bool(session.retry) and with_words(session.retry[0], "", only_again=True) is not None


def with_words(packet: Packet, words: str, *, only_again: bool) -> Packet | None:
    """The packet, to go on with the work of a model that stopped, and what the person said; None if no model has worked
    on it yet. With `only_again` the words mean only that it should go on, and a model that has given no answer since
    its last call need not see them."""
    state = _state_in(packet)
    if state is None or not state.has_worked:
        return None
    words = words if state.is_answered or not only_again else ""
    return _continuing(packet, replace(state, words=words, spent_before=state.spent).kept())


def _state_in(packet: Packet) -> AgentState | None:
    """The state that a packet continues from, or None."""
    try:
        return progress_of(str(packet.params.optional[PROGRESS]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def with_refusal(packet: Packet, why: str) -> Packet | None:
    """The packet, to continue after the person refused the waiting call, with the reason `why`; None if no call of a
    model is waiting."""
    state = _state_in(packet)
    if state is None or not state.open_calls:
        return None
    return _continuing(packet, replace(state, refusal=why).kept())


class ToolAnswer(Struct, frozen=True, kw_only=True):
    """The result of a call: text and `files` for the model, whether it failed, `commands` for a user interface, whether
    it `changed` anything, the `skill` that it loaded, as in `AgentState`, and a `note` for the
    person."""

    text: str
    failed: bool = False
    commands: tuple[UICommand, ...] = ()
    changed: bool = False
    files: tuple[ShownFile, ...] = ()
    skill: str = ""
    note: str = ""
