"""Proxies for the ports of a turn: they record each answer, or return the recorded one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert
from msgspec.structs import asdict, replace

from navigator_kernel.errors import KernelError
from navigator_kernel.events import Event, UICommand
from navigator_kernel.replay.recording import Form, Tape
from navigator_kernel.text import whole_words
from navigator_kernel.values.chat import ChatMessage, Completion, ShownFile, Spent, tried_of
from navigator_kernel.values.context import Memory
from navigator_kernel.values.packet import Report, report_of, report_to_dict
from navigator_kernel.values.request import FileReference
from navigator_kernel.values.work import ToolAnswer

if TYPE_CHECKING:
    from datetime import date

    from navigator_kernel.model_ports import ChatModel, ModelRegistry, Tools
    from navigator_kernel.ports import Clock, Dispatcher, FileReader, Ids, Journal, Kernel, MemorySearch
    from navigator_kernel.values.chat import Asked, ToolCall, ToolSpec
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.work import AgentTask


def _completion(held: Mapping[str, Any]) -> Completion:
    message, spent = ChatMessage.from_dict(held["message"]), Spent(**held["spent"])
    tried = tried_of(held) if held.get("tried") else ()
    return Completion(message=message, model=held["model"], finish=held["finish"], spent=spent, tried=tried)


def _tool_answer(held: Mapping[str, Any]) -> ToolAnswer:
    commands = tuple(UICommand(**one) for one in held["commands"])
    files = tuple(ShownFile(*one) for one in held.get("files", ()))
    return ToolAnswer(text=held["text"], failed=held["failed"], commands=commands, changed=held["changed"], files=files)


def _whole(pieces: Sequence[str]) -> list[str]:
    """The pieces as whole words, as they are shown: a secret in two pieces would not be recognised."""
    words, rest = list[str](), ""
    for piece in pieces:
        rest += piece
        if at := whole_words(rest):
            words.append(rest[:at])
            rest = rest[at:]
    return [*words, rest] if rest else words


REPORT = Form(report_to_dict, report_of)
JOURNAL = "journal"
NOTHING = Form(lambda _: None, lambda _: None)
FILE = Form(lambda found: [str(found[0]), found[1]], lambda held: (Path(held[0]), held[1]))
FOUND = Form(
    lambda found: [{**asdict(one), "path": str(one.path)} for one in found],
    lambda held: convert(held, tuple[FileReference, ...], dec_hook=lambda kind, value: kind(value)),
)
MEMORIES = Form(lambda found: [asdict(one) for one in found], lambda held: tuple(Memory(**one) for one in held))
TOOL_ANSWER = Form(lambda held: {**asdict(held), "files": [list(one) for one in held.files]}, _tool_answer)
COMPLETION = Form(
    lambda done: {
        "message": done.message.to_dict(), "model": done.model, "finish": done.finish, "spent": asdict(done.spent),
        "tried": [one.to_dict() for one in done.tried],
    },
    _completion,
)  # fmt: skip
SAID = Form(
    lambda held: [COMPLETION.encode(held[0]), _whole(held[1]), *held[2:]],
    lambda held: (COMPLETION.decode(held[0]), held[1], held[2] if held[2:] else []),  # an older tape has no waits
)


class ReplayableClock(Struct, frozen=True):
    """Implements `ports.Clock`."""

    inner: Clock
    tape: Tape

    def now(self) -> str:
        return self.tape.heard("now", self.inner.now)

    def monotonic(self) -> float:
        return self.tape.heard("monotonic", self.inner.monotonic)


class ReplayableIds(Struct, frozen=True):
    """Implements `ports.Ids`."""

    inner: Ids
    tape: Tape

    def new(self) -> str:
        return self.tape.heard("id", self.inner.new)


class ReplayableFiles(Struct, frozen=True):
    """Implements `ports.FileReader`."""

    inner: FileReader
    tape: Tape

    def read(self, written: str) -> tuple[Path, str]:
        return self.tape.heard(f"file:{written}", lambda: self.inner.read(written), FILE)

    def find(self, text: str, today: date) -> tuple[FileReference, ...]:
        return self.tape.heard(f"find:{text}", lambda: self.inner.find(text, today), FOUND)


class ReplayableMemory(Struct, frozen=True):
    """Implements `ports.MemorySearch`."""

    inner: MemorySearch
    tape: Tape

    def recall(self, message: str) -> tuple[Memory, ...]:
        return self.tape.heard("memory", lambda: self.inner.recall(message), MEMORIES)


class ReplayableDispatcher(Struct, frozen=True):
    """Implements `ports.Dispatcher`. No agent is asked during a replay."""

    inner: Dispatcher
    tape: Tape

    async def submit(self, packet: Packet) -> str:
        return packet.context.idempotency_key if self.tape.playing else await self.inner.submit(packet)

    async def events(self, task: str) -> AsyncIterator[Event]:
        if not self.tape.playing:
            async for event in self.inner.events(task):
                yield event

    async def result(self, task: str) -> Report:
        return await self.tape.awaited(f"report:{task}", lambda: self.inner.result(task), REPORT)

    async def cancel(self, task: str) -> None:
        if not self.tape.playing:
            await self.inner.cancel(task)

    def heartbeat(self, task: str) -> float:
        return 0.0 if self.tape.playing else self.inner.heartbeat(task)


class ReplayableModel(Struct, frozen=True):
    """Implements `model_ports.ChatModel`; the pieces of an answer are kept as whole words."""

    inner: ChatModel
    tape: Tape

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def context(self) -> int:
        return self.inner.context

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        pieces, waits = list[str](), list[tuple[str, float]]()

        def piece(text: str) -> None:
            pieces.append(text)
            if told is not None:
                told(text)

        def wait(model: str, seconds: float) -> None:
            waits.append((model, seconds))
            if asked.waits is not None:
                asked.waits(model, seconds)

        async def answered() -> tuple[Completion, list[str], list[tuple[str, float]]]:
            heard = piece if told is not None else None
            try:
                return await self.inner.complete(replace(asked, waits=wait), heard), pieces, waits
            except KernelError as error:
                error.data = {**error.data, "pieces": _whole(pieces), "waits": waits}
                raise

        try:
            done, said, waited = await self.tape.awaited("model:answer", answered, SAID)
        except KernelError as error:
            self._again(asked, told, error.data.get("pieces", ()), error.data.get("waits", ()))
            error.data = {name: held for name, held in error.data.items() if name not in {"pieces", "waits"}}
            raise
        self._again(asked, told, said, waited)
        return done

    def _again(
        self, asked: Asked, told: Callable[[str], None] | None, said: Iterable[str], waited: Iterable[Any]
    ) -> None:
        """During a replay, reports the recorded waits and pieces of the answer again."""
        if not self.tape.playing:
            return
        if asked.waits is not None:
            for model, seconds in waited:
                asked.waits(str(model), float(seconds))
        if told is not None:
            for text in said:
                told(text)

    async def close(self) -> None:
        await self.inner.close()


class ReplayableModels(Struct, frozen=True):
    """Implements `model_ports.ModelRegistry`."""

    inner: ModelRegistry
    tape: Tape

    def knows(self, name: str) -> bool:
        return self.inner.knows(name)

    def chain(self, name: str = "") -> ChatModel:
        return ReplayableModel(self.inner.chain(name), self.tape)

    async def close(self) -> None:
        await self.inner.close()


class ReplayableTools(Struct, frozen=True):
    """Implements `model_ports.Tools`. No tool is called during a replay."""

    inner: Tools
    tape: Tape

    def admit(self, work: AgentTask) -> None:
        if work.standing == "unknown" and (work.tools or work.allowed):
            self.tape.heard("admit", lambda: self.inner.admit(work))

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        return self.inner.offered(work)

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        async def called() -> ToolAnswer:
            return await self.inner.call(work, call, arguments)

        return await self.tape.awaited(f"tool:{call.id}", called, TOOL_ANSWER)


class ReplayableJournal(Struct, frozen=True):
    """Implements `ports.Journal`. The work of a workflow is in its journal and not on a tape; the tape only records
    that."""

    inner: Journal
    tape: Tape

    def __getattr__(self, name: str) -> Any:
        return self.tape.heard(JOURNAL, lambda: getattr(self.inner, name), NOTHING)


class NullSink:
    """Stands in for everything that a turn changes outside itself, during a replay: its calls do nothing."""

    def __getattr__(self, _name: str) -> Callable[..., Any]:
        return lambda *_args, **_facts: None


class UnusedConsents(NullSink):
    """Stands in for the consents during a replay, in which nothing is executed and so nothing is used up."""

    def left(self, _run: str, subjects: Sequence[str]) -> tuple[str, ...]:
        return tuple(subjects)


class InMemoryRunLog(Struct):
    """Implements `ports.RunLog` in memory."""

    held: list[Event]

    def append(self, event: Event) -> None:
        self.held.append(event)

    def read(self, run: str) -> Sequence[Event]:
        return [event for event in self.held if event.run == run]

    def runs(self) -> Sequence[str]:
        return sorted({event.run for event in self.held}, reverse=True)


def taped(kernel: Kernel, tape: Tape) -> Kernel:
    """The kernel with a recording proxy for each port; a replay changes nothing outside the turn."""
    replaced: dict[str, Any] = {
        "clock": ReplayableClock(kernel.clock, tape),
        "ids": ReplayableIds(kernel.ids, tape),
        "files": ReplayableFiles(kernel.files, tape),
        "root_files": ReplayableFiles(kernel.root_files, tape),
        "memory": ReplayableMemory(kernel.memory, tape),
        "dispatcher": ReplayableDispatcher(kernel.dispatcher, tape),
        "journal": ReplayableJournal(kernel.journal, tape),
    }
    if tape.playing:
        nothing = NullSink()
        replaced |= dict.fromkeys(("lessons", "writer", "audit"), nothing) | {"consents": UnusedConsents()}
        replaced |= {"run_log": InMemoryRunLog([]), "finish_hook": lambda _reply: None}
    return replace(kernel, **replaced)
