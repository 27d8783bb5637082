"""An editor built on the official Python library: it keeps the updates that it gets, and answers as a test says."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

from acp import PROTOCOL_VERSION, connect_to_agent, run_agent, text_block
from acp.schema import AllowedOutcome, DeniedOutcome, RequestPermissionResponse

from navigator_acp.agent import KernelAgent
from navigator_acp.stdio import Lines

T = TypeVar("T")
CANCEL = "cancel"


class Editor:
    """`answers` are the ids of the options that it chooses, in order; `asked` are the questions."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.updates: list[Any] = []
        self.asked: list[tuple[Any, Sequence[Any]]] = []
        self.agent: Any = None
        self.heard = asyncio.Event()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)
        self.heard.set()

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append((tool_call, options))
        self.heard.set()
        answer = self.answers.pop(0)
        if answer == CANCEL:
            await self.agent.cancel(session_id=session_id)
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=answer))

    async def until(self, holds: Callable[[], bool], seconds: float = 30) -> None:
        """Waits for an update after which `holds` is true."""
        async with asyncio.timeout(seconds):
            while not holds():
                self.heard.clear()
                await self.heard.wait()

    async def opens(self, root: Path) -> str:
        await self.agent.initialize(protocol_version=PROTOCOL_VERSION)
        return str((await self.agent.new_session(cwd=str(root), mcp_servers=[])).session_id)

    async def says(self, session: str, *blocks: Any) -> str:
        """Sends a prompt, and returns the reason why the turn ended."""
        given = [text_block(one) if isinstance(one, str) else one for one in blocks]
        return str((await self.agent.prompt(prompt=given, session_id=session)).stop_reason)

    def of(self, kind: str) -> list[Any]:
        return [update for update in self.updates if update.session_update == kind]

    @property
    def text(self) -> str:
        return "".join(update.content.text for update in self.of("agent_message_chunk"))

    @property
    def thoughts(self) -> str:
        return "".join(update.content.text for update in self.of("agent_thought_chunk"))

    @property
    def calls(self) -> list[tuple[str, str]]:
        """`(id, status)` of every tool call and its updates."""
        shown = [update for update in self.updates if update.session_update in {"tool_call", "tool_call_update"}]
        return [(update.tool_call_id, update.status) for update in shown]

    @property
    def plans(self) -> list[list[str]]:
        """The states of the steps, one list for each update."""
        return [[entry.status for entry in update.entries] for update in self.of("plan")]


@asynccontextmanager
async def connected(editor: Editor) -> AsyncIterator[Editor]:
    """Connects the editor to its own agent over a socket."""
    near, far = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=near)
    serving = asyncio.ensure_future(
        run_agent(cast("Any", KernelAgent()), Lines(*await asyncio.open_connection(sock=far)))
    )
    editor.agent = connect_to_agent(cast("Any", editor), writer, reader)
    try:
        yield editor
    finally:
        await editor.agent.close()
        writer.close()
        await writer.wait_closed()
        await serving


def talk(editor: Editor, script: Callable[[Editor], Awaitable[T]]) -> T:
    """Runs a script with a connected editor, and returns its result."""

    async def run() -> T:
        async with asyncio.timeout(60), connected(editor):
            return await script(editor)

    return asyncio.run(run())


def said(editor: Editor, root: Path, *blocks: Any) -> str:
    """Sends one prompt in a new session, and returns the reason why the turn ended."""

    async def once(held: Editor) -> str:
        return await held.says(await held.opens(root), *blocks)

    return talk(editor, once)
