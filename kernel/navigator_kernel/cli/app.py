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
    app = ctx.find_object(App)
    return app if app is not None else App()


def _take_right(ctx: click.Context, option: click.Parameter, value: Any) -> None:
    """Notes a right that the person gives or takes for this one command."""
    if not value:
        return
    app = app_of(ctx)
    match option.name:
        case "unsafe_no_sandbox":
            app.unsafe = True
        case "read_only":
            app.read_only = True
        case "allow_edits":
            app.allow += (EVERYWHERE,)
        case _:
            app.allow += words_in([word for words in value for word in words.split(",")])


def rights_options(command: F) -> F:
    """Adds the options --allow, --read-only and --allow-edits to a command."""
    allow = click.option(
        "--allow",
        metavar="WORDS",
        multiple=True,
        expose_value=False,
        callback=_take_right,
        help="What the model's tools may do without a question: run, scripts, read, edit:FOLDER/ (with commas).",
    )
    flag = partial(click.option, is_flag=True, expose_value=False, callback=_take_right)
    read_only = flag("--read-only", help="The model's tools may only read.")
    edits = flag("--allow-edits", help="The same as --allow edit:./")
    return edits(read_only(allow(command)))


unsafe_option = click.option(
    "--unsafe-no-sandbox",
    is_flag=True,
    expose_value=False,
    callback=_take_right,
    help="Run commands without a sandbox if this machine has none.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
pass_app = click.make_pass_decorator(App, ensure=True)
