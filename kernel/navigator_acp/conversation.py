"""One session of an editor: its prompts, the questions that they stop at, and their cancellation."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Literal

from acp import RequestError
from acp.helpers import SessionUpdate
from acp.helpers import update_tool_call as update_call
from acp.schema import AllowedOutcome, PermissionOption, StopReason

from navigator_acp.answer import failure_text, rest_of
from navigator_acp.calls import status_of
from navigator_acp.updates import Updates
from navigator_acp.words import say
from navigator_kernel.errors import KernelError

if TYPE_CHECKING:
    from acp.interfaces import Client

    from navigator_kernel import Kernel, Run
    from navigator_kernel.values.approval import Approval
    from navigator_kernel.values.reply import Reply

Answer = Literal["once", "session", "no"]
_ANSWERS: dict[str, Answer] = {"allow": "once", "allow_session": "session"}


class Conversation:
    """Belongs to the session `name` of the kernel. It takes one prompt at a time."""

    def __init__(self, client: Client, kernel: Kernel, name: str) -> None:
        self.kernel, self.name = kernel, name
        self._client = client
        self._task: asyncio.Task[None] | None = None
        self._cancelled = False

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def cancel(self) -> None:
        """Ends the prompt that is under way, with its processes."""
        if self._task is not None:
            self._cancelled = True
            self._task.cancel()

    async def prompt(self, message: str) -> StopReason:
        """Takes turns until none of them waits for the person's yes or no."""
        run = self.kernel.run(message, session=self.name)
        updates = Updates(self.kernel.root, run.id)

        async def take_turns() -> None:
            reply = await self._turn(run, updates)
            while (approval := reply.approval) is not None:
                reply = await self._resolved(reply, approval, updates)

        self._cancelled, self._task = False, asyncio.ensure_future(take_turns())
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._cancelled:
                raise  # the editor has disconnected
            for update in updates.end_all():
                await self._show(update)
            return "cancelled"
        except ConnectionError:
            return "cancelled"  # no editor is left to inform
        except KernelError as error:
            await self._show(updates.message(failure_text(error)))
        finally:
            self._task = None
        return "end_turn"

    async def _turn(self, run: Run, updates: Updates) -> Reply:
        try:
            async with aclosing(run.__aiter__()) as events:  # type: ignore[type-var]  # an async generator
                async for event in events:
                    for update in updates.of(event):
                        await self._show(update)
        finally:
            await run.aclose()
        reply = await run
        if rest := rest_of(reply, streamed=updates.streamed):
            await self._show(updates.message(rest))
        return reply

    async def _resolved(self, reply: Reply, approval: Approval, updates: Updates) -> Reply:
        """Asks the person, and goes on with the answer."""
        if reply.workflow is not None and reply.workflow.state == "proposed":
            await self._show(updates.plan(reply.workflow.plan))
        of_model = bool(updates.waiting)
        if not of_model:
            await self._show(updates.ask(approval.question))
        call, answer = updates.waiting, await self._ask(approval, updates)
        if answer == "no":
            await self._show(updates.end(call, "failed"))
            return await self._turn(self.kernel.deny(approval.id), updates)
        if not of_model:
            await self._show(update_call(call, status="in_progress"))
        reply = await self._turn(self.kernel.approve(approval.id, lasting=answer), updates)
        if not of_model:
            pending = reply.report.state == "pending"  # at another question, which has its own call
            await self._show(updates.end(call, "completed" if pending else status_of(reply.report.state)))
        return reply

    async def _ask(self, approval: Approval, updates: Updates) -> Answer:
        """The person's choice, or "no" if the client cannot ask. CancelledError if the prompt was cancelled."""
        # A yes for the session is offered only if it is bound to bytes; none is permanent
        once = PermissionOption(option_id="allow", name=say("allow", updates.language), kind="allow_once")
        session = PermissionOption(
            option_id="allow_session", name=say("session", updates.language), kind="allow_always"
        )
        reject = PermissionOption(option_id="reject", name=say("reject", updates.language), kind="reject_once")
        call, options = updates.question(approval.question), [once, *([session] if approval.lasts else []), reject]
        try:
            answer = await self._client.request_permission(session_id=self.name, tool_call=call, options=options)
        except RequestError:
            return "no"
        if isinstance(answer.outcome, AllowedOutcome):
            return _ANSWERS.get(answer.outcome.option_id, "no")
        self._cancelled = True
        raise asyncio.CancelledError

    async def _show(self, update: SessionUpdate) -> None:
        await self._client.session_update(session_id=self.name, update=update)
