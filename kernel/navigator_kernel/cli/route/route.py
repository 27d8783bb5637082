"""`navigator route`: shows what a message would be routed to, without running it or loading plugins."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, note, say_lines, table
from navigator_kernel.cli.project import App
from navigator_kernel.cli.route.routed import SHOWN, routed, show
from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import fold, numbered


@click.command("route")
@click.argument("words", nargs=-1)
@click.option("-k", type=click.IntRange(1, 100), default=SHOWN, show_default=True, help="Number of candidates to show.")
@click.option("--explain", is_flag=True, help="Show the parts of each candidate's score.")
@click.option("--teach", metavar="NAME", help="Keep WORDS as an example of the skill NAME.")
@click.option("--lessons", is_flag=True, help="List the learned examples of the skill WORDS, or all.")
@click.option("--forget", is_flag=True, help="Forget the learned examples of the skill WORDS, or all.")
@click.option("--resident", is_flag=True, help="Ask the project's resident process first, and start it if needed.")
@click.option(
    "--index", is_flag=True, help="Only build the index of the skills, so that no message has to wait for it."
)
@click.option("--serve", is_flag=True, help="Run as the resident process, which answers on a socket.")
@click.option(
    "--idle",
    type=click.IntRange(1, 604_800),
    default=900,
    show_default=True,
    help="Seconds without a question after which --serve ends.",
)
@json_option
@pass_app
def command(
    app: App,
    *,
    words: tuple[str, ...],
    k: int,
    explain: bool,
    teach: str | None,
    lessons: bool,
    forget: bool,
    resident: bool,
    index: bool,
    serve: bool,
    idle: int,
    as_json: bool,
) -> None:
    """Say what WORDS would be routed to, and why."""
    text = " ".join(words)
    if (teach is not None) + lessons + forget + resident + index + serve > 1:
        several = "--teach, --lessons, --forget, --resident, --index and --serve do not go together"
        raise UsageProblem(several, hint="use one of them")
    if teach is not None or lessons or forget:
        taught(app, text, teach=teach, forget=forget, as_json=as_json)
        return
    if serve:
        _stay(app, text, idle, as_json=as_json)
        return
    if index:
        if text:
            raise UsageProblem("--index takes no message", hint=f"navigator route {shlex.quote(text)}")
        routed(app, "which skill is meant", 1)  # makes the index, as any message does that comes first
        count = sum(one.type == "skill" for one in app.bare.catalogue.list_resources())
        if as_json:
            document({"skills": count, "exit_code": 0})
        else:
            note(f"{numbered(count, 'skill')} in the index")
        return
    routing = _from_resident(app, text, k) if resident else None
    routing = routing or routed(app, text, k)
    if as_json:
        document(routing)
    else:
        show(routing, explain=explain)


def _from_resident(app: App, text: str, k: int) -> dict[str, Any] | None:
    """The route from the resident process, or None if it does not answer."""
    from navigator_kernel.daemon.client import ask

    return ask(text, str(app.root), k, start=True) if text.strip() and not any(app.flags.values()) else None


def _stay(app: App, text: str, idle: int, *, as_json: bool) -> None:
    from navigator_kernel.cli.route.resident import serve

    if text:
        raise UsageProblem("--serve takes no message", hint=f"navigator route --resident {shlex.quote(text)}")

    def ready(path: Path) -> None:
        if as_json:
            document({"socket": str(path)})
        else:
            note(f"answering at {path}")
        sys.stdout.flush()

    serve(app, routed, idle=idle, ready=ready)


# Adds, lists and removes examples: messages that the person confirmed for a skill.


def taught(app: App, words: str, *, teach: str | None, forget: bool, as_json: bool) -> None:
    """Teaches the skill `teach` the message `words`, or forgets or shows the lessons of the skill `words`, or all."""
    if teach is not None:
        if not words.strip():
            raise UsageProblem("there is no message", hint='navigator route "review this code" --teach code-review')
        skill = skill_names.named(app.bare.catalogue, teach)
        new = app.bare.lessons.learn(skill.name, words)
        if as_json:
            document({"skill": skill.name, "learned": new})
        else:
            say_lines(f"learned for {skill.name}" if new else f"nothing new for {skill.name}")
    elif forget:
        name = words.strip()
        count = app.bare.lessons.forget(name)
        if as_json:
            document({"skill": name or None, "forgotten": count})
        else:
            say_lines(f"forgot {count} for {name}" if name else f"forgot {count}")
    else:
        name = words.strip()
        held = app.bare.lessons.all()
        wanted = {skill: texts for skill, texts in held.items() if not name or fold(skill) == fold(name)}
        count = sum(map(len, wanted.values()))
        if as_json:
            document({"count": count, "lessons": {skill: list(texts) for skill, texts in wanted.items()}})
        elif count:
            table(("skill", "message"), [(skill, text) for skill, texts in wanted.items() for text in texts])
        else:
            note("nothing was learned")
