"""`navigator policy`: what a skill may do here, and why."""

from __future__ import annotations

import click

from navigator_kernel.cli.app import App, json_option, pass_app
from navigator_kernel.cli.output import document, table
from navigator_kernel.errors import IntegrityMismatch


@click.group("policy")
def command() -> None:
    """What a skill may do."""


@command.command("explain")
@click.argument("skill")
@click.argument("tool", required=False, default="")
@json_option
@pass_app
def explain(app: App, *, skill: str, tool: str, as_json: bool) -> None:
    """Tell what SKILL may do here, and what decides it; with TOOL also whether it may call that."""
    from navigator_kernel.assembly.extensions import open_consents
    from navigator_kernel.assembly.lifecycle import open_lifecycle
    from navigator_kernel.assembly.parts import open_catalogue, open_sandbox
    from navigator_kernel.sandbox.policy import Standing, explained

    catalogue = open_catalogue(app.root)
    held = catalogue.find(skill)
    executor = catalogue.create_executor(held.namespace if held else f"skill:{skill}")
    found, changed, rung = executor.skill, "", open_sandbox().rung()
    trusted = open_consents().trusted(f"type_a:{found.name}@{executor.digest}")
    if found.folder is not None and not trusted:
        try:
            open_lifecycle(app.root).perform("intact", {"path": str(found.folder), "digest": executor.digest})
        except IntegrityMismatch as error:
            changed = error.message
    standing = Standing(catalogue.is_shipped(found), trusted, changed, rung.name if rung else "")
    decisions = explained(found, standing, tool)
    if as_json:
        document({"skill": found.name, "digest": executor.digest, "decisions": [one.to_dict() for one in decisions]})
    else:
        table(("it may", "verdict", "because", ""), [(d.what, d.verdict, d.rule, d.detail) for d in decisions])
