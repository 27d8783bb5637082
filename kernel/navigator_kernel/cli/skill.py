"""`navigator skill`, which `bin/skill_manager.py` is, too: each command is a typed consent to what it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from navigator_kernel.assembly.lifecycle import open_lifecycle
from navigator_kernel.cli.app import App, json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table

user_option = click.option("--user", is_flag=True, help="The person's own skills instead of the project's.")


@click.group("skill", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.pass_context
def command(ctx: click.Context) -> None:
    """Install, find and remove skills."""
    ctx.ensure_object(App)


@command.command("list")
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


@command.command("search")
@click.argument("words", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="How many are shown.")
@user_option
@json_option
@pass_app
def search(app: App, *, words: tuple[str, ...], limit: int, user: bool, as_json: bool) -> None:
    """Find installed skills by WORDS, with the documented score."""
    found = open_lifecycle(app.root).perform("search", {"query": " ".join(words), "limit": limit, "user": user})
    if as_json:
        document(found)
        return
    rows = [(str(one["score"]), one["name"], one["reason"], one["description"]) for one in found["skills"]]
    table(("score", "skill", "by", "description"), rows)
    note(f"{found['count']} found; scope: installed skills, docs/skills-mapping.md has more")


@command.command("info")
@click.argument("source")
@click.option("--skill", "skills", multiple=True, help="Only this skill of the source; may be repeated.")
@click.option("--ref", help="Branch, tag or commit.")
@json_option
@pass_app
def info(app: App, *, source: str, skills: tuple[str, ...], ref: str | None, as_json: bool) -> None:
    """Tell what is in SOURCE (a repository, folder or URL), or about an installed skill of that name."""
    params = {"source": source, "skill": list(skills), "ref": ref}
    found = _busy(f"reading {source}", app, "info", params, quiet=as_json)
    if as_json:
        document(found)
    elif "skills" in found:
        _skills(found["skills"])
        note(f"{len(found['skills'])} skills; install one with: navigator skill install {source} --skill NAME")
    else:
        lines([f"{key}: {_short(value)}" for key, value in found.items() if value not in (None, "", [], ())])


@command.command("install")
@click.argument("source")
@click.option("--skill", "skills", multiple=True, help="A skill of it, by name, folder or path; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="Every skill of the source.")
@click.option("--ref", help="Branch, tag or commit.")
@user_option
@json_option
@pass_app
def install(
    app: App, *, source: str, skills: tuple[str, ...], everything: bool, ref: str | None, user: bool, as_json: bool
) -> None:
    """Install from SOURCE: owner/repo, a URL, file://…, or a local folder."""
    params = {"source": source, "skill": list(skills), "all": everything, "ref": ref, "user": user}
    found = _busy(f"installing from {source}", app, "install", params, quiet=as_json)
    if as_json:
        document(found)
        return
    for one in found["skills"]:
        state = "installed" if one.get("changed", found["changed"]) else "already there"
        lines(f"{state} {one['name']} ({one.get('commit') or found.get('commit') or 'no commit'})")
        for finding in one.get("findings", ()):
            note(f"{finding['level']}: {finding['code']}: {finding['message']}")


@command.command("uninstall")
@click.argument("names", nargs=-1, required=True)
@user_option
@json_option
@pass_app
def uninstall(app: App, *, names: tuple[str, ...], user: bool, as_json: bool) -> None:
    """Remove skills that were installed here."""
    lifecycle = open_lifecycle(app.root)
    done = [lifecycle.perform("uninstall", {"name": name, "user": user}) for name in names]
    document({"skills": done, "exit_code": 0}) if as_json else lines([f"uninstalled {name}" for name in names])


@command.command("enable")
@click.argument("name")
@json_option
@pass_app
def enable(app: App, *, name: str, as_json: bool) -> None:
    """Offer a skill again."""
    _switched(app, "enable", name, as_json=as_json)


@command.command("disable")
@click.argument("name")
@json_option
@pass_app
def disable(app: App, *, name: str, as_json: bool) -> None:
    """Never offer a skill, without removing it."""
    _switched(app, "disable", name, as_json=as_json)


@command.command("verify")
@click.argument("name", required=False)
@user_option
@json_option
@pass_app
def verify(app: App, *, name: str | None, user: bool, as_json: bool) -> None:
    """Compare installed skills with their receipts; exit code 6 names what changed."""
    found = open_lifecycle(app.root).perform("verify", {"name": name, "user": user})
    document(found) if as_json else lines(f"{found['count']} skills are as they were installed")


@command.command("trust")
@click.argument("name")
@json_option
@pass_app
def trust(app: App, *, name: str, as_json: bool) -> None:
    """Let the command of an installed skill run without asking, as long as not one byte of it changes."""
    subject = _subject(app, name)
    from navigator_kernel.assembly.extensions import open_consents

    open_consents().trust(subject, f"navigator skill trust {name}")
    document({"trusted": subject, "exit_code": 0}) if as_json else lines(f"trusted {subject}")


@command.command("distrust")
@click.argument("name")
@json_option
def distrust(*, name: str, as_json: bool) -> None:
    """Take the trust in a skill back, whatever its bytes are now."""
    from navigator_kernel.assembly.extensions import open_consents

    book = open_consents()
    gone = [subject for subject in book.subjects() if subject.startswith(f"type_a:{name}@")]
    for subject in gone:
        book.distrust(subject)
    document({"distrusted": gone, "exit_code": 0}) if as_json else lines(gone or f"{name} was not trusted")


def _subject(app: App, name: str) -> str:
    """The subject that the gate asks for: name and digest of what is there now."""
    from navigator_kernel.assembly.parts import open_catalogue

    catalogue = open_catalogue(app.root)
    held = catalogue.find(name)
    executor = catalogue.create_executor(held.namespace if held else f"skill:{name}")
    return f"type_a:{executor.skill.name}@{executor.digest}"


def _switched(app: App, operation: str, name: str, *, as_json: bool) -> None:
    found = open_lifecycle(app.root).perform(operation, {"name": name})
    document(found) if as_json else lines(f"{operation}d {found['name']}")


def _busy(what: str, app: App, operation: str, params: Mapping[str, Any], *, quiet: bool) -> Mapping[str, Any]:
    """The answer, with a spinner on a terminal while it takes time."""
    import sys

    lifecycle = open_lifecycle(app.root)
    if quiet or not sys.stderr.isatty():
        return lifecycle.perform(operation, params)
    from rich.console import Console
    from rich.text import Text

    from navigator_kernel.text import clean

    with Console(stderr=True).status(Text(clean(what, lines=False))):
        return lifecycle.perform(operation, params)


def _skills(skills: Sequence[Mapping[str, Any]]) -> None:
    rows = [
        (one["name"], str(one.get("kind", "")), str(one.get("status") or one.get("folder") or ""), one["description"])
        for one in skills
    ]
    table(("skill", "kind", "from", "description"), rows)


def _short(value: Any) -> str:
    from navigator_kernel.text import shorten

    return shorten(", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value), 200)
