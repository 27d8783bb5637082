"""Registers the command `navigator acp`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.hookspecs import hookimpl

if TYPE_CHECKING:
    import click


@hookimpl
def kernel_register_commands(root: Path) -> Iterable[click.Command]:
    from navigator_acp.command import command_for

    return (command_for(root),)
