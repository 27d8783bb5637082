"""`navigator config`: settings and their levels (flag > environment > project > user > default)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import PROJECT_FILE, SCALARS, TABLES, checked, field_of, user_file
from navigator_kernel.language.chinese import in_language

user_option = click.option("--user", is_flag=True, help="Set it for the user instead of the project.")


@click.group("config")
def command() -> None:
    """Settings."""


@command.command("list")
@json_option
@pass_app
def listed(app: App, *, as_json: bool) -> None:
    """List every setting with its value and its level."""
    held = app.settings
    rows = [(key, getattr(held, field_of(key)), held.origins[key], SCALARS[key][2]) for key in SCALARS]
    if as_json:
        values = {key: {"value": value, "origin": origin} for key, value, origin, _ in rows}
        tables = {"aliases": dict(held.models.aliases), "servers": sorted(held.servers)}
        document({"settings": values, **tables, "notes": list(held.notes)})
        return
    cells = [(key, str(value), origin, in_language(text, app.spoken)) for key, value, origin, text in rows]
    table(("setting", "value", "from", "what it is"), cells)
    for text in held.notes[len(held.ignored) :]:  # these were printed when the settings were read
        note(f"note: {text}")


@command.command("get")
@click.argument("key", type=click.Choice([*SCALARS]))
@json_option
@pass_app
def get(app: App, *, key: str, as_json: bool) -> None:
    """Print one setting."""
    value, origin = getattr(app.settings, field_of(key)), app.settings.origins[key]
    document({"key": key, "value": value, "origin": origin}) if as_json else lines(str(value))


@command.command("set")
@click.argument("key", type=click.Choice([*SCALARS]))
@click.argument("value")
@user_option
@json_option
@pass_app
def set_(app: App, *, key: str, value: str, user: bool, as_json: bool) -> None:
    """Set KEY to VALUE; comments in the file stay."""
    path = _change(app, key, checked(key, value), user=user)
    document({"key": key, "value": checked(key, value), "path": str(path)}) if as_json else lines(str(path))


@command.command("unset")
@click.argument("key", type=click.Choice([*SCALARS]))
@user_option
@json_option
@pass_app
def unset(app: App, *, key: str, user: bool, as_json: bool) -> None:
    """Remove KEY from the file."""
    path = _change(app, key, None, user=user)
    document({"key": key, "value": None, "path": str(path)}) if as_json else lines(str(path))


@command.command("path")
@json_option
@pass_app
def path_(app: App, *, as_json: bool) -> None:
    """Print the paths of the two settings files, and the tables that only the user's file may have."""
    places = {"project": str(app.root / PROJECT_FILE), "user": str(user_file())}
    if as_json:
        document({**places, "tables": dict(TABLES)})
    else:
        lines([f"{level}: {path}" for level, path in places.items()])
        lines([f"[{name}]  {in_language(text, app.spoken)}" for name, text in TABLES.items()])


def _change(app: App, key: str, value: Any, *, user: bool) -> Path:
    from navigator_kernel.cli.settings_file import changed

    return changed(user_file() if user else app.root / PROJECT_FILE, key.split("."), value, app.root)
