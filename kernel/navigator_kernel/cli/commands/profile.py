"""`navigator profile`: named sets of skills, one of which can be on in this project."""

from __future__ import annotations

import click
from msgspec import to_builtins

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.wording import BETWEEN, say
from navigator_kernel.skills.lifecycle import Profiles


class _Short(click.Group):
    """`profile NAME` is short for `profile use NAME`."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        is_name = bool(args) and not args[0].startswith("-") and args[0] not in self.commands
        return super().resolve_command(ctx, ["use", *args] if is_name else args)


@click.group("profile", cls=_Short)
def command() -> None:
    """Name sets of skills, and switch on one of them here; `profile NAME` uses it."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List the profiles of this project."""
    _tell(app, app.bare.lifecycle.profiles(), as_json=as_json)


@command.command("show")
@click.argument("name")
@json_option
@pass_app
def show(app: App, *, name: str, as_json: bool) -> None:
    """Show the skills of a profile."""
    _tell(app, app.bare.lifecycle.profiles(name), as_json=as_json)


@command.command("save")
@click.argument("name")
@click.argument("skills", nargs=-1)
@json_option
@pass_app
def save(app: App, *, name: str, skills: tuple[str, ...], as_json: bool) -> None:
    """Save SKILLS as profile NAME, by default the skills that are on now."""
    _tell(app, app.bare.lifecycle.save_profile(name, skills), as_json=as_json)


@command.command("use")
@click.argument("name", required=False, default="")
@click.option("--off", is_flag=True, help="Return to what was on before; so does the name none.")
@json_option
@pass_app
def use(app: App, *, name: str, off: bool, as_json: bool) -> None:
    """Switch on exactly the skills of a profile in this project, and all others off."""
    if off == (name not in {"", "none"}) and name != "none":
        raise UsageProblem("name a profile, or say --off", hint="navigator profile list names them")
    _tell(app, app.bare.lifecycle.use_profile("" if off or name == "none" else name), as_json=as_json)


@command.command("remove")
@click.argument("name")
@json_option
@pass_app
def remove(app: App, *, name: str, as_json: bool) -> None:
    """Forget a profile; its skills stay."""
    _tell(app, app.bare.lifecycle.remove_profile(name), as_json=as_json)


def _tell(app: App, result: Profiles, *, as_json: bool) -> None:
    if as_json:
        document(to_builtins(result))
        return
    between = BETWEEN[app.spoken]
    rows = [
        (profile.name, say("profile.on", app.spoken) if profile.active else "", between.join(profile.skills))
        for profile in result.profiles
    ]
    table(("profile", "on", "skills"), rows, language=app.spoken)
    for profile in result.profiles:
        if profile.missing:
            note(say("profile.missing", app.spoken, profile=profile.name, names=between.join(profile.missing)))
