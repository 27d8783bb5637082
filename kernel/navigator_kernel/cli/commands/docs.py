"""`navigator docs`: shows the pages of this release in the terminal."""

from __future__ import annotations

import os
import sys

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, table
from navigator_kernel.cli.pages import page_files, read_page
from navigator_kernel.cli.project import App
from navigator_kernel.text import clean

WIDEST = 100  # columns: longer lines are hard to read


def _names(_ctx: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    return [name for name in page_files() if name.startswith(typed)]


@click.command("docs")
@click.argument("page", required=False, shell_complete=_names)
@json_option
@pass_app
def command(app: App, *, page: str | None, as_json: bool) -> None:
    """Show a page of the documentation, or list all pages; in a pipe, print PAGE as Markdown."""
    if page is None:
        _list(app, as_json=as_json)
        return
    found = read_page(page, app.spoken)
    if as_json:
        document({"page": found.name, "title": found.title, "text": found.text})
    elif sys.stdout.isatty():
        _show(found.text)
    else:
        lines(found.text.removesuffix("\n"))


def _list(app: App, *, as_json: bool) -> None:
    found = [read_page(name, app.spoken) for name in page_files()]
    if as_json:
        document({"pages": [{"page": one.name, "title": one.title, "summary": one.summary} for one in found]})
    else:
        table(("page", "what it is about"), [(one.name, one.summary) for one in found])


def _show(text: str) -> None:
    """Renders Markdown, in a pager if it is longer than the terminal."""
    from rich.console import Console
    from rich.markdown import Markdown

    size = os.get_terminal_size()
    console = Console(width=min(size.columns, WIDEST))
    with console.capture() as captured:
        console.print(Markdown(clean(text), hyperlinks=False))
    shown = captured.get()
    if shown.count("\n") < size.lines:
        click.echo(shown, nl=False)
    else:
        click.echo_via_pager(shown)
