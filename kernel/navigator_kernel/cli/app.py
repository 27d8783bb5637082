"""Options and helpers that commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import click

from navigator_kernel.cli.project import App
from navigator_kernel.values.rights import EVERYWHERE, words_in

F = TypeVar("F", bound=Callable[..., Any])


def app_of(ctx: click.Context) -> App:
    """The App of a context; a new one if the group was not entered (completion)."""
    held = ctx.find_object(App)
    return held if held is not None else App()


def _unsafe(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value:
        app_of(ctx).unsafe = True


def _edits(ctx: click.Context, option: click.Parameter, value: bool) -> None:  # noqa: FBT001 - click's signature
    if value and option.name == "allow_edits":
        app_of(ctx).allow += (EVERYWHERE,)
    elif value:
        app_of(ctx).read_only = True


def _allow(ctx: click.Context, _: click.Parameter, values: tuple[str, ...]) -> None:
    if values:
        words = [word for value in values for word in value.split(",")]
        app_of(ctx).allow += words_in(words)


def rights_options(command: F) -> F:
    """Adds the options --allow, --read-only and --allow-edits to a command."""
    allow = click.option(
        "--allow",
        metavar="WORDS",
        multiple=True,
        expose_value=False,
        callback=_allow,
        help="What the model's tools may do without a question: run, scripts, read, edit:FOLDER/ (with commas).",
    )
    flag = partial(click.option, is_flag=True, expose_value=False, callback=_edits)
    read_only = flag("--read-only", help="The model's tools may only read.")
    edits = flag("--allow-edits", help="The same as --allow edit:./")
    return edits(read_only(allow(command)))


unsafe_option = click.option(
    "--unsafe-no-sandbox",
    is_flag=True,
    expose_value=False,
    callback=_unsafe,
    help="Run commands without a sandbox if this machine has none.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
pass_app = click.make_pass_decorator(App, ensure=True)
