"""Registers the endpoints `/ag-ui`, which pages and apps that speak AG-UI call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from navigator_kernel.hookspecs import hookimpl

if TYPE_CHECKING:
    from navigator_kernel.ports import ProjectPorts
    from navigator_kernel.values.http.endpoint import Endpoint


@hookimpl
def kernel_register_tools_and_endpoints(project: ProjectPorts) -> Iterable[Endpoint]:  # noqa: ARG001 - the hook's
    from navigator_ag_ui.endpoints import ENDPOINTS

    return ENDPOINTS
