"""The planner as a plugin: tools for models, and endpoints of the HTTP API (TOL-7, TOL-13)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial

from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.model_ports import Tool
from navigator_kernel.ports import ProjectPorts
from navigator_kernel.values.http.endpoint import Endpoint


@hookimpl
def kernel_register_tools_and_endpoints(project: ProjectPorts) -> Iterator[Tool | Endpoint]:
    """Nothing without pydantic, no tools without SQLAlchemy: `doctor` says why, and each endpoint does."""
    try:
        from navigator_planner.api import endpoints
        from navigator_planner.toolkit import open_toolkit

        toolkit = cache(partial(open_toolkit, project))
        yield from endpoints(toolkit)
        yield from toolkit().tools.values()
    except ImportError:
        return
