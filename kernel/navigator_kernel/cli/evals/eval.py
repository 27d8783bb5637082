"""`navigator eval`: checks that messages reach the skills that their evals expect, offline and without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.evals.cases import gathered, routed
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.errors import NotFound
from navigator_kernel.evals.cases import Problem
from navigator_kernel.text import shorten

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.evals.cases import EvalCase
    from navigator_kernel.evals.score import Outcome
    from navigator_kernel.values.resource import SkillDef

SHARE = click.FloatRange(0, 1)
HOSTS = ("claude-code", "codex")


class Limits(NamedTuple):
    """The required scores; `evals` is the level for a skill with too few evals."""

    precision: float
    recall: float
    served: float
    overlap: float
    hosts: tuple[str, ...]
    budget: int | None
    evals: str


@click.command("eval")
@click.argument("skills", nargs=-1)
@click.option("--min-precision", type=SHARE, default=0.9, show_default=True, help="Lowest precision of a skill.")
@click.option("--min-recall", type=SHARE, default=0.9, show_default=True, help="Lowest recall of a skill.")
@click.option("--min-served", type=SHARE, default=0.9, show_default=True, help="Lowest share taken or offered.")
@click.option("--max-overlap", type=SHARE, default=0.8, show_default=True, help="Highest overlap of two descriptions.")
@click.option("--host", "hosts", type=click.Choice(HOSTS), multiple=True, help="Fail if this host would cut the list.")
@click.option("--budget", type=click.IntRange(1), help="Fail if the catalogue has more characters.")
@click.option("--require-evals", is_flag=True, help="A skill without evals of both kinds is an error.")
@click.option("--against", metavar="KEY=VALUE|SKILL.md", help="Compare with a setting, or with a draft of a skill.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Also write JUnit XML to this file.")
@json_option
@pass_app
def command(
    app: App,
    *,
    skills: Sequence[str],
    min_precision: float,
    min_recall: float,
    min_served: float,
    max_overlap: float,
    hosts: Sequence[str],
    budget: int | None,
    require_evals: bool,
    against: str | None,
    junit: Path | None,
    as_json: bool,
) -> int:
    """Run the evals of SKILLS, or of all and of the project's evals/ folder, and look at their descriptions.

    Exit code 1 where a threshold is missed or something is wrong. Nothing is run and no model is asked. With --against
    every message is routed twice, and the messages that change are listed; exit code 1 where one gets worse.
    """
    project = app.bare
    every = [skill for skill in project.catalogue.list_resources() if skill.type == "skill"]
    if missing := [name for name in skills if name not in {skill.name for skill in every}]:
        raise NotFound(f"no skill is called {missing[0]!r}", hint="navigator skill list")
    chosen = [skill for skill in every if not skills or skill.name in skills]
    cases, problems = gathered(app, project, chosen, whole=not skills)
    found = routed(cases, project)
    if against is not None:
        return _compared(app, project, found, against, as_json=as_json)
    level = "error" if require_evals else "warning"
    limits = Limits(min_precision, min_recall, min_served, max_overlap, tuple(hosts), budget, level)
    body = _judged(found, [*problems, *_linted(cases, chosen, every, limits)], every, limits)
    if junit is not None:
        _written(junit, found, body["problems"])
    if as_json:
        document(body)
    else:
        _show(body)
    return int(body["exit_code"])


def _linted(
    cases: Sequence[EvalCase], chosen: Sequence[SkillDef], every: Sequence[SkillDef], limits: Limits
) -> Iterator[Problem]:
    """The problems of descriptions and evals."""
    from navigator_kernel.evals import lint

    yield from lint.of_descriptions(chosen)
    yield from lint.of_names(every)
    yield from lint.of_evals(cases, every)
    yield from lint.without_evals(cases, chosen, limits.evals)
    names = {skill.name for skill in chosen}
    for pair in lint.overlaps(every, limits.overlap):
        if pair.likeness > limits.overlap and names & {pair.one, pair.other}:
            message = f"its description is {pair.likeness:.0%} that of {pair.other!r}"
            yield Problem("overlap", "error", pair.one, message)


def _judged(
    found: Sequence[Outcome], problems: list[Problem], every: Sequence[SkillDef], limits: Limits
) -> dict[str, Any]:
    """The result as `--json` prints it."""
    from navigator_kernel.evals import lint
    from navigator_kernel.evals.score import confusions, score

    whole = score(found)
    room = {**lint.BUDGETS, **({} if limits.budget is None else {"budget": lint.Budget(limits.budget, lint.LONG)})}
    budgets = {name: {"used": lint.used(every, held.each), "limit": held.total} for name, held in room.items()}
    for name in (*limits.hosts, *(("budget",) if limits.budget is not None else ())):
        held = budgets[name]
        if held["used"] > held["limit"]:
            message = f"the catalogue has {held['used']} characters, {name} shows {held['limit']}"
            problems.append(Problem("over-budget", "error", "", message))
    for what in ("precision", "recall", "served"):
        value, limit = getattr(whole, what), getattr(limits, what)
        if value < limit:
            problems.append(Problem(f"{what}-low", "error", "", f"{what} is {value:.3f}, under {limit:g}"))
    owners = sorted({one.case.skill for one in found})
    by_skill = {name: [one for one in found if one.case.skill == name] for name in owners}
    return {
        "exit_code": 1 if any(problem.level == "error" for problem in problems) else 0,
        **whole.to_dict(),
        "skills": [{"skill": name or "(project)", **score(held).to_dict()} for name, held in by_skill.items()],
        "failures": [one.to_dict() for one in found if not one.passed],
        "confusions": confusions(found),
        "overlaps": [pair._asdict() for pair in lint.overlaps(every)],
        "budgets": budgets,
        "problems": [problem._asdict() for problem in problems],
    }


def _written(file: Path, found: Sequence[Outcome], problems: Sequence[Mapping[str, Any]]) -> None:
    from navigator_kernel.evals.score import junit_xml

    place = Path.cwd() / file
    text = junit_xml(found, [Problem(**problem) for problem in problems])
    FolderWriter([place.parent]).write(place, text.encode("utf-8", "replace"))


def _compared(app: App, project: Project, found: Sequence[Outcome], against: str, *, as_json: bool) -> int:
    from navigator_kernel.cli.evals.against import compared

    return compared(app, project, found, against, as_json=as_json)


def _show(body: Mapping[str, Any]) -> None:
    from navigator_kernel.evals.score import FIGURES

    rows = [
        (str(one["skill"]), f"{one['passed']}/{one['cases']}", f"{one['precision']:.2f}", f"{one['recall']:.2f}")
        for one in body["skills"]
    ]
    if rows:
        table(("skill", "passed", "precision", "recall"), rows)
    for one in body["failures"]:
        asked = f" (asked about {', '.join(one['asked'])})" if one["asked"] else ""
        wanted, chosen = one["wanted"] or f"not {one['skill']}", one["chosen"] or "nobody"
        whose, query = one["skill"] or one["file"], shorten(one["query"], 80)
        lines(f"{whose}: {query!r} wanted {wanted}, went to {chosen}{asked}")
    for one in body["problems"]:
        lines(f"{one['level']}: {one['code']}: {': '.join(part for part in (one['skill'], one['message']) if part)}")
    for one in body["overlaps"][:10]:
        note(f"{one['one']} and {one['other']} have similar descriptions: {one['likeness']:.0%}")
    for host, held in body["budgets"].items():
        note(f"{host}: {held['used']} of {held['limit']} characters")
    figures = ", ".join(f"{name.replace('_', ' ')} {body[name]:.3f}" for name in FIGURES)
    note(f"{body['passed']} of {body['cases']} evals passed, {figures}")
