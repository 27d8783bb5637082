"""`navigator doctor`: finds what is missing or damaged, says how to repair it, and repairs it when asked."""

from __future__ import annotations

from contextlib import suppress

import click

from navigator_kernel.bootstrap.health import Finding, findings, repair, shown
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.errors import KernelError


@click.command("doctor")
@click.option(
    "--repair", "repairs", is_flag=True, help="Repair what is damaged; a file that is replaced is kept beside it."
)
@click.option("-v", "--verbose", is_flag=True, help="Also show the checks without a problem.")
@json_option
@pass_app
def command(app: App, *, repairs: bool, verbose: bool, as_json: bool) -> int:
    """Check everything; exit code 1 if something is damaged."""
    found = _findings(app)
    repaired: list[str] = []
    if repairs:
        repaired, failed = repair(app.project, found)
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


COMMANDS = {"doctor": command}
