"""`navigator log`: the audit log of this project."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note
from navigator_kernel.cli.project import App
from navigator_kernel.text import escape_controls, numbered

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.audit import Entry

_SHOWN = 12  # characters of a digest shown to a person


@click.command("log")
@click.option("--run", help="Only entries of this run.")
@click.option("--event", help="Only entries of this kind, such as refused.")
@click.option("--about", help="Only entries that contain this word.")
@click.option("--last", type=click.IntRange(1), default=50, show_default=True, help="How many are shown.")
@json_option
@pass_app
def command(app: App, *, run: str | None, event: str | None, about: str | None, last: int, as_json: bool) -> None:
    """Show what was allowed, refused, run and written; exit code 6 where the record was changed or cut off."""
    every = app.bare.audit.entries()
    found = [one for one in every if (run is None or one.facts.get("run") == run) and event in (None, one.event)]
    found = [one for one in found if about is None or about in str(one.facts)]
    shown = found[-last:]
    if as_json:
        document({"count": len(found), "whole": True, "entries": [one.to_dict() for one in shown]})
        return
    lines(_line(one) for one in shown)
    note(f"{len(found)} of {numbered(len(every), 'entry')}; none was changed or removed")


def _line(one: Entry) -> str:
    """One line, even if a name in it contains a line break."""
    return f"{escape_controls(one.ts)}  {escape_controls(one.event):<10}  {'  '.join(_shown(one.facts))}"


def _shown(facts: dict[str, Any]) -> Iterable[str]:
    for key, value in facts.items():
        if value in ("", [], {}, None):
            continue
        if isinstance(value, list):
            shown = ", ".join(_item(item) for item in value[:5])
            yield f"{escape_controls(key)}={shown}{' …' if len(value) > 5 else ''}"
        else:
            yield f"{escape_controls(key)}={_item(value)}"


def _item(item: Any) -> str:
    return " ".join(_short(value) for value in item.values() if value) if isinstance(item, dict) else _short(item)


def _short(value: Any) -> str:
    """Shortens digests; --json has them in full."""
    text = escape_controls(str(value))
    head, mark, digest = text.rpartition("sha256:")
    if mark and len(digest) == 64:
        return f"{head}{mark}{digest[:_SHOWN]}"
    return text[:_SHOWN] if len(text) == 64 and text.isalnum() else text
