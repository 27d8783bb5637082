"""`navigator policy`: what a skill may do here, and why."""

from __future__ import annotations

import click
from msgspec import to_builtins

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import MACHINE_POLICY, policy_files, user_file
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
    from navigator_kernel.sandbox.guard import Decision, Standing, explained
    from navigator_kernel.skills.install.lockfile import wanted_entries

    catalogue, consents = app.bare.catalogue, app.bare.consents
    held = catalogue.find(skill)
    executor = catalogue.create_executor(held.namespace if held else f"skill:{skill}")
    found, granted, rung = executor.skill, consents.trusted(executor.consent), app.bare.contained.rung()
    plain = consent_subject("type_a", found.name, executor.digest, executor.origin)
    standing = Standing(
        catalogue.is_shipped(found), granted or consents.trusted(plain), granted, rung.name if rung else ""
    )
    rights = app.settings.allow.get(found.name, ())
    decisions = explained(executor, standing, app.settings.policy, tool, rights)
    installed = app.bare.lifecycle.held(found.name)
    if installed is not None and installed.receipt is not None:
        is_locked = found.name in (wanted_entries(installed.place) or {})
        if refused := app.bare.lifecycle.refusal(installed.receipt, is_locked=is_locked):
            decisions = (*decisions, Decision("be installed", "deny", refused.message, refused.hint))
    if as_json:
        head = {"skill": found.name, "digest": executor.digest, "origin": executor.origin}
        document({**head, "decisions": [one.to_dict() for one in decisions]})
    else:
        rows = [[in_language(cell, app.spoken) for cell in (d.what, d.verdict, d.rule, d.detail)] for d in decisions]
        table(("it may", "verdict", "because", ""), rows)


@command.command("show")
@json_option
@pass_app
def show(app: App, *, as_json: bool) -> None:
    """Show the rules for installing skills, and the file in which each stands."""
    rules = app.bare.lifecycle.deps.rules
    if as_json:
        document({"rules": [to_builtins(one) for one in rules]})
        return
    words, none = {True: "true", False: "false"}, in_language("(none)", app.spoken)
    rows = [
        [key, ", ".join(value) or none if isinstance(value, list) else words.get(value, value), one["path"]]
        for one in map(to_builtins, rules)
        for key, value in one.items()
        if key != "path" and value is not None
    ]
    table(("rule", "value", "file"), rows, whole="file", language=app.spoken)
    if not policy_files():
        own = user_file().with_name(MACHINE_POLICY.name)
        note(f"no policy file exists: {str(MACHINE_POLICY)!r} for this machine, {str(own)!r} for you")
