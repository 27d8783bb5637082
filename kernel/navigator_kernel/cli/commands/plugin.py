"""`navigator plugin`: which plugins are loaded, which failed, and which folders of agents are trusted."""

from __future__ import annotations

from pathlib import Path

import click

from navigator_kernel.bootstrap.extensions import agents_subject, open_plugins
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound


@click.group("plugin")
def command() -> None:
    """Plugins."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> int:
    """List plugins; exit code 1 where one failed."""
    extensions = open_plugins(app.root)
    failures = app.kernel.failures()  # building the agents also reveals a failing registration
    plugins, untrusted = extensions.plugins.names(), [str(path) for path in extensions.untrusted]
    if as_json:
        body = {"plugins": plugins, "untrusted": untrusted, "failures": [dict(failure) for failure in failures]}
        document({**body, "exit_code": 1 if failures else 0})
    else:
        lines(plugins)
        for path in untrusted:
            note(f"not trusted, so not loaded: {path}")
        for failure in failures:
            note(f"failed: {failure['plugin']} in {failure['hook']}: {failure['error']}")
    return 1 if failures else 0


@command.command("trust")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@pass_app
def trust(app: App, *, folder: Path, as_json: bool) -> None:
    """Let the agents of FOLDER run in this program, until its files change."""
    subject = agents_subject(_folder(folder))
    app.consents.trust(subject, note=f"navigator plugin trust {folder}")
    document({"trusted": subject, "exit_code": 0}) if as_json else lines(f"trusted {subject}")


@command.command("distrust")
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
@pass_app
def distrust(app: App, *, folder: Path, as_json: bool) -> None:
    """Withdraw trust from FOLDER."""
    book = app.consents
    prefix = f"agents:{_folder(folder)}@"
    gone = [subject for subject in book.subjects() if subject.startswith(prefix)]
    for subject in gone:
        book.distrust(subject)
    document({"distrusted": gone, "exit_code": 0}) if as_json else lines(gone or "nothing was trusted there")


def _folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise NotFound(f"no folder is called {str(folder)!r}", hint="name a folder that contains <agent>/agent.py")
    return folder.resolve()
