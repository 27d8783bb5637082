"""Collects the endpoints that plugins add to the HTTP API."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from navigator_kernel.bootstrap.extensions import open_plugins
from navigator_kernel.bootstrap.kernel import project_ports
from navigator_kernel.values.http.endpoint import Endpoint

if TYPE_CHECKING:
    from navigator_kernel.gateway.gateway import Gateway

HOOK = "kernel_register_tools_and_endpoints"


def plugin_endpoints(gateway: Gateway, own: Sequence[Endpoint]) -> Sequence[Endpoint]:
    """The endpoints of all plugins. One that is invalid, or repeats one of `own` or of an earlier plugin, is left out
    and logged."""
    plugins = open_plugins(gateway.root).plugins
    found = plugins.all(HOOK, project_ports(gateway.root, gateway.workers.pool.shared.meaning))
    held = list(own)
    for plugin, brought in found:
        for endpoint in (one for one in brought if isinstance(one, Endpoint)):
            if wrong := next(_faults(endpoint, held), ""):
                plugins.fail(plugin, HOOK, ValueError(wrong))
            else:
                held.append(endpoint)
    for failure in plugins.failures:
        logging.getLogger("navigator").warning("%s in %s: %s", failure.plugin, failure.hook, failure.error)
    return held[len(own) :]


def _faults(endpoint: Endpoint, held: Sequence[Endpoint]) -> Iterator[str]:
    place = f"{endpoint.method} {endpoint.path}"
    if not endpoint.path.startswith("/api/") or endpoint.role is None or endpoint.service is None:
        yield f"{place} needs a path below /api/, a role and a service"
    if any(one.name == endpoint.name or (one.method, one.path) == (endpoint.method, endpoint.path) for one in held):
        yield f"{place} ({endpoint.name}) already exists"
