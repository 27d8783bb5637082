"""The ports to models: what may be asked of one, and which tools it may use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from navigator_kernel.adapters.stores.underway import Underway as Underway
    from navigator_kernel.agent_loop.specialist import Specialist as Specialist
    from navigator_kernel.bootstrap.models import ModelRegistry as ModelRegistry
    from navigator_kernel.routing.phase_one import ModelJudge
    from navigator_kernel.tools.built_in import BuiltInTools
    from navigator_kernel.values.chat import Asked, Completion, Result, ToolCall, ToolSpec
    from navigator_kernel.values.work import AgentTask, ToolAnswer


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


if TYPE_CHECKING:  # parts of which there is one kind: each name is that of a class
    BuiltIn: TypeAlias = BuiltInTools
    Judge: TypeAlias = ModelJudge
