"""How the skill commands show findings, and ask for what only the person can accept."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from navigator_kernel.cli.output import note
from navigator_kernel.cli.skill_work import busy
from navigator_kernel.errors import Refused
from navigator_kernel.skills.scan.finding import told
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App


def shown(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> list[str]:
    """One line each, the worst first; notes only for those who ask."""
    order = {"error": 0, "warning": 1, "note": 2}
    chosen = sorted((one for one in findings if notes or one["level"] != "note"), key=lambda one: order[one["level"]])
    return [told(one, skill) for one in chosen]


def note_lines(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> None:
    for line in shown(skill, findings, notes=notes):
        note(line)


def accepting(what: str, app: App, operation: str, params: Mapping[str, Any], *, quiet: bool) -> Mapping[str, Any]:
    """The answer of `busy`. On a terminal a block is asked about, rule by rule, until it is accepted or left."""
    given = list(params.get("accept") or ())
    while True:
        try:
            return busy(what, app, operation, {**params, "accept": given}, quiet=quiet)
        except Refused as error:
            if quiet or error.data.get("reason") != "unsafe" or not (sys.stdin.isatty() and sys.stderr.isatty()):
                raise
            rules = [rule for rule in error.data["blocked_by"] if _accepts(error, rule)]
            if len(rules) < len(error.data["blocked_by"]):
                raise
            given += [f"{error.data['skill']}:{rule}" for rule in rules]


def _accepts(error: Refused, rule: str) -> bool:
    """Whether the person types the name of the rule."""
    import click

    skill = error.data["skill"]
    for finding in error.data["findings"]:
        if finding["level"] == "error" and finding["code"] == rule:
            note(told(finding, skill))
    ask = clean(f"type {rule} to install {skill} all the same, or Enter to leave it", lines=False)
    return bool(click.prompt(ask, default="", show_default=False, err=True).strip() == rule)
