"""Adds, lists and removes examples: messages that the person confirmed for a skill."""

from __future__ import annotations

from typing import TYPE_CHECKING

from navigator_kernel.cli import skill_names
from navigator_kernel.cli.output import document, note, say_lines, table
from navigator_kernel.errors import UsageProblem
from navigator_kernel.text import fold

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App


def taught(app: App, words: str, *, teach: str | None, forget: bool, as_json: bool) -> None:
    """Teaches the skill `teach` the message `words`, or forgets or shows the lessons of the skill `words`, or all."""
    if teach is not None:
        _teach(app, teach, words, as_json=as_json)
    elif forget:
        _forget(app, words.strip(), as_json=as_json)
    else:
        _show(app, words.strip(), as_json=as_json)


def _teach(app: App, name: str, text: str, *, as_json: bool) -> None:
    if not text.strip():
        raise UsageProblem("there is no message", hint='navigator route "review this code" --teach code-review')
    skill = skill_names.named(app.bare.catalogue, name)
    new = app.bare.lessons.learn(skill.name, text)
    if as_json:
        document({"skill": skill.name, "learned": new})
    else:
        say_lines(f"learned for {skill.name}" if new else f"nothing new for {skill.name}")


def _forget(app: App, name: str, *, as_json: bool) -> None:
    count = app.bare.lessons.forget(name)
    if as_json:
        document({"skill": name or None, "forgotten": count})
    else:
        say_lines(f"forgot {count} for {name}" if name else f"forgot {count}")


def _show(app: App, name: str, *, as_json: bool) -> None:
    """Shows the lessons, newest first."""
    held = app.bare.lessons.all()
    wanted = {skill: texts for skill, texts in held.items() if not name or fold(skill) == fold(name)}
    count = sum(map(len, wanted.values()))
    if as_json:
        document({"count": count, "lessons": {skill: list(texts) for skill, texts in wanted.items()}})
    elif count:
        table(("skill", "message"), [(skill, text) for skill, texts in wanted.items() for text in texts])
    else:
        note("nothing was learned")
