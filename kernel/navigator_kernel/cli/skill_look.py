"""The skill commands that look: list, search, info and verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from navigator_kernel.assembly.lifecycle import open_lifecycle
from navigator_kernel.cli.app import App, json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.skill_work import busy, reach_options, user_option


@click.command("list")
@user_option
@json_option
@pass_app
def listed(app: App, *, user: bool, as_json: bool) -> None:
    """List installed skills."""
    found = open_lifecycle(app.root).perform("list", {"user": user})
    if as_json:
        document(found)
        return
    _skills(found["skills"])
    for problem in found["problems"]:
        note(f"{problem['level']}: {problem['code']}: {problem['path']}: {problem['message']}")


@click.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many are shown.")
@click.option("--remote", is_flag=True, help="Also the catalogues that your settings name.")
@click.option("--offline", is_flag=True, help="Ask no network.")
@user_option
@json_option
@pass_app
def search(app: App, /, *, words: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Find skills by WORDS, with the documented score."""
    catalogues = app.settings.catalogues if given["remote"] else ()
    params = {"query": " ".join(words), "catalogues": catalogues, **given}
    found = busy("searching", app, "search", params, quiet=as_json)
    if as_json:
        document(found)
        return
    rows = [(str(one["score"]), one["name"], one["reason"], one["description"]) for one in found["skills"]]
    table(("score", "skill", "by", "description"), rows)
    if "remote" in found:
        offered = [(str(one["score"]), one["name"], one["reason"], one["install"]) for one in found["remote"]]
        table(("score", "offered", "by", "to install it"), offered)
    note(f"{found['count']} found; scope: installed skills, docs/skills-mapping.md has more")


@click.command("info")
@click.argument("source")
@click.option("--skill", "skills", multiple=True, help="Only this skill of the source; may be repeated.")
@click.option("--ref", help="Branch, tag or commit.")
@reach_options
@json_option
@pass_app
def info(app: App, /, *, source: str, skills: tuple[str, ...], ref: str | None, as_json: bool, **reach: bool) -> None:
    """Tell what is in SOURCE (a repository, folder or URL), or about an installed skill of that name."""
    params = {"source": source, "skill": list(skills), "ref": ref, **reach}
    found = busy(f"reading {source}", app, "info", params, quiet=as_json)
    if as_json:
        document(found)
    elif "skills" in found:
        _skills(found["skills"])
        note(f"{len(found['skills'])} skills; install one with: navigator skill install {source} --skill NAME")
    else:
        lines([f"{key}: {_short(value)}" for key, value in found.items() if value not in (None, "", [], ())])


@click.command("verify")
@click.argument("name", required=False)
@user_option
@json_option
@pass_app
def verify(app: App, *, name: str | None, user: bool, as_json: bool) -> None:
    """Compare installed skills with their receipts; exit code 6 names what changed."""
    found = open_lifecycle(app.root).perform("verify", {"name": name, "user": user})
    document(found) if as_json else lines(f"{found['count']} skills are as they were installed")


def _skills(skills: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (one["name"], str(one.get("kind", "")), str(one.get("status") or one.get("folder") or ""), one["description"])
        for one in skills
    ]
    table(("skill", "kind", "from", "description"), rows)


def _short(value: Any) -> str:
    from navigator_kernel.text import shorten

    return shorten(", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value), 200)


COMMANDS: Mapping[str, click.Command] = {"info": info, "list": listed, "search": search, "verify": verify}
