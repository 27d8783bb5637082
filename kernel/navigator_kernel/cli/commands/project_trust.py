"""`navigator project`: the paths of the project and its state, and whether its files are trusted."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines
from navigator_kernel.cli.project import App
from navigator_kernel.config.project_root import project_subject
from navigator_kernel.errors import NotFound

if TYPE_CHECKING:
    from navigator_kernel.sandbox.consents import ConsentStore

path_argument = click.argument("path", required=False, type=click.Path())


@click.group("project")
def command() -> None:
    """Show a project and accept one whose files belong to another user."""


@command.command("show")
@json_option
@pass_app
def show(app: App, *, as_json: bool) -> None:
    """Show the project's folder and the folder of its state."""
    root, state = app.root, project_state(app.root).folder
    if as_json:
        document({"root": str(root), "state": str(state), "exit_code": 0})
    else:
        lines([f"project {root}", f"state   {state}"])


@command.command("trust")
@path_argument
@json_option
@pass_app
def trust(app: App, *, path: str | None, as_json: bool) -> None:
    """Use the project at PATH (default: the current folder) although another user owns files of it."""
    subject = _subject(app, path)
    _consents().trust(subject, note="navigator project trust")
    document({"trusted": subject, "exit_code": 0}) if as_json else lines(f"trusted {subject}")


@command.command("distrust")
@path_argument
@json_option
@pass_app
def distrust(app: App, *, path: str | None, as_json: bool) -> None:
    """Withdraw that trust."""
    subject = _subject(app, path)
    book = _consents()
    gone = [one for one in book.subjects() if one == subject]
    book.distrust(*gone)
    document({"distrusted": gone, "exit_code": 0}) if as_json else lines(gone or f"{subject} was not trusted")


def _consents() -> ConsentStore:
    from navigator_kernel.bootstrap.consents import open_consents

    return open_consents()


def _subject(app: App, path: str | None) -> str:
    """The subject of trust in the folder. Works without a project, because this trust is what makes one usable."""
    folder = Path(path or app.root_flag or os.curdir)
    if not folder.is_dir():
        raise NotFound(f"no folder is called {str(folder)!r}", hint="name the project's folder")
    return project_subject(str(folder))
