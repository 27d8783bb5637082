"""The agent that an editor talks to: one kernel per project, one conversation per session."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp import PROTOCOL_VERSION, RequestError
from acp.helpers import update_agent_message_text, update_available_commands, update_user_message_text
from acp.schema import (
    AgentCapabilities,
    AvailableCommand,
    AvailableCommandInput,
    Implementation,
    InitializeResponse,
    LoadSessionResponse,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    UnstructuredCommandInput,
)

from navigator_acp.conversation import Conversation
from navigator_acp.prompt import message_of
from navigator_kernel import Kernel, __version__
from navigator_kernel.errors import KernelError, NotFound, UsageProblem
from navigator_kernel.text import clean, shorten

if TYPE_CHECKING:
    from acp.interfaces import Client

    from navigator_acp.prompt import Block

COMMANDS = 100  # skills offered as commands; any other can be typed
DESCRIBED = 200  # characters of a description
REPLAYED = 200  # history entries that a loaded session shows
_CODES = {"not_found": -32002, "usage": -32602}


class KernelAgent:
    """Implements the stable part of ACP. The editor's MCP servers are not started: a person approves those with
    `navigator mcp approve`."""

    def __init__(self) -> None:
        self._client: Client | None = None
        self._kernels: dict[Path, Kernel] = {}
        self._sessions: dict[str, Conversation] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def on_connect(self, client: Client) -> None:
        self._client = client

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Returns the protocol version that both sides support and the capabilities of this agent."""
        return InitializeResponse(
            protocol_version=min(protocol_version, PROTOCOL_VERSION) or PROTOCOL_VERSION,
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=False, audio=False, embedded_context=False),
            ),
            agent_info=Implementation(name="navigator", title="Navigator Kernel", version=__version__),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Creates a session of the project at `cwd`."""
        with _errors():
            conversation = self._open(cwd, f"acp-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}-{os.urandom(4).hex()}")
        self._later(self._offer(conversation))
        return NewSessionResponse(session_id=conversation.name)

    async def load_session(self, cwd: str, session_id: str, **_: Any) -> LoadSessionResponse:
        """Opens a stored session and shows its history again."""
        with _errors():
            if (known := self._sessions.get(session_id)) is not None and known.is_busy:
                raise UsageProblem("a prompt of this session is under way", hint="cancel it first")
            history = self._kernel(cwd).history(session_id, last=REPLAYED)
            conversation = self._open(cwd, session_id)
        for entry in history:
            update = update_user_message_text if entry.role == "user" else update_agent_message_text
            await self._connected.session_update(session_id=session_id, update=update(clean(entry.text)))
        self._later(self._offer(conversation))
        return LoadSessionResponse()

    async def prompt(self, prompt: Sequence[Block], session_id: str, **_: Any) -> PromptResponse:
        """Runs a turn and returns why it ended; everything else is sent as updates."""
        with _errors():
            if session_id not in self._sessions:
                hint = "session/new makes one, session/load opens one"
                raise NotFound(f"no session is called {session_id!r} here", hint=hint)
            conversation = self._sessions[session_id]
            if conversation.is_busy:
                raise UsageProblem("another prompt of this session is under way", hint="wait for it, or cancel it")
            stopped = await conversation.prompt(message_of(prompt, conversation.kernel.root))
        return PromptResponse(stop_reason=stopped)

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Cancels the current work of a session; does nothing if the session is idle or unknown."""
        if (conversation := self._sessions.get(session_id)) is not None:
            conversation.cancel()

    @property
    def _connected(self) -> Client:
        if self._client is None:
            raise RuntimeError("no editor is connected yet")
        return self._client

    def _open(self, cwd: str, name: str) -> Conversation:
        conversation = self._sessions[name] = Conversation(self._connected, self._kernel(cwd), name)
        return conversation

    def _kernel(self, cwd: str) -> Kernel:
        if not Path(cwd).is_absolute():
            raise UsageProblem(f"{cwd!r} is not an absolute path", hint="cwd is the project's folder")
        root = Path(os.path.realpath(cwd))
        if root not in self._kernels:
            self._kernels[root] = Kernel(root)
        return self._kernels[root]

    def _later(self, work: Any) -> None:
        """Runs `work` after the answer to the request, which the editor needs first."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _offer(self, conversation: Conversation) -> None:
        update = update_available_commands(commands_of(conversation.kernel))
        with suppress(ConnectionError):  # the editor has disconnected
            await self._connected.session_update(session_id=conversation.name, update=update)


def offered_in(root: Path) -> list[str]:
    """The names of the commands for the project at `root`."""
    return [one.name for one in commands_of(Kernel(root))]


def commands_of(kernel: Kernel) -> list[AvailableCommand]:
    """The enabled skills as commands, at most `COMMANDS` of them."""
    skills = [skill for skill in kernel.skills() if skill.enabled][:COMMANDS]
    wants = AvailableCommandInput(root=UnstructuredCommandInput(hint="what to do"))
    return [
        AvailableCommand(
            name=clean(skill.name, lines=False),
            description=shorten(clean(skill.description, lines=False), DESCRIBED),
            input=wants,
        )
        for skill in skills
    ]


@contextmanager
def _errors() -> Iterator[None]:
    """Turns an error of the kernel into a protocol error."""
    try:
        yield
    except KernelError as error:
        data = {"code": error.code, "hint": clean(error.hint)}
        raise RequestError(_CODES.get(error.code, -32603), clean(error.message), data) from error
