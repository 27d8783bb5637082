"""The server's turns for the endpoints of plugins."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, RunStarted
from navigator_kernel.gateway.api.chat import ChatMessage, begin
from navigator_kernel.gateway.api.sessions import begin_answer, waiting_in
from navigator_kernel.ports import ServedRun
from navigator_kernel.values.http.endpoint import Caller, HttpProblem

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.values.request import Said

LOOKED_AT = 200  # newest runs searched for the last one of a session


class GatewayTurns(Struct, frozen=True):
    """Implements `ports.ServedTurns`."""

    gateway: Gateway

    async def say(self, caller: Caller, session: str, text: str) -> ServedRun:
        run = await begin(self.gateway, caller, session, ChatMessage(message=text))
        return ServedRun(id=run.id, events=run.feed.read())

    async def answer(
        self, caller: Caller, approval: str, answer: Literal["yes", "session", "no", "cancel"]
    ) -> ServedRun:
        if answer in {"yes", "session"} and not caller.may("approve"):
            raise HttpProblem(403, "role", "this token may not approve", hint="use a token with the role approve")
        run = await begin_answer(self.gateway, caller, approval, answer)
        return ServedRun(id=run.id, events=run.feed.read())

    async def waiting(self, caller: Caller, session: str) -> ApprovalRequested | None:
        waits = await asyncio.to_thread(waiting_in, self.gateway, caller, session)
        if waits is None:
            return None
        return ApprovalRequested(subject=waits.subject, detail=waits.question, id=waits.id, expires=waits.expires)

    async def last(self, caller: Caller, session: str) -> ServedRun | None:
        name = self.gateway.session_id(caller, session)
        run = next((run.id for run in self.gateway.runs.under_way() if run.session == name), "")
        run = run or await asyncio.to_thread(self._last_run, name)
        return ServedRun(id=run, events=self.gateway.runs.feeds.follow(run)) if run else None

    async def history(self, caller: Caller, session: str, most: int) -> Sequence[Said]:
        name = self.gateway.session_id(caller, session)
        return await asyncio.to_thread(self.gateway.sessions.history, name, most)

    def _last_run(self, name: str) -> str:
        """The newest run of the session, empty if there is none."""
        try:
            self.gateway.sessions.load(name)
        except NotFound:
            return ""
        for run in self.gateway.log.runs()[:LOOKED_AT]:
            with suppress(KernelError, IndexError):  # the log is damaged: `navigator doctor` reports it
                first = self.gateway.log.read(run)[0].body
                if isinstance(first, RunStarted) and first.session == name:
                    return run
        return ""
