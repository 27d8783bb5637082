"""`navigator gc`: removes temporary files, remains of killed processes and old logs, but never workflows, other state
or the lock (X-19)."""

from __future__ import annotations

import click

from navigator_kernel.bootstrap.upkeep import collect_garbage
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines
from navigator_kernel.cli.project import App


@click.command("gc")
@click.option(
    "--days",
    type=click.IntRange(0, 3650),
    default=30,
    show_default=True,
    help="Logs, workspaces, recordings and sessions of single API calls older than this.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@json_option
@pass_app
def command(app: App, *, days: int, dry_run: bool, as_json: bool) -> None:
    """Remove temporary files, remains of killed processes, and what is old."""
    gone, sentence = collect_garbage(app.root, days=days, dry_run=dry_run)
    if as_json:
        document({"removed": gone, "dry_run": dry_run, "exit_code": 0})
    else:
        say_lines([*gone, f"{len(gone)} {'would be removed' if dry_run else 'removed'}"])
    if sentence:
        note(sentence)
