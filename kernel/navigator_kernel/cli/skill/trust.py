"""The skill commands that store a choice of the person: enable, disable, trust, distrust and record."""

from __future__ import annotations

from collections.abc import Mapping

import click

from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines
from navigator_kernel.cli.project import App
from navigator_kernel.cli.skill.work import show_json
from navigator_kernel.values.standing import skill_subject


@click.command("enable")
@click.argument("name", shell_complete=skill_names.here)
@json_option
@pass_app
def enable(app: App, *, name: str, as_json: bool) -> None:
    """Offer a skill again."""
    result = app.bare.lifecycle.enable(name)
    show_json(result) if as_json else say_lines(f"enabled {result.name}")


@click.command("disable")
@click.argument("name", shell_complete=skill_names.here)
@json_option
@pass_app
def disable(app: App, *, name: str, as_json: bool) -> None:
    """Never offer a skill, without removing it."""
    result = app.bare.lifecycle.disable(name)
    show_json(result) if as_json else say_lines(f"disabled {result.name}")


@click.command("trust")
@click.argument("name", shell_complete=skill_names.here)
@json_option
@pass_app
def trust(app: App, *, name: str, as_json: bool) -> None:
    """Let a skill use its tools and run its command without asking, until its files change."""
    from navigator_kernel.skills.install.lockfile import wanted_entries
    from navigator_kernel.skills.source.rules import refuse_skill
    from navigator_kernel.values.receipt import Receipt

    # The executor of the installed skill as it is now
    catalogue = app.bare.catalogue
    skill = catalogue.find(name)
    executor = catalogue.create_executor(skill.namespace if skill else f"skill:{name}")
    lifecycle = app.bare.lifecycle
    called, folder = executor.skill.name, executor.skill.folder
    if lifecycle.deps.rules and not executor.shipped:
        (row,), installed = lifecycle.scan(called, here=True).skills, lifecycle.held(called)
        # What no install of this person brought comes from a folder, whatever its receipt says
        receipt = Receipt(name=called, source=str(folder), ref="", commit="", subpath="", tree="", files=(),
                          digest=executor.digest, verdict=row.verdict, installed_at="")  # fmt: skip
        is_locked = False
        if executor.origin and installed is not None and installed.receipt is not None:
            receipt, is_locked = installed.receipt, called in (wanted_entries(installed.place) or {})
        refuse_skill(lifecycle.deps.rules, receipt, row.verdict, is_locked=is_locked)
    subjects = [skill_subject(executor.skill.name, executor.digest), executor.consent]
    app.bare.consents.trust(*subjects, note=f"navigator skill trust {name}")
    if as_json:
        document({"trusted": subjects[-1], "subjects": subjects, "exit_code": 0})
        return
    say_lines(f"trusted {subjects[-1]}")
    if executor.claimed and not executor.origin:
        note(f"its receipt claims that it comes from {executor.claimed}; nothing here proves that")


@click.command("distrust")
@click.argument("name", shell_complete=skill_names.here)
@json_option
@pass_app
def distrust(app: App, *, name: str, as_json: bool) -> None:
    """Withdraw trust from a skill."""
    book = app.bare.consents
    kinds = tuple(f"{kind}:{name}@" for kind in ("type_a", "skill", "installed"))
    gone = [subject for subject in book.subjects() if subject.startswith(kinds)]
    for subject in gone:
        book.distrust(subject)
    document({"distrusted": gone, "exit_code": 0}) if as_json else say_lines(gone or f"{name} was not trusted")


@click.command("record")
@click.argument("name", shell_complete=skill_names.here)
@json_option
@pass_app
def record(app: App, *, name: str, as_json: bool) -> None:
    """Count one use of a skill; search ranks used skills higher."""
    result = app.bare.lifecycle.record(name)
    show_json(result) if as_json else say_lines(f"{result.name}: {result.uses} uses")


COMMANDS: Mapping[str, click.Command] = {
    "disable": disable,
    "distrust": distrust,
    "enable": enable,
    "record": record,
    "trust": trust,
}
