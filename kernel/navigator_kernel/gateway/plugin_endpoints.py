"""Collects the endpoints that plugins add to the HTTP API."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import KernelError, NotFound
from navigator_kernel.events import ApprovalRequested, RunStarted
from navigator_kernel.gateway.api.chat import ChatMessage, begin
from navigator_kernel.gateway.api.sessions import begin_answer, waiting_in
from navigator_kernel.gateway.streams.sse import response_of
from navigator_kernel.guard import as_error
from navigator_kernel.ports import ServedRun
from navigator_kernel.values.http.endpoint import JSON, Call, Caller, Endpoint, Handler, HttpProblem
from navigator_kernel.values.http.sse import EventStream

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway
    from navigator_kernel.plugins import Plugins
    from navigator_kernel.ports import ProjectPorts, ServedTurns
    from navigator_kernel.values.request import Said

HOOK = "kernel_register_tools_and_endpoints"


def plugin_endpoints(
    plugins: Plugins, project: ProjectPorts, own: Sequence[Endpoint], seconds: float, turns: ServedTurns | None = None
) -> Sequence[Endpoint]:
    """The endpoints of all plugins, each with `seconds` for an answer; those without a service get `turns`. One that is
    invalid, or repeats one of `own` or of an earlier plugin, is left out and recorded as a failure."""
    known = list(own)
    for plugin, endpoint in plugins.all(HOOK, project, lambda item: item if isinstance(item, Endpoint) else None):
        if endpoint is None:  # a tool
            continue
        place = f"{endpoint.method} {endpoint.path}"
        if not f"{endpoint.path}/".startswith(("/api/", f"/{plugin}/")) or endpoint.role is None:
            problem = f"{place} needs a role, and a path below /api/ or /{plugin}"
            plugins.fail(plugin, HOOK, ValueError(problem))
            continue
        if any(one.name == endpoint.name or f"{one.method} {one.path}" == place for one in known):
            plugins.fail(plugin, HOOK, ValueError(f"{place} ({endpoint.name}) already exists"))
            continue
        in_server = endpoint.media != JSON or endpoint.service is None  # streams and turns belong to the server's loop
        if endpoint.service is None:
            endpoint = replace(endpoint, service=turns)
        if plugins.is_shipped(plugin):
            known.append(endpoint)
        elif in_server:
            known.append(replace(endpoint, handler=_isolated(plugins, plugin, endpoint.handler)))
        else:
            known.append(replace(endpoint, handler=_guarded(plugins, plugin, endpoint.handler, seconds)))
    return known[len(own) :]


def _guarded(plugins: Plugins, plugin: str, handler: Handler, seconds: float) -> Handler:
    """The handler, run in the plugin's event loop. An HttpProblem is an answer, not a failure."""

    @wraps(handler)
    async def handled(service: Any, call: Call) -> Any:
        async def answered() -> tuple[Any, HttpProblem | None]:
            try:
                return await handler(service, call), None
            except HttpProblem as problem:
                return None, problem

        answer, problem = await plugins.run(plugin, f"endpoint {handler.__name__}", answered, seconds)
        if problem is not None:
            raise problem
        return _streamed(answer) if callable(answer) else answer

    return handled


def _isolated(plugins: Plugins, plugin: str, handler: Handler) -> Handler:
    """The handler, run in the server's event loop."""

    @wraps(handler)
    async def handled(service: Any, call: Call) -> Any:
        try:
            answer = await handler(service, call)
        except (asyncio.CancelledError, KeyboardInterrupt, HttpProblem):
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            plugins.fail(plugin, f"endpoint {handler.__name__}", as_error(error))
            raise as_error(error) from None
        answer = response_of(answer) if isinstance(answer, EventStream) else answer
        return _streamed(answer) if callable(answer) else answer

    return handled


def _streamed(answer: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
    """The ASGI application, of which an exit ends only this answer."""

    async def body(*given: Any) -> None:
        try:
            await answer(*given)
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything
            raise as_error(error) from None

    return body


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
