"""Shared stores as a plugin: those of the database at NAVIGATOR_DATABASE_URL."""

from __future__ import annotations

import os

from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.ports import ProjectPorts
from navigator_postgres.stores import LEASE, PostgresStores

URL, PROJECT_ID, LEASE_SECONDS = "NAVIGATOR_DATABASE_URL", "NAVIGATOR_PROJECT_ID", "NAVIGATOR_LEASE"


@hookimpl
def kernel_register_stores(project: ProjectPorts) -> PostgresStores | None:  # noqa: ARG001 - the hook's argument
    """None for a URL of another database. Nothing is opened yet."""
    url = os.environ.get(URL, "")
    if url.partition("://")[0] not in {"postgres", "postgresql"}:
        return None
    return PostgresStores(url, os.environ.get(PROJECT_ID, ""), os.environ.get(LEASE_SECONDS) or LEASE)
