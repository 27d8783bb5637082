"""The ASGI application and its server."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware

from navigator_kernel.adapters.http_connection import Connection
from navigator_kernel.bootstrap.upkeep import collect_daily
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.gateway.access import OPEN, Access, Buckets, OpenRequests
from navigator_kernel.gateway.api import chat, choices, files, published, runs, sessions, skills, status, workflows
from navigator_kernel.gateway.endpoints import not_found, routes_of
from navigator_kernel.gateway.openapi import described
from navigator_kernel.gateway.page_files import page_files, page_routes
from navigator_kernel.gateway.plugin_endpoints import GatewayTurns, plugin_endpoints
from navigator_kernel.gateway.problems import ProblemResponse
from navigator_kernel.gateway.projections import openai_chat, openai_models, openai_responses
from navigator_kernel.gateway.projections.openai_errors import OpenAIErrors
from navigator_kernel.skills.install.export import INDEX
from navigator_kernel.values.http.endpoint import Endpoint

if TYPE_CHECKING:
    import socket

    from starlette.requests import Request

    from navigator_kernel.gateway.gateway import Gateway

CONNECTIONS = 5_000
PATIENCE = 10.0  # seconds for active turns when the server ends
BACKLOG = 2_048
# New objects before a garbage collection: 1,000 streams that begin at once create 150,000, and a pass over
# that many delays all of them by 50 ms.
GARBAGE = 200_000
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})

ENDPOINTS: Sequence[Endpoint] = (
    *chat.ENDPOINTS,
    *runs.ENDPOINTS,
    *files.ENDPOINTS,
    *choices.ENDPOINTS,
    *runs.WORK_ENDPOINTS,
    *sessions.ENDPOINTS,
    *skills.ENDPOINTS,
    *published.ENDPOINTS,
    *workflows.ENDPOINTS,
    *workflows.FILE_ENDPOINTS,
    *status.ENDPOINTS,
    *openai_models.ENDPOINTS,
    *openai_chat.ENDPOINTS,
    *openai_responses.ENDPOINTS,
)


class _Connection(Connection):
    limit = CONNECTIONS


class _Server(uvicorn.Server):
    """Ends its streams on shutdown; uvicorn itself would wait for them for ever."""

    def __init__(self, config: uvicorn.Config, gateway: Gateway, patience: float) -> None:
        super().__init__(config)
        self._gateway, self._patience = gateway, patience

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        await self._gateway.close(self._patience)
        await super().shutdown(sockets)


def endpoints_of(gateway: Gateway) -> Sequence[Endpoint]:
    """The kernel's endpoints, those of plugins, and the one that describes all of them."""
    project = gateway.project
    more = plugin_endpoints(
        project.plugins.plugins, project.plugin_ports, ENDPOINTS, gateway.settings.timeout, GatewayTurns(gateway)
    )
    return described((*ENDPOINTS, *more))


def application(gateway: Gateway, places: Sequence[str]) -> Starlette:
    """Creates the application. `places` are the hosts, with their ports, that requests may name."""

    def warm() -> None:
        """Prepares for the first message, and sets the garbage collector for a long-lived process: objects from the
        start are never searched again, newer ones in short passes."""
        gateway.warm()
        collect_daily(gateway.project)
        gc.collect()
        gc.freeze()
        gc.set_threshold(GARBAGE)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        work = (gateway.pings(), requests.watch(), asyncio.to_thread(warm))
        background = [asyncio.create_task(one) for one in work]
        yield
        for task in background:
            task.cancel()
        await asyncio.wait(background)

    async def http_error(_: Request, error: Exception) -> ProblemResponse:
        if isinstance(error, HTTPException) and error.status_code == 405:
            return ProblemResponse(405, "method", "this address does not support the method", headers=error.headers)
        return not_found()

    requests = OpenRequests(gateway.tokens)
    access = Middleware(
        Access,
        places=places,
        caller=gateway.tokens.caller,
        requests=requests,
        buckets=Buckets(take=getattr(gateway.project.shared, "take", None)),
        open_paths={*OPEN, *page_files()},
        open_folder=f"/{INDEX}/" if gateway.publishes else None,
    )
    return Starlette(
        routes=[*page_routes(), *routes_of(endpoints_of(gateway), gateway)],
        middleware=[Middleware(OpenAIErrors), access],
        lifespan=lifespan,
        exception_handlers={HTTPException: http_error},
    )


def serve(
    gateway: Gateway,
    host: str,
    port: int,
    ready: Callable[[str], None],
    *,
    certificate: tuple[str, str] | None = None,
    is_open: bool = False,
    patience: float = PATIENCE,
    names: Sequence[str] = (),
) -> None:
    """Serves until it is stopped; `ready` is called with the address. Clients may also name the server by one of
    `names`, as those of a proxy do. `certificate` is the files of a certificate and
    its key; without one, UsageProblem for an address that is not a loopback address, unless `is_open` is true.
    KernelError if it cannot listen there, UsageProblem for files that are not a certificate and its key."""
    if host not in LOOPBACK and certificate is None and not is_open:
        hint = "give --certificate and --key, or say --insecure"
        raise UsageProblem(f"{host} can be reached from other machines, and there is no TLS", hint=hint)
    options: dict[str, Any] = {"http": _Connection, "ws": "none", "log_level": "error", "access_log": False}
    options["loop"] = "navigator_kernel.gateway.workers:server_loop"
    if certificate is not None:
        options |= {"ssl_certfile": certificate[0], "ssl_keyfile": certificate[1]}
    config = uvicorn.Config(
        "", host=host, port=port, server_header=False, backlog=BACKLOG, timeout_graceful_shutdown=5, **options
    )
    try:
        listener = config.bind_socket()
    except (OSError, SystemExit) as error:  # uvicorn calls sys.exit if it cannot listen
        raise KernelError(f"cannot listen at {host}:{port}", hint="another --port") from error
    with listener:
        place = f"{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        # The hosts that clients may name: also without the default ports, and `localhost` for 127.0.0.1
        served = place.rpartition(":")[2]
        places = [place, *map(str.lower, names), *(f"{name.lower()}:{served}" for name in names)]
        if place.startswith("127.0.0.1:"):
            places.append(place.replace("127.0.0.1", "localhost", 1))
        places += [one.rpartition(":")[0] for one in places if one.endswith((":80", ":443"))]
        config.app = application(gateway, places)
        try:
            config.load()
        except OSError as error:  # also of ssl
            raise UsageProblem(
                f"the certificate cannot be used: {error}", hint="give --certificate and --key"
            ) from error
        listener.listen(BACKLOG)  # clients that connect before the server is up wait
        ready(f"{'https' if certificate else 'http'}://{place}")
        _Server(config, gateway, patience).run(sockets=[listener])
