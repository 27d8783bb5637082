"""`navigator policy`: what a skill may do here, and why."""

from __future__ import annotations

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, table
from navigator_kernel.cli.project import App
from navigator_kernel.language.chinese import in_language
from navigator_kernel.values.job import consent_subject


@click.group("policy")
def command() -> None:
    """What a skill may do."""


@command.command("explain")
@click.argument("skill")
@click.argument("tool", required=False, default="")
@json_option
@pass_app
def explain(app: App, *, skill: str, tool: str, as_json: bool) -> None:
    """Show what SKILL may do here, and what decides it; with TOOL also whether it may call that."""
    from navigator_kernel.sandbox.guard import Standing, explained

    catalogue, consents = app.bare.catalogue, app.bare.consents
    held = catalogue.find(skill)
    executor = catalogue.create_executor(held.namespace if held else f"skill:{skill}")
    found, granted, rung = executor.skill, consents.trusted(executor.consent), app.bare.contained.rung()
    plain = consent_subject("type_a", found.name, executor.digest, executor.origin)
    standing = Standing(
        catalogue.is_shipped(found), granted or consents.trusted(plain), granted, rung.name if rung else ""
    )
    decisions = explained(executor, standing, app.settings.policy, tool)
    if as_json:
        head = {"skill": found.name, "digest": executor.digest, "origin": executor.origin}
        document({**head, "decisions": [one.to_dict() for one in decisions]})
    else:
        rows = [[in_language(cell, app.spoken) for cell in (d.what, d.verdict, d.rule, d.detail)] for d in decisions]
        table(("it may", "verdict", "because", ""), rows)
