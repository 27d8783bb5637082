"""Builds the index of all skills before the first message needs it."""

from __future__ import annotations

import os
from contextlib import suppress

from navigator_kernel.cli.output import is_asked
from navigator_kernel.cli.project import App
from navigator_kernel.cli.route.routed import routed

LARGE = 200  # new skills from which the first question would wait for a second or more
_ANY = "which skill is meant"


def begin_index(app: App, installed: int) -> None:
    """Starts to build the index after a large install at a terminal, in a separate process that ends when it is done. A
    question that comes meanwhile waits for it; one that finds no index builds it itself."""
    if installed < LARGE or not is_asked() or os.environ.get("CI") or app.settings.index == "off":
        return
    _begin(app)


def _begin(app: App) -> None:
    from navigator_kernel.daemon.client import begin

    with suppress(OSError):
        begin(os.path.realpath(app.root), "route", "--index")


def make_index(app: App) -> int:
    """Builds the index; returns how many skills it contains."""
    routed(app, _ANY, 1)
    return sum(one.type == "skill" for one in app.bare.catalogue.list_resources())
