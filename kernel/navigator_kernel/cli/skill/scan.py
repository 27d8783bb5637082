"""`navigator skill scan`: looks for dangerous content in skills."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from navigator_kernel import __version__
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.findings import shown
from navigator_kernel.cli.skill.work import busy, filter_options, reach_options, verbose_option
from navigator_kernel.text import numbered


@click.command("scan")
@click.argument("source", required=False, default="")
@click.option("--all", "everything", is_flag=True, help="Every installed skill.")
@click.option("--skill", "skills", multiple=True, help="Only this skill of the source; may be repeated.")
@click.option("--ref", help="Branch, tag or commit.")
@verbose_option
@click.option("--sarif", "as_sarif", is_flag=True, help="Print the findings as SARIF 2.1.0.")
@reach_options
@filter_options
@json_option
@pass_app
def scan(
    app: App,
    /,
    *,
    source: str,
    everything: bool,
    skills: tuple[str, ...],
    verbose: bool,
    as_sarif: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Scan an installed skill or a SOURCE for dangerous content; exit code 1 if there is any."""
    from navigator_kernel.skills.scan.sarif import sarif

    params = {"source": source, "all": everything, "skill": list(skills), **given}
    found = busy(app, "scan", params, quiet=as_json or as_sarif)
    if as_sarif:
        document(sarif(found["skills"], __version__), whole=True)
    elif as_json:
        document(found)
    else:
        for one in found["skills"]:
            lines(f"{one['name']}: {one['verdict'].replace('_', ' ')}")
            lines([f"  {line}" for line in shown(one["name"], one["findings"], notes=verbose)])
        note(f"{numbered(found['count'], 'skill')}, {found['blocked']} would not be installed")
    return int(found["exit_code"])


COMMANDS: Mapping[str, click.Command] = {"scan": scan}
