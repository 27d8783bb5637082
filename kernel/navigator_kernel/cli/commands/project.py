"""`navigator project`: the project and its state, the states of all projects, and whether its files are trusted."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from navigator_kernel.bootstrap.places import find_root, open_consents, project_state
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, is_asked, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.project_root import project_subject
from navigator_kernel.errors import ConsentNeeded, KernelError, NotFound
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.sandbox.consents import ConsentStore

yes_option = click.option("-y", "--yes", is_flag=True, help="Agree without a question.")
path_argument = click.argument("path", required=False, type=click.Path())


@click.group("project")
def command() -> None:
    """Show a project, manage the states of all projects, and accept files that belong to another user."""


@command.command("show")
@json_option
@pass_app
def show(app: App, *, as_json: bool) -> None:
    """Show the project's folder and the folder of its state."""
    root, state = app.root, project_state(app.root).folder
    if as_json:
        document({"root": str(root), "state": str(state), "exit_code": 0})
    else:
        say_lines([f"project {root}", f"state   {state}"])


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the states of all your projects, the last used first: place, sessions, workflow runs, size.

    `here` marks the state of this project, `gone` one whose project is no longer at its place, `set aside` one that
    was replaced.
    """
    from navigator_kernel.bootstrap.projects import stored_states

    states = stored_states(_root(app))
    if as_json:
        document({"projects": [state.to_dict() for state in states]})
        return
    rows = []
    for state in states:
        is_there = state.is_current or state.record.is_there()
        marks = [(state.is_current, "here"), (not is_there, "gone"), (state.is_aside, "set aside")]
        about = ", ".join([*(text for is_so, text in marks if is_so), *filter(None, [state.record.fault])])
        counts = ["?" if count is None else str(count) for count in (state.sessions, state.runs)]
        rows.append((state.record.short, state.used, f"{state.size:,}", *counts, about, state.record.place.path))
    table(
        ("id", "last use", "bytes", "sessions", "runs", "", "project"), rows, spare=("bytes", "runs"), whole="project"
    )


@command.command("adopt")
@click.argument("state", metavar="PLACE_OR_ID")
@click.option("--replace", is_flag=True, help="Set this project's own sessions and runs aside.")
@yes_option
@json_option
@pass_app
def adopt(app: App, *, state: str, replace: bool, yes: bool, as_json: bool) -> None:
    """Take over the state of another project, such as the one that this project was copied from."""
    from navigator_kernel.bootstrap import projects

    taken = projects.adoptable(app.root, state, replace=replace)
    question = f"Give the state {taken.summary()} to {str(app.root)!r}?"
    if not taken.is_aside and taken.record.is_there():
        question += " The project there begins again with an empty state."
    _agree(question, yes=yes, as_json=as_json)
    former = projects.adopt(app.root, taken.record.folder.name, replace=replace)
    if as_json:
        document({"adopted": taken.to_dict(), "set_aside": former.short if former else ""})
        return
    say_lines(f"this project has the state {taken.summary()} now")
    if former:
        say_lines(f"its former state was set aside: navigator project adopt {former.short} --replace takes it back")


@command.command("forget")
@click.argument("state", metavar="PLACE_OR_ID")
@yes_option
@json_option
@pass_app
def forget(app: App, *, state: str, yes: bool, as_json: bool) -> None:
    """Delete the state of a project, with its sessions, approvals and record."""
    from navigator_kernel.bootstrap import projects

    lost = projects.find_state(_root(app), state)
    _agree(f"Delete the state {lost.summary()}, with its approvals and its record?", yes=yes, as_json=as_json)
    projects.forget(lost.record.folder)
    document({"forgotten": lost.to_dict()}) if as_json else say_lines(f"deleted the state {lost.summary()}")


def _root(app: App) -> Path | None:
    """The project here, if it can be used."""
    with suppress(KernelError):
        return find_root(Path.cwd(), app.root_flag)
    return None


def _agree(question: str, *, yes: bool, as_json: bool) -> None:
    """ConsentNeeded unless the person agrees."""
    if not yes and not (not as_json and is_asked() and click.confirm(clean(question, lines=False), err=True)):
        raise ConsentNeeded(f"nobody agreed: {question}", hint="--yes agrees to it")


@command.command("trust")
@path_argument
@json_option
@pass_app
def trust(app: App, *, path: str | None, as_json: bool) -> None:
    """Use the project at PATH (default: the current folder) although another user owns files of it."""
    subject = _subject(app, path)
    _consents().trust(subject, note="navigator project trust")
    document({"trusted": subject, "exit_code": 0}) if as_json else say_lines(f"trusted {subject}")


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
    document({"distrusted": gone, "exit_code": 0}) if as_json else say_lines(gone or f"{subject} was not trusted")


def _consents() -> ConsentStore:
    return open_consents()


def _subject(app: App, path: str | None) -> str:
    """The subject of trust in the folder. Works without a project, because this trust is what makes one usable."""
    folder = Path(path or app.root_flag or os.curdir)
    if not folder.is_dir():
        raise NotFound(f"no folder is called {str(folder)!r}", hint="name the project's folder")
    return project_subject(str(folder))
