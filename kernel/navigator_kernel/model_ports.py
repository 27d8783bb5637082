"""The ports to models: what may be asked of one, and which tools it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from navigator_kernel.events import Emit
    from navigator_kernel.text import Language
    from navigator_kernel.values.chat import Asked, Completion, GuardedTool, Result, ToolCall, ToolSpec
    from navigator_kernel.values.packet import Packet, Report
    from navigator_kernel.values.request import Said, Session
    from navigator_kernel.values.route import Judged, Retrieval
    from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """`provider:model`."""

    @property
    def context(self) -> int:
        """The tokens that fit its context, 0 if that is not known."""

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """Returns one answer. With `told`, the answer is streamed, and `told` receives each piece of text. Raises
        ModelFailed or TimedOut within the request's limit, NotFound without a key, NotLoadable without the package."""

    async def close(self) -> None: ...


class ModelRegistry(Protocol):
    """The configured models."""

    def knows(self, name: str) -> bool:
        """Whether `name` is an alias or `provider:model`."""

    def chain(self, name: str = "") -> ChatModel:
        """The model `name` with its fallbacks; the default model if `name` is empty or not known (X-32)."""

    async def close(self) -> None: ...


class Judge(Protocol):
    def is_wanted(self, found: Retrieval) -> bool:
        """Whether the result of retrieval is uncertain enough to ask a model (X-1)."""

    async def judge(self, text: str, found: Retrieval, said: Sequence[Said], language: Language) -> Judged:
        """Tier 3: asks a model which of the found skills the message needs, if any; `said` is the history."""


@runtime_checkable
class Tool(Protocol):
    """A tool of a plugin, that a model may call. It may also have `outward`, which is False if it reaches nobody else:
    then no question is asked before a call because the model has seen private data."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effects(self) -> tuple[str, ...]:
        """What a successful call changes (see `values.chat.ToolDef`)."""

    @property
    def confirm(self) -> str:
        """The question before each call, or empty."""

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        """Runs the tool; errors are results, too."""


class Tools(Protocol):
    """The tools that a model may call; no other call is carried out (JIT-5)."""

    def admit(self, work: AgentTask) -> None:
        """Raises ConsentNeeded if the skill is not trusted enough to use tools, and the person can change that."""

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]: ...

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        """Carries out a call. ConsentNeeded if the person must agree first; other errors are answers."""


class BuiltIn(Tools, Protocol):
    """The built-in tools for files, commands and web pages."""

    def reaching(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> GuardedTool | None:
        """The call as a tool that reaches the network, so that the person is asked about it as about such a tool; None
        for other calls. KernelError if the call is not allowed at all."""


class Specialist(Protocol):
    async def work(self, packet: Packet, prepared: Report | None, emit: Emit, wrong: str = "") -> Report:
        """Phase 2: a model works on a skill's prepared prompt, or on a message without a skill. `wrong` says why the
        earlier answer was not accepted."""


class Underway(Protocol):
    """Records the calls of a turn, so that a killed turn can be resumed without repeating a call."""

    def kept(
        self,
        run: str,
        session: Session,
        agreed: Sequence[str],
        expected: int | None = None,
        *,
        message: str = "",
        is_open: bool = False,
    ) -> AbstractContextManager[None]: ...

    def drop_orders(self, run: str) -> None: ...

    def start(self, packet: Packet, count: int) -> None: ...

    def note(self, run: str, progress: AgentState) -> None: ...

    def intend(self, run: str, before: str, after: str) -> None: ...

    def leave(self, run: str) -> None: ...

    def left(self) -> Sequence[Any]: ...


TextKind = Literal["query", "document", "word"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors. `id` names encoder and version; vectors of different encoders are never mixed."""

    @property
    def id(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """Returns a float32 array with one row of length 1 for each text. An implementation may treat questions,
        documents and single words differently. If it also has `message(text, words)`, that is called for a question's
        vector and its words' rows together."""
