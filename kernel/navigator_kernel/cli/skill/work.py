"""Shared parts of the skill commands: options and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.skills.commands.lifecycle import Lifecycle

F = TypeVar("F", bound=Callable[..., Any])

_TARGETS = click.Choice(["claude", "agents"])
dry_option = click.option("--dry-run", is_flag=True, help="Only show what would happen.")


def accept_option(command: F) -> F:
    text = "Install despite this rule of the scanner: RULE or NAME:RULE; may be repeated."
    return click.option("--accept", multiple=True, metavar="RULE", help=text)(command)


def verbose_option(command: F) -> F:
    text = "A line for every skill and finding, notes and what is left out, too."
    return click.option("-v", "--verbose", is_flag=True, help=text)(command)


def place_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on one place."""
    text = "The folder: .claude/skills (default) or .agents/skills."
    return _user(click.option("--target", type=_TARGETS, help=text)(command))


def filter_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on all places."""
    return _user(click.option("--target", type=_TARGETS, help="Only .claude/skills, or only .agents/skills.")(command))


def reach_options(command: F) -> F:
    """Adds `--offline` and `--auth`."""
    offline = click.option("--offline", is_flag=True, help="Do not use the network, only what was fetched before.")
    auth = click.option("--auth", is_flag=True, help="Let git use your own keys and credentials for this host.")
    return offline(auth(command))


def _user(command: F) -> F:
    return click.option("--user", is_flag=True, help="Your own skills instead of the project's.")(command)


def busy(app: App, operation: str, params: Mapping[str, Any], *, quiet: bool) -> Mapping[str, Any]:
    """Runs the operation and returns its answer; on a terminal it shows a spinner and how many skills are done."""
    lifecycle = app.bare.lifecycle
    if quiet or not sys.stderr.isatty():
        return lifecycle.perform(operation, params)
    return _with_spinner(app, lifecycle, operation, params)


def _with_spinner(app: App, lifecycle: Lifecycle, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    from rich.console import Console
    from rich.text import Text

    from navigator_kernel.language.wording import say

    what = say(f"busy.{operation}", app.spoken, source=params.get("source") or "")

    def line(text: str) -> Text:
        return Text(clean(text, lines=False), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True).status(line(what)) as shown:

        def told(done: int, of: int) -> None:
            if of > 1:
                shown.update(line(f"{what}: {done}/{of}"))

        lifecycle.deps = lifecycle.deps._replace(progress=told)
        return lifecycle.perform(operation, params)
