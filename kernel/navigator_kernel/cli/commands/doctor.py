"""`navigator doctor`: finds what is missing or damaged, says how to repair it, and repairs it when asked."""

from __future__ import annotations

import click

from navigator_kernel.bootstrap.health import findings, repair, shown
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App


@click.command("doctor")
@click.option(
    "--repair", "repairs", is_flag=True, help="Repair what is damaged; a file that is replaced is kept beside it."
)
@click.option("-v", "--verbose", is_flag=True, help="Also show the checks without a problem.")
@json_option
@pass_app
def command(app: App, *, repairs: bool, verbose: bool, as_json: bool) -> int:
    """Check everything; exit code 1 if something is damaged."""
    found = list(findings(app.root, lambda: app.settings, lambda: app.kernel))
    repaired: list[str] = []
    if repairs:
        repaired, failed = repair(app.root, found)
        for one in failed:
            note(one)
        found = list(findings(app.root, lambda: app.settings, lambda: app.kernel))
    code = 1 if any(finding.state == "damaged" for finding in found) else 0
    if as_json:
        body = {"findings": [finding.to_dict() for finding in found], "repaired": repaired, "exit_code": code}
        document(body)
        return code
    lines([f"repaired {name}" for name in repaired])
    lines(shown(found, every=verbose))
    return code


COMMANDS = {"doctor": command}
