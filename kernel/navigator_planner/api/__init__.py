"""The planner's endpoints of the HTTP API (TOL-13)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from navigator_planner.api import notes, projects, tasks

if TYPE_CHECKING:
    from navigator_kernel.values.http.endpoint import Endpoint
    from navigator_planner.toolkit import OpenToolkit


def endpoints(planner: OpenToolkit) -> Sequence[Endpoint]:
    """The endpoints of tasks, notes and projects, which work with `planner`."""
    held = (*tasks.ENDPOINTS, *notes.ENDPOINTS, *projects.ENDPOINTS)
    return tuple(replace(endpoint, service=planner) for endpoint in held)
