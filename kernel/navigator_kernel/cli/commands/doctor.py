"""`navigator doctor`: finds what is missing or damaged, and repairs it when asked; `navigator gc` removes old files."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import click

from navigator_kernel.bootstrap.health import Finding, findings, repair, shown
from navigator_kernel.bootstrap.upkeep import collect_garbage, size_of
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.work import take_option, taking
from navigator_kernel.errors import KernelError
from navigator_kernel.text import escape_controls, numbered


@click.command("doctor")
@click.option(
    "--repair", "repairs", is_flag=True, help="Repair what is damaged; a file that is replaced is kept beside it."
)
@take_option
@click.option("-v", "--verbose", is_flag=True, help="Also show the checks without a problem.")
@json_option
@pass_app
def command(app: App, *, repairs: bool, take: Sequence[str], verbose: bool, as_json: bool) -> int:
    """Check everything; exit code 1 if something is damaged."""
    found = _findings(app)
    repaired: list[str] = []
    if repairs:
        repaired, failed = taking(app, take, lambda sides: repair(app.project, found, sides), quiet=as_json)
        for one in failed:
            note(one)
        app.reopen()
        found = _findings(app)
    code = 1 if any(finding.state == "damaged" for finding in found) else 0
    if as_json:
        body = {"findings": [finding.to_dict() for finding in found], "repaired": repaired, "exit_code": code}
        document(body)
        return code
    say_lines(f"repaired {name}" for name in repaired)
    lines(shown(found, app.spoken, every=verbose))
    return code


def _findings(app: App) -> list[Finding]:
    """The findings, once plugins have been tried."""
    from navigator_kernel.cli.commands.plugin import tried

    with suppress(KernelError, OSError, ValueError):  # a finding says so
        tried(app)
    return list(findings(app.project))


# `navigator gc`: removes temporary files, remains of killed processes and old logs, but never workflows, other state
# or the lock, nor results that are nowhere else.

SHOWN = 10  # runs that are named


@click.command("gc")
@click.option(
    "--days",
    type=click.IntRange(0, 3650),
    default=30,
    show_default=True,
    help="Logs, workspaces and sessions of single API calls older than this.",
)
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--results", is_flag=True, help="Also remove old results of runs that are not in the project.")
@json_option
@pass_app
def gc(app: App, *, days: int, dry_run: bool, results: bool, as_json: bool) -> None:
    """Remove temporary files, remains of killed processes, and what is old.

    Workspaces with results that were not delivered to the project stay, unless --results is given.
    """
    gone, kept, sentence = collect_garbage(app.bare, days=days, dry_run=dry_run, results=results)
    size = sum(map(size_of, kept))
    if as_json:
        names = [one.name for one in kept]
        document({"removed": gone, "results": names, "results_bytes": size, "dry_run": dry_run, "exit_code": 0})
    else:
        say_lines([*gone, f"{len(gone)} {'would be removed' if dry_run else 'removed'}"])
    if kept:
        names = [escape_controls(one.name.rpartition("/")[2]) for one in kept[:SHOWN]]
        shown = ", ".join([*names, *(["…"] if len(kept) > SHOWN else [])])
        count = numbered(len(kept), "old run")
        note(f"{count} kept with results that are not in the project ({numbered(size, 'byte')}): {shown}")
        note("navigator files RUN lists them, and navigator gc --results removes them")
    if sentence:
        note(sentence)


COMMANDS = {"doctor": command}
