"""`navigator completion`: prints the completion script of a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from navigator_kernel.cli.app import json_option
from navigator_kernel.cli.output import document
from navigator_kernel.errors import UsageProblem


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@json_option
@click.pass_context
def command(ctx: click.Context, *, shell: str, as_json: bool) -> None:
    """Print the completion script, for example: navigator completion bash >> ~/.bashrc"""
    kind = get_completion_class(shell)
    if kind is None:
        raise UsageProblem(f"no completion for {shell!r}", hint="bash, zsh or fish")
    script = kind(ctx.find_root().command, {}, "navigator", "_NAVIGATOR_COMPLETE").source()
    document({"shell": shell, "script": script}) if as_json else click.echo(script)
