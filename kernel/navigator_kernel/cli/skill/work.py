"""Shared parts of the skill commands: options and progress."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from navigator_kernel.bootstrap.lifecycle import open_lifecycle
from navigator_kernel.cli.output import note
from navigator_kernel.errors import Refused
from navigator_kernel.language.wording import say
from navigator_kernel.skills.scan.finding import told
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.skills.commands.lifecycle import Lifecycle
    from navigator_kernel.text import Language


def shown(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> list[str]:
    """Findings as lines, worst first; notes only on request."""
    order = {"error": 0, "warning": 1, "note": 2}
    chosen = sorted((one for one in findings if notes or one["level"] != "note"), key=lambda one: order[one["level"]])
    return [told(one, skill) for one in chosen]


def note_lines(skill: str, findings: Iterable[Mapping[str, Any]], *, notes: bool) -> None:
    for line in shown(skill, findings, notes=notes):
        note(line)


def accepting(
    app: App, operation: str, params: Mapping[str, Any], *, quiet: bool, ask: bool = True
) -> Mapping[str, Any]:
    """The answer of `busy`. If `ask` is true, the person is asked at a terminal about each block, rule by rule, and
    what they accept is tried again."""
    ask = ask and not quiet and sys.stdin.isatty() and sys.stderr.isatty()
    given, asked, came = list(params.get("accept") or ()), set[str](), set[str]()
    while True:
        problem: Refused | None = None
        found: Mapping[str, Any] = {}
        try:
            found = busy(app, operation, {**params, "accept": given}, quiet=quiet)
        except Refused as error:
            problem = error
        held = problem.data if problem else found
        blocked = [one for one in held.get("left_out") or [held] if one.get("blocked_by") and one["skill"] not in asked]
        asked |= {one["skill"] for one in blocked}
        accepted = [rule for one in blocked for rule in _accepted(one, app.spoken)] if ask else []
        if not accepted:
            if problem:
                raise problem
            return _all_that_came(found, came)
        came |= {one["name"] for one in found.get("skills", ()) if one.get("changed")}
        given += accepted


def _all_that_came(found: Mapping[str, Any], earlier: Collection[str]) -> Mapping[str, Any]:
    """The last answer, with the skills that were installed before the person was asked."""
    if not earlier:
        return found
    skills = [{**one, "changed": one["changed"] or one["name"] in earlier} for one in found["skills"]]
    changed = sum(one["changed"] for one in skills)
    counts = {**found["counts"], "installed": changed, "there": len(skills) - changed}
    return {**found, "changed": bool(changed), "counts": counts, "skills": skills}


def _accepted(blocked: Mapping[str, Any], language: Language) -> list[str]:
    """The rules that block, if the person accepts all of them."""
    rules = list(blocked["blocked_by"])
    if not all(_accepts(blocked, rule, language) for rule in rules):
        return []
    return [f"{blocked['skill']}:{rule}" for rule in rules]


def _accepts(blocked: Mapping[str, Any], rule: str, language: Language) -> bool:
    """Whether the person types the name of the rule."""
    skill = blocked["skill"]
    for finding in blocked["findings"]:
        if finding["level"] == "error" and finding["code"] == rule:
            note(told(finding, skill))
    ask = clean(say("install.accept", language, rule=rule, skill=skill), lines=False)
    return bool(click.prompt(ask, default="", show_default=False, err=True, prompt_suffix="").strip() == rule)


F = TypeVar("F", bound=Callable[..., Any])

_TARGETS = click.Choice(["claude", "agents"])
dry_option = click.option("--dry-run", is_flag=True, help="Only show what would happen.")


def accept_option(command: F) -> F:
    text = "Install despite this rule of the scanner: RULE or NAME:RULE; may be repeated."
    return click.option("--accept", multiple=True, metavar="RULE", help=text)(command)


def verbose_option(command: F) -> F:
    text = "A line for every skill and finding, notes and what is left out, too."
    return click.option("-v", "--verbose", is_flag=True, help=text)(command)


def place_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on one place."""
    text = "The folder: .claude/skills (default) or .agents/skills."
    return _user(click.option("--target", type=_TARGETS, help=text)(command))


def filter_options(command: F) -> F:
    """Adds `--user` and `--target` to a command that works on all places."""
    return _user(click.option("--target", type=_TARGETS, help="Only .claude/skills, or only .agents/skills.")(command))


def reach_options(command: F) -> F:
    """Adds `--offline` and `--auth`."""
    offline = click.option("--offline", is_flag=True, help="Do not use the network, only what was fetched before.")
    auth = click.option("--auth", is_flag=True, help="Let git use your own keys and credentials for this host.")
    return offline(auth(command))


def _user(command: F) -> F:
    return click.option("--user", is_flag=True, help="Your own skills instead of the project's.")(command)


def busy(app: App, operation: str, params: Mapping[str, Any], *, quiet: bool) -> Mapping[str, Any]:
    """Runs the operation and returns its answer; on a terminal it shows a spinner and how many skills are done."""
    lifecycle = open_lifecycle(app.root)
    if quiet or not sys.stderr.isatty():
        return lifecycle.perform(operation, params)
    return _with_spinner(app, lifecycle, operation, params)


def _with_spinner(app: App, lifecycle: Lifecycle, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    from rich.console import Console
    from rich.text import Text

    from navigator_kernel.language.wording import say

    what = say(f"busy.{operation}", app.spoken, source=params.get("source") or "")

    def line(text: str) -> Text:
        return Text(clean(text, lines=False), no_wrap=True, overflow="ellipsis")

    with Console(stderr=True).status(line(what)) as shown:

        def told(done: int, of: int) -> None:
            if of > 1:
                shown.update(line(f"{what}: {done}/{of}"))

        lifecycle.deps = lifecycle.deps._replace(progress=told)
        return lifecycle.perform(operation, params)
