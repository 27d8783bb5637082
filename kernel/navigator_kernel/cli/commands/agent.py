"""`navigator agent`: lists subagents."""

from __future__ import annotations

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, table
from navigator_kernel.cli.project import App
from navigator_kernel.language.chinese import in_language


@click.group("agent")
def command() -> None:
    """Subagents."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the subagents."""
    agents = sorted({agent.name: agent for agent in app.project.agents.values()}.items())
    if as_json:
        document({"agents": [{"name": n, "aliases": list(a.aliases), "description": a.description} for n, a in agents]})
    else:
        rows = [(n, ", ".join(a.aliases), in_language(a.description, app.spoken)) for n, a in agents]
        table(("agent", "aliases", "what it does"), rows)
