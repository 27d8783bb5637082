"""The state of the server and of its project: health, metrics, doctor, MCP servers, usage and routing."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct
from starlette.responses import PlainTextResponse

from navigator_kernel import __version__
from navigator_kernel.adapters.stores.run_log import usage_of
from navigator_kernel.bootstrap.health import findings
from navigator_kernel.bootstrap.routed import routed
from navigator_kernel.sandbox.servers import request
from navigator_kernel.values.chat import usage_facts
from navigator_kernel.values.http.endpoint import Answer, Call, Endpoint, Role
from navigator_kernel.values.owner import viewing

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

LOOKED_AT = 5_000  # newest runs over which usage is summed
METRICS = "text/plain; version=0.0.4; charset=utf-8"


class Health(Struct, frozen=True, kw_only=True):
    status: str
    version: str


class OwnToken(Struct, frozen=True, kw_only=True):
    id: str
    role: Role


class Finding(Struct, frozen=True, kw_only=True):
    """`state` is `ok`, `missing` or `damaged`."""

    what: str
    state: str
    detail: str
    remedy: str


class Findings(Struct, frozen=True, kw_only=True):
    findings: list[Finding]


class Server(Struct, frozen=True, kw_only=True):
    """An MCP server of the settings; `approved` is true if the person agreed to start it."""

    name: str
    origin: str
    approved: bool


class Servers(Struct, frozen=True, kw_only=True):
    servers: list[Server]


class ModelUsage(Struct, frozen=True, kw_only=True):
    """`cost` is in US dollars, null if a price is unknown. `unknown` counts interrupted requests whose usage the
    provider did not report."""

    model: str
    requests: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cost: float | None
    unknown: int


class UsageSum(Struct, frozen=True, kw_only=True):
    """The usage of the newest `runs` runs."""

    runs: int
    models: list[ModelUsage]


class Routed(Struct, frozen=True, forbid_unknown_fields=True):
    message: Annotated[str, Meta(min_length=1, max_length=20_000)]
    k: Annotated[int, Meta(ge=1, le=20)] = 5


async def healthz(_gateway: Gateway, _call: Call) -> Health:
    """Answers as long as the process runs."""
    return Health(status="ok", version=__version__)


async def readyz(gateway: Gateway, _call: Call) -> Answer:
    """Returns 503 during shutdown and until the skills are read."""
    ready = gateway.is_warm and not gateway.runs.is_closing
    held = Health(status="ready" if ready else "not ready", version=__version__)
    return Answer(value=held, status=200 if ready else 503)


async def metrics(gateway: Gateway, _call: Call) -> PlainTextResponse:
    """Returns the metrics in the text format of Prometheus."""
    return PlainTextResponse(
        gateway.metrics.text(gateway.runs.ended, len(gateway.runs.under_way())), media_type=METRICS
    )


async def own_token(_gateway: Gateway, call: Call) -> OwnToken:
    """Returns the id and the role of the request's token."""
    return OwnToken(id=call.caller.id, role=call.caller.role)


def doctor(gateway: Gateway, _call: Call) -> Findings:
    """Returns the findings of `navigator doctor`."""
    return Findings(findings=[Finding(**finding.to_dict()) for finding in findings(gateway.project)])


async def list_servers(gateway: Gateway, _call: Call) -> Servers:
    trusted = gateway.project.consents.trusted
    held = [
        Server(
            name=name,
            origin=server.origin,
            approved=trusted(request(name, server, "", gateway.root).consent),
        )
        for name, server in sorted(gateway.settings.servers.items())
    ]
    return Servers(servers=held)


def usage(gateway: Gateway, call: Call) -> UsageSum:
    """Sums up the usage of models over the runs that this token may see."""
    mine = partial(gateway.session_name, call.caller)
    runs, models = usage_of(gateway.log, lambda session: mine(session) is not None, LOOKED_AT)
    return UsageSum(runs=runs, models=[ModelUsage(model=name, **usage_facts(spent)) for name, spent in models.items()])


def route(gateway: Gateway, call: Call) -> dict[str, Any]:
    """Shows which skill a message would be routed to, without a model and without running anything."""
    with viewing("" if call.caller.may("admin") else call.caller.id):
        found = routed(gateway.project, call.body.message)
    retrieval = found.intent.retrieval
    names = retrieval.candidates[: call.body.k] if retrieval else ()
    candidates = [{"name": one.name, "confidence": round(one.confidence, 4)} for one in names]
    return {**found.decision.to_dict(), "candidates": candidates}


_endpoint = partial(Endpoint, role="read", tag="status")

ENDPOINTS = (
    _endpoint("GET", "/healthz", "Report that the process is alive", healthz, role=None, answer=Health),
    _endpoint(
        "GET", "/readyz", "Report whether messages are accepted", readyz, role=None, answer=Health, errors=(503,)
    ),
    _endpoint("GET", "/metrics", "Metrics for Prometheus", metrics, media="text/plain"),
    _endpoint("GET", "/api/token", "Show the role of the token", own_token, answer=OwnToken),
    _endpoint("GET", "/api/doctor", "Find missing and damaged parts", doctor, answer=Findings),
    _endpoint("GET", "/api/servers", "List MCP servers", list_servers, answer=Servers),
    _endpoint("GET", "/api/usage", "Sum up the use of models", usage, role="chat", answer=UsageSum),
    _endpoint("POST", "/api/route", "Show which skill a message would be routed to", route, body=Routed),
)
