"""`navigator doctor`: finds what is missing or damaged, says how to repair it, and repairs it when asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from navigator_kernel.bootstrap.health import findings, repair, shown
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.work import take_option, taking

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.ports import Kernel


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
    found = list(findings(app.root, lambda: app.settings, lambda: _with_plugins(app)))
    repaired: list[str] = []
    if repairs:
        repaired, failed = taking(app, take, lambda sides: repair(app.root, found, sides), quiet=as_json)
        for one in failed:
            note(one)
        found = list(findings(app.root, lambda: app.settings, lambda: _with_plugins(app)))
    code = 1 if any(finding.state == "damaged" for finding in found) else 0
    if as_json:
        body = {"findings": [finding.to_dict() for finding in found], "repaired": repaired, "exit_code": code}
        document(body)
        return code
    say_lines(f"repaired {name}" for name in repaired)
    lines(shown(found, app.spoken, every=verbose))
    return code


def _with_plugins(app: App) -> Kernel:
    """The kernel, whose plugins have been tried."""
    from navigator_kernel.cli.commands.plugin import tried

    tried(app)
    return app.kernel


COMMANDS = {"doctor": command}
