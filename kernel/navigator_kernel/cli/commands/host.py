"""`navigator host`: registers the kernel with the coding agents on this machine, and removes it again."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines, spoken, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import BETWEEN, say

if TYPE_CHECKING:
    from navigator_kernel.hosts.hosts import Host
    from navigator_kernel.hosts.install import Change, Installer
    from navigator_kernel.values.resource import SkillDef

HOSTS = (
    "claude-code", "codex", "gemini", "cursor", "vscode", "copilot", "opencode", "goose", "amp", "qwen", "kimi",
    "windsurf", "generic",
)  # fmt: skip
HIDING = ("claude-code", "codex")
ASKING = ("claude-code", "codex", "gemini")  # hosts that use what was written only after the person's yes there

host_argument = click.argument("host", type=click.Choice(HOSTS))
dry_option = click.option("--dry-run", is_flag=True, help="Only show what would be written.")


@click.group("host")
def command() -> None:
    """Coding agents: install, list, uninstall."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the hosts, whether they are on this machine, and whether Navigator is in their settings."""
    from navigator_kernel.hosts.hosts import hosts

    rows: list[dict[str, Any]] = []
    for name, host in hosts(app.root).items():
        files = [str(file) for file in dict.fromkeys(entry.file for entry in host.entries)]
        created: tuple[Path, ...] = ()
        installer, problem = _installer(app, host), ""
        try:
            state = "no" if (changes := installer.install(host)) else "yes"
            state = "partly" if changes and len(changes) < len(files) else state
            created = tuple(change.file for change in installer.uninstall(host) if change.after is None)
        except KernelError as error:
            state, problem = "unknown", error.message
        row = {"host": name, "title": host.title, "found": host.is_here(created), "installed": state, "files": files}
        rows.append({**row, "problem": problem})
    if as_json:
        document({"hosts": rows})
        return
    table(
        ("host", "found", "installed", "files"),
        [
            (
                str(row["host"]),
                say(f"host.is.{'yes' if row['found'] else 'no'}", app.spoken),
                say(f"host.is.{row['installed']}", app.spoken),
                BETWEEN[app.spoken].join(row["files"]),
            )
            for row in rows
        ],
        language=app.spoken,
    )
    for row in rows:
        if row["problem"]:
            note(f"{row['host']}: {row['problem']}")


@command.command("install")
@host_argument
@click.option(
    "--hide-skills",
    is_flag=True,
    help="Hide the skills from the own list of claude-code (/NAME still works) or of codex.",
)
@dry_option
@click.option("--uninstall", "undo", is_flag=True, hidden=True)
@json_option
@pass_app
def install(app: App, *, host: str, hide_skills: bool, dry_run: bool, undo: bool, as_json: bool) -> None:
    """Add the MCP server and, where HOST has hooks, the prompt hook to HOST's settings.

    Your own files for Codex, Copilot CLI, goose, Kimi Code and Windsurf; the project's for the others.
    """
    from navigator_kernel.evals.lint import listings
    from navigator_kernel.hosts.hosts import hiding, hosts

    held = hosts(app.root)[host]
    if undo:
        _uninstall(app, host, held, dry_run=dry_run, as_json=as_json)
        return
    if hide_skills and host not in HIDING:
        raise UsageProblem(f"{host} has no setting that hides a skill", hint="leave --hide-skills out")
    skills = _listed(app, held) if host == "claude-code" or hide_skills else {}
    if hide_skills:
        held = hiding(held, list(skills))
    installer = _installer(app, held)
    changes = installer.install(held)
    if not dry_run:
        installer.write(changes)
        installer.note_user(held, host)
    _tell(changes, host, held, dry_run=dry_run, as_json=as_json)
    if as_json:
        return
    if not dry_run:
        title = in_language(held.title, app.spoken)
        note(say("host.restart" if changes else "host.has", app.spoken, host=title))
        if changes and host in ASKING:
            note(say(f"host.asks.{host}", app.spoken))
    if not skills or hide_skills:
        return
    # What the skills cost that Claude Code itself lists
    try:
        shown = {name for change in installer.install(hiding(held, list(skills))) for name in change.names}
    except KernelError:  # the setting has an unexpected form
        return
    seen = [skill for skill in skills.values() if skill.folder is not None and skill.folder.name in shown]
    (listing,) = (one for one in listings(seen) if one.host == "claude-code")
    if listing.skills:
        note(say("host.listed", app.spoken, count=listing.skills, tokens=listing.tokens))
    if listing.beyond:
        note(say("host.beyond", app.spoken, count=listing.beyond))


@command.command("uninstall")
@host_argument
@dry_option
@json_option
@pass_app
def uninstall(app: App, *, host: str, dry_run: bool, as_json: bool) -> None:
    """Restore HOST's files; one that was changed since keeps the changes."""
    from navigator_kernel.hosts.hosts import hosts

    _uninstall(app, host, hosts(app.root)[host], dry_run=dry_run, as_json=as_json)


def _uninstall(app: App, host: str, held: Host, *, dry_run: bool, as_json: bool) -> None:
    from navigator_kernel.hosts.hosts import hiding

    if host in HIDING:
        held = hiding(held, list(_listed(app, held)))
    installer = _installer(app, held)
    others = {entry.file: [user for user in installer.users(entry.file) if user != host] for entry in held.entries}
    users = sorted({user for names in others.values() for user in names})
    # A file that another installed host uses stays
    changes = installer.uninstall(replace(held, entries=tuple(one for one in held.entries if not others[one.file])))
    if not dry_run:
        installer.write(changes, back=True)
        installer.note_user(held, host, is_gone=True)
    _tell(changes, host, held, dry_run=dry_run, as_json=as_json)
    for name in () if as_json else users:
        note(f"{name} still uses the entry, so it stays; navigator host uninstall {name} removes it")
    if not as_json and not dry_run and not users:
        title = in_language(held.title, app.spoken)
        note(say("host.restart_without" if changes else "host.has_not", app.spoken, host=title))


def _installer(app: App, host: Host) -> Installer:
    from navigator_kernel.hosts.install import Installer

    kept = user_state() / "hosts"
    folders = {Path(os.path.realpath(entry.file)).parent for entry in host.entries}  # follows the person's own links
    own = os.path.realpath(Path.home())
    folders |= {folder.parent for folder in folders if host.mine and own in map(str, folder.parents[1:])}
    writer = FolderWriter([kept, *folders], within=None if host.mine else app.root)
    return Installer(root=app.root, kept=kept, writer=writer)


def _listed(app: App, host: Host) -> dict[Path, SkillDef]:
    """The skills that the host itself loads, and Navigator has, too, by their folders in the host's own."""
    tops = [folder for folder in host.skills if folder.is_dir()]
    skills = app.bare.catalogue.list_resources() if tops else []
    names = [(skill.folder.name, skill) for skill in skills if skill.folder is not None]
    return {top / name: skill for top in tops for name, skill in names if (top / name / "SKILL.md").is_file()}


def _tell(changes: list[Change], host: str, held: Host, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        told = [{"file": str(change.file), "removed": change.after is None} for change in changes]
        document({"host": host, "changed": told, "dry_run": dry_run})
    elif dry_run:
        for change in changes:
            old, new = ((data or b"").decode("utf-8", "replace").splitlines() for data in (change.before, change.after))
            lines(difflib.unified_diff(old, new, os.fspath(change.file), os.fspath(change.file), lineterm=""))
        if not changes:
            note(f"nothing to do for {in_language(held.title, spoken())}")
    else:
        say_lines([f"{'removed' if change.after is None else 'wrote'} {change.file}" for change in changes])
