"""Registers the dispatcher, if NAVIGATOR_NATS_URL names a broker, and the commands `navigator worker` and `cluster`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from navigator_kernel.errors import NotLoadable
from navigator_kernel.hookspecs import hookimpl

if TYPE_CHECKING:
    import click

    from navigator_kernel.ports import Dispatcher, DispatchPorts


@hookimpl
def kernel_register_dispatchers(ports: DispatchPorts) -> Dispatcher | None:
    if not os.environ.get("NAVIGATOR_NATS_URL"):
        return None
    try:
        from navigator_nats.broker import settings_of
        from navigator_nats.dispatcher import NatsDispatcher
    except ImportError as error:
        hint = "pip install 'navigator-kernel[nats]', or unset NAVIGATOR_NATS_URL"
        raise NotLoadable("NATS needs the extra 'nats', which is not installed", hint=hint) from error

    return cast("Dispatcher", NatsDispatcher(ports, settings_of(os.environ)))  # its `submit` may return None


@hookimpl
def kernel_register_commands(root: Path) -> Iterable[click.Command]:
    from navigator_nats.commands import cluster, worker_for

    return (worker_for(root), cluster())
