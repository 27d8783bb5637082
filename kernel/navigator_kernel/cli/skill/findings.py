"""Shows findings, and asks the person to accept a block."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import click

from navigator_kernel.cli.output import note
from navigator_kernel.cli.skill.work import busy
from navigator_kernel.errors import Refused
from navigator_kernel.language.wording import say
from navigator_kernel.skills.scan.finding import told
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
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
