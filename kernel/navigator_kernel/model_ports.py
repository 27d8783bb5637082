"""The ports to models: what may be asked of one, and which tools it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from navigator_kernel.events import Emit
    from navigator_kernel.text import Language
    from navigator_kernel.values.chat import Asked, Completion, ToolCall, ToolSpec
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.report import Report
    from navigator_kernel.values.request import Said, Session
    from navigator_kernel.values.route import Judged, Retrieval
    from navigator_kernel.values.tool import Result
    from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer


class ChatModel(Protocol):
    @property
    def name(self) -> str:
        """`provider:model`."""

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        """One answer; with `told`, which is given each piece of its text as it comes, it is streamed. ModelFailed or
        TimedOut within the request's limit, NotFound for no key, NotLoadable for no package."""

    async def close(self) -> None: ...


class ModelRegistry(Protocol):
    """The models that are set."""

    def knows(self, name: str) -> bool:
        """Whether `name` is an alias or `provider:model`."""

    def chain(self, name: str = "") -> ChatModel:
        """The model of that name with what stands in for it; the default for none, and for one that is not known
        (X-32)."""

    async def close(self) -> None: ...


class Judge(Protocol):
    def is_wanted(self, found: Retrieval) -> bool:
        """Whether what retrieval found leaves enough doubt to ask a model (X-1)."""

    async def judge(self, text: str, found: Retrieval, said: Sequence[Said], language: Language) -> Judged:
        """Tier 3: which of the skills found are meant, if any, by a model that also sees what was `said` before."""


@runtime_checkable
class Tool(Protocol):
    """One thing that a model may have done."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def effects(self) -> tuple[str, ...]:
        """What is different once it has succeeded (see `values.tool.ToolDef`)."""

    @property
    def confirm(self) -> str:
        """What is asked before each call; empty for nothing."""

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        """Whatever happens is a result."""


class Tools(Protocol):
    """What a model may have done, and nothing else is done (JIT-5)."""

    def admit(self, work: AgentTask) -> None:
        """ConsentNeeded where the skill's standing gives it no tools yet, and the person can give it some."""

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]: ...

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        """ConsentNeeded where the person has to agree first; whatever else happens is an answer."""


class BuiltIn(Tools, Protocol):
    """Those for files, commands and pages of the web."""

    def reaching(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> Tool | None:
        """What the call would do where it reaches the network, which is asked about as such tools are; None for all
        other calls. KernelErrors where it may not be done at all."""


class Specialist(Protocol):
    async def work(self, packet: Packet, prepared: Report | None, emit: Emit, wrong: str = "") -> Report:
        """Phase 2: a model works on the prompt of a skill that is ready, or on a message without one; `wrong` says what
        was not accepted when it did so before."""


class Underway(Protocol):
    """Keeps orders that models work on, so that those of a killed process go on without a call being made twice."""

    def kept(
        self, run: str, session: Session, agreed: Sequence[str], expected: int | None = None
    ) -> AbstractContextManager[None]: ...

    def start(self, packet: Packet, count: int) -> None: ...

    def note(self, run: str, progress: AgentState) -> None: ...

    def intend(self, run: str, before: str, after: str) -> None: ...

    def leave(self, run: str) -> None: ...

    def left(self) -> Sequence[Any]: ...


TextKind = Literal["query", "document", "word"]


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors. `id` names the encoder with its version: vectors of another one are never mixed in."""

    @property
    def id(self) -> str: ...

    @property
    def dimensions(self) -> int: ...

    def encode(self, texts: Sequence[str], kind: TextKind) -> Any:
        """A numpy array of float32, a row of length 1 for each text. Whoever implements it may tell questions,
        documents and single words apart by `kind`. One that also has `message(text, words)` is asked for the vector of
        a question and the rows of its words in one go."""
