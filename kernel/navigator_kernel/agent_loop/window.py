"""What a model is shown: the opening of a task, then its work, within the model's context (X-14, X-15).

A call is never separated from its answer. The work of a turn is shortened in few, large steps, so that the beginning of
a request stays the same from round to round and a provider can read it from its cache: first older results of tools
become a line each, then the oldest messages are left out, with a line in their place.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, escape_controls, lazy_compile
from navigator_kernel.values.allowed import DELIVER, allowed_tools
from navigator_kernel.values.chat import PDF, ChatMessage, Cut

if TYPE_CHECKING:
    from navigator_kernel.values.work import AgentTask


HISTORY = 8_000  # tokens of earlier turns
WORK = 48_000  # tokens of this turn's work for a model whose context is not known
MOST = 150_000  # tokens of this turn's work for any model: larger requests are slow and expensive
TURNS = 10  # turns of the conversation (JIT-4)
PICTURE = 1_600  # tokens of a picture, roughly
PDF_BYTES = 50  # bytes of a PDF per token, roughly
SHORT = 400  # characters of a result or of an argument that is never shortened
BEGINNING = 200  # characters that stay of an argument


def tokens(message: ChatMessage) -> int:
    """A rough count: one token for four ASCII characters, one for any other, four for the message, and its files."""
    text = message.text + message.wire + "".join(call.name + call.arguments for call in message.calls)
    wide = 0 if text.isascii() else len(text) - len(text.encode("ascii", "ignore"))
    shown = sum(max(file.size // PDF_BYTES, PICTURE) if file.kind == PDF else PICTURE for file in message.files)
    return 4 + wide + (len(text) - wide + 3) // 4 + shown


def room_for_work(context: int, opening: Iterable[ChatMessage]) -> int:
    """The tokens that the work of a turn may take beside its `opening`, for a model with a `context` of that many
    tokens, 0 if that is not known. A quarter stays free for the tools' descriptions, the answer, and a wrong count."""
    if not context:
        return WORK
    return min(max(context * 3 // 4 - sum(map(tokens, opening)), context // 4), MOST)


def units(messages: Iterable[ChatMessage]) -> list[tuple[ChatMessage, ...]]:
    """Groups messages that belong together: calls with all their answers; every other message is alone."""
    groups: list[list[ChatMessage]] = []
    for message in messages:
        if message.role == "tool" and groups and groups[-1][0].calls:
            groups[-1].append(message)
        else:
            groups.append([message])
    return [tuple(group) for group in groups]


def newest(messages: Sequence[ChatMessage], budget: int) -> tuple[ChatMessage, ...]:
    """The last whole units within `budget` tokens; tool results without their call are left out."""
    kept: list[tuple[ChatMessage, ...]] = []
    for unit in reversed(units(messages)):
        cost = sum(map(tokens, unit))
        if cost > budget:
            break
        budget -= cost
        if unit[0].role != "tool":
            kept.append(unit)
    return tuple(message for unit in reversed(kept) for message in unit)


def fitting(messages: Sequence[ChatMessage], cut: Cut, room: int, language: Language) -> Cut:
    """`cut`, or a stronger one if `messages` take more than `room` tokens with it: then they take about half of that.
    The newest units stay whole, at least one and at most a quarter of `room`."""
    if _cost(messages, cut, language) <= room:
        return cut
    whole = units(messages)
    newest_at = len(messages) - len(whole[-1])
    left = room // 4 - sum(map(tokens, whole[-1]))
    for unit in reversed(whole[:-1]):
        left -= sum(map(tokens, unit))
        if left < 0:
            break
        newest_at -= len(unit)
    cut = Cut(cut.left_out, max(cut.shortened, newest_at))
    at = 0
    for unit in whole[:-1]:
        at += len(unit)
        if _cost(messages, cut, language) <= room // 2 or at > newest_at:
            break
        cut = Cut(max(cut.left_out, at), cut.shortened)
    return cut


def shown(
    messages: Sequence[ChatMessage], cut: Cut, room: int, language: Language, folder: str = ""
) -> tuple[ChatMessage, ...]:
    """The messages as they are sent: as `cut` says, and with the newest results cut if they alone take more than
    `room` tokens. A shortened result names its file in `folder`, where there is one."""
    first = say("prompt.left_out", language, number=cut.left_out)
    begin = (ChatMessage(role="user", text=first),) if cut.left_out else ()
    older = (shortened(message, language, folder) for message in messages[cut.left_out : cut.shortened])
    whole = messages[max(cut.left_out, cut.shortened) :]
    if sum(map(tokens, whole)) <= room:
        return (*begin, *older, *whole)
    *before, last = units(whole)
    return (*begin, *older, *(message for unit in before for message in unit), *_within(last, room))


def is_shortened(message: ChatMessage) -> bool:
    """Whether `shortened` changes a result."""
    return message.role == "tool" and (len(message.text) > SHORT or bool(message.files))


def result_file(call: str) -> str:
    """The name of the file with the whole result of a call."""
    return f"{hashlib.sha256(call.encode()).hexdigest()[:12]}.txt"


def shortened(message: ChatMessage, language: Language, folder: str = "") -> ChatMessage:
    """A result as one line that says where the whole of it is; a call with the beginnings of its long arguments."""
    if is_shortened(message):
        where = f"{folder}/{result_file(message.call)}" if folder and message.text else ""
        key = "result.shortened" if where else "result.left_out"
        text = say(key, language, tool=message.name, size=f"{len(message.text):,}", path=where)
        return replace(message, text=text, files=())
    if message.role == "assistant" and message.calls and not message.wire:
        calls = []
        for call in message.calls:
            arguments = call.arguments
            if len(arguments) > SHORT:
                try:
                    arguments = json.dumps(_cut_texts(json.loads(arguments)), ensure_ascii=False)
                except (ValueError, RecursionError):
                    arguments = "{}"
            calls.append(replace(call, arguments=arguments))
        return replace(message, calls=tuple(calls))
    return message


def _cut_texts(value: Any) -> Any:
    match value:
        case str() if len(value) > SHORT:
            return f"{value[:BEGINNING]}… ({len(value) - BEGINNING:,} more characters were sent)"
        case dict():
            return {name: _cut_texts(one) for name, one in value.items()}
        case list():
            return [_cut_texts(one) for one in value]
    return value


def _cost(messages: Sequence[ChatMessage], cut: Cut, language: Language) -> int:
    older = (shortened(message, language) for message in messages[cut.left_out : cut.shortened])
    return sum(map(tokens, (*older, *messages[max(cut.left_out, cut.shortened) :])))


def _within(unit: Sequence[ChatMessage], room: int) -> tuple[ChatMessage, ...]:
    """A unit with its tool results cut to fit, so that the newest work is never left out."""
    answers = sum(message.role == "tool" for message in unit)
    each = room // (2 * answers) if answers else 0  # in characters, since one is rarely more than a token
    return tuple(
        replace(message, text=f"{message.text[:each]} …")
        if message.role == "tool" and len(message.text) > each
        else message
        for message in unit
    )


def past(history: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """The last turns, starting with a message of the person."""
    recent = newest(history[-2 * TURNS :], HISTORY)
    begin = next((at for at, message in enumerate(recent) if message.role == "user"), len(recent))
    return recent[begin:]


# The opening: the model's role, the history, the skill and the request, in that order

_MARK = lazy_compile(r"<(/?)skill", re.IGNORECASE)
NAMED = 20  # files of earlier turns listed for a model
SHOWN = 12  # digits of the digest that marks the end of a skill's text


def opening(work: AgentTask) -> tuple[ChatMessage, ...]:
    """Identity and safety are the same bytes for every skill, so that a provider can cache them (JIT-3, X-40); text
    that changes from turn to turn comes after the conversation."""
    guide = suffix(work)
    return (
        ChatMessage(role="system", text=identity(work.language)),
        *past(work.history),
        *((ChatMessage(role="user", text=guide),) if guide else ()),
        ChatMessage(role="user", text=work.request),
    )


def suffix(work: AgentTask) -> str:
    """The skill's text between marks that it cannot contain itself, since they have its digest; then memories, then the
    time (RTE-24, RTE-25)."""
    blocks: list[str] = []
    if work.guide:
        mark = work.digest.removeprefix("sha256:")[:SHOWN]
        head = f'<skill name="{work.skill}" digest="{mark}">'
        title = say("prompt.guide", work.language)
        guide = _MARK.sub(r"< \1skill", work.guide)  # foreign text, which must not close its own block
        blocks.append(f"{title}\n\n---\n## Skill: {work.skill}\n{head}\n{guide}\n</skill {mark}>")
    if work.memories:
        blocks.append("\n".join([say("prompt.memory", work.language), *(f"- {one}" for one in work.memories)]))
    if work.likely and not work.guide:
        lines = (_MARK.sub(r"< \1skill", line) for line in work.likely)
        blocks.append("\n".join([say("prompt.skills", work.language), *(f"- {line}" for line in lines)]))
    if known := environment(work):
        blocks.append(known)
    return "\n\n".join(blocks)


def environment(work: AgentTask) -> str:
    """What the model is told about the time, and about the folders and files of its tools; empty if there is nothing to
    tell."""
    language, facts = work.language, list[str]()
    if work.now:
        facts.append(say("prompt.time", language, now=work.now))
    if work.folder:
        facts.append(say("prompt.folder", language, path=escape_controls(work.folder)))
    if work.workspace:
        facts.append(say("prompt.workspace", language, path=escape_controls(work.workspace)))
        if DELIVER in allowed_tools(work.allowed).tools:
            facts.append(say("prompt.deliver", language))
    if work.project:
        facts.append(say("prompt.project", language, path=escape_controls(work.project)))
    if work.named:
        facts.append(say("prompt.named", language, paths=", ".join(map(escape_controls, work.named))))
    if work.earlier:
        facts.append(say("prompt.earlier", language, paths=", ".join(map(escape_controls, work.earlier[:NAMED]))))
    lines = [f"- {fact}" for fact in facts]
    return "\n".join([say("prompt.environment", language), *lines]) if lines else ""


@cache
def identity(language: Language) -> str:
    return (Path(__file__).parent / "prompts" / f"identity.{language}.md").read_text(encoding="utf-8")
