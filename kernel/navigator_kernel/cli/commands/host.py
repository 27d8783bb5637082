"""`navigator host`: registers the kernel with the coding agents on this machine, and removes it again."""

from __future__ import annotations

import difflib
import os
from typing import TYPE_CHECKING

import click

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import user_state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from navigator_kernel.hosts.install import Change

HOSTS = ("claude-code", "codex", "gemini", "generic")


@click.group("host")
def command() -> None:
    """Coding agents: install."""


@command.command("install")
@click.argument("host", type=click.Choice(HOSTS))
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--uninstall", is_flag=True, help="Restore the host's files.")
@json_option
@pass_app
def install(app: App, *, host: str, dry_run: bool, uninstall: bool, as_json: bool) -> None:
    """Add the MCP server and, where HOST has hooks, the prompt hook to HOST's settings.

    The project's files for Claude Code, Gemini CLI and hosts that read .mcp.json; your own for Codex.
    """
    from navigator_kernel.hosts.hosts import hosts
    from navigator_kernel.hosts.install import Installer

    held, kept = hosts(app.root)[host], user_state() / "hosts"
    folders = {entry.file.resolve().parent for entry in held.entries}  # follows the person's own links
    writer = FolderWriter([kept, *folders], within=None if held.mine else app.root)
    installer = Installer(root=app.root, kept=kept, writer=writer)
    changes = installer.uninstall(held) if uninstall else installer.install(held)
    if not dry_run:
        installer.write(changes, back=uninstall)
    if as_json:
        told = [{"file": str(change.file), "removed": change.after is None} for change in changes]
        document({"host": host, "changed": told, "dry_run": dry_run})
        return
    if dry_run:
        for change in changes:
            lines(_difference(change))
    else:
        say_lines([f"{'removed' if change.after is None else 'wrote'} {change.file}" for change in changes])
    done = "without" if uninstall else "with"
    note(f"{held.title} goes on {done} Navigator; start it again" if changes else f"nothing to do for {held.title}")


def _difference(change: Change) -> Iterator[str]:
    """The change as a unified diff."""
    before, after = ((data or b"").decode("utf-8", "replace").splitlines() for data in (change.before, change.after))
    yield from difflib.unified_diff(before, after, os.fspath(change.file), os.fspath(change.file), lineterm="")
