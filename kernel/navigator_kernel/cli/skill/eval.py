"""`navigator eval`: checks that messages reach the skills that their evals expect, offline and without a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter, read_bounded
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import Settings, checked, field_of
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.evals.cases import EvalCase, Problem, cases_in
from navigator_kernel.evals.score import FIGURES, Choice, Outcome, better, confusions, junit_xml, outcomes, score
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import BETWEEN, COLON, fixes, say
from navigator_kernel.routing.cascade import CascadeRouter
from navigator_kernel.routing.index import RoutingIndex
from navigator_kernel.routing.meaning import SemanticRanker
from navigator_kernel.skills.formats.manifest import read_manifest
from navigator_kernel.text import Language, numbered, shorten
from navigator_kernel.values.request import FileReference, Message, Session
from navigator_kernel.values.route import NeedClarification

if TYPE_CHECKING:
    from datetime import date

    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.ports import Catalogue
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
@click.option("--all", "everything", is_flag=True, help="Judge the shipped skills, too.")
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
    everything: bool,
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
    """Run the evals of SKILLS, or of all skills but the shipped ones and of evals/, and look at descriptions.

    Exit code 1 where a threshold is missed or something is wrong. Nothing is run and no model is asked. With --against
    every message is routed twice, and the messages that change are listed; exit code 1 where one gets worse.
    """
    project = app.bare
    every = [skill for skill in project.catalogue.list_resources() if skill.type == "skill"]
    if missing := [name for name in skills if name not in {skill.name for skill in every}]:
        raise NotFound(f"no skill is called {missing[0]!r}", hint="navigator skill list")
    whole = everything or against is not None
    own = [skill for skill in every if skill.name in skills or whole or not project.catalogue.is_shipped(skill)]
    chosen = [skill for skill in own if not skills or skill.name in skills]
    cases, problems = gathered(app, project, chosen, whole=not skills)
    found = routed(cases, project)
    if against is not None:
        return compared(app, project, found, against, as_json=as_json)
    level = "error" if require_evals else "warning"
    limits = Limits(min_precision, min_recall, min_served, max_overlap, tuple(hosts), budget, level)
    body = _judged(found, [*problems, *_linted(cases, chosen, every, limits)], every, limits)
    if junit is not None:
        text = junit_xml(found, [Problem(**problem) for problem in body["problems"]])
        FolderWriter([(Path.cwd() / junit).parent]).write(Path.cwd() / junit, text.encode("utf-8", "replace"))
    if as_json:
        document(body)
    else:
        _show(body, app.spoken)
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


def _show(body: Mapping[str, Any], language: Language) -> None:
    rows = [
        (str(one["skill"]), f"{one['passed']}/{one['cases']}", f"{one['precision']:.2f}", f"{one['recall']:.2f}")
        for one in body["skills"]
    ]
    if rows:
        table(("skill", "passed", "precision", "recall"), rows)
    for one in body["failures"]:
        names = BETWEEN[language].join(one["asked"])
        asked = say("eval.asked", language, names=names) if names else ""
        wanted = one["wanted"] or say("eval.not", language, skill=one["skill"])
        chosen, query = one["chosen"] or say("eval.nobody", language), repr(shorten(one["query"], 80))
        whose = one["skill"] or one["file"]
        lines([say("eval.went", language, whose=whose, query=query, wanted=wanted, chosen=chosen) + asked])
    for one in body["problems"]:
        message = in_language(one["message"], language)
        whose = f"{one['skill']}:{one['line']}" if one["line"] else one["skill"]
        told = ": ".join(part for part in (one["code"], whose, message) if part)
        lines([f"{say('level.' + one['level'], language)}{COLON[language]}{told}"])
    for fix in fixes((one["code"] for one in body["problems"]), language):
        note(fix)
    for one in body["overlaps"][:10]:
        note(f"{one['one']} and {one['other']} have similar descriptions: {one['likeness']:.0%}")
    for host, held in body["budgets"].items():
        note(f"{host}: {held['used']} of {numbered(held['limit'], 'character')}")
    figures = BETWEEN[language].join(f"{say('figure.' + name, language)} {body[name]:.3f}" for name in FIGURES)
    passed = f"{body['passed']} of {numbered(body['cases'], 'eval')} passed, {figures}"
    note(passed if body["cases"] else "there are no evals")


# Routes the messages of evals.


def gathered(
    app: App, project: Project, chosen: Sequence[SkillDef], *, whole: bool
) -> tuple[list[EvalCase], list[Problem]]:
    """The evals of the skills and, with `whole`, of the project; and the problems in their files."""
    from navigator_kernel.skills.files import form_findings

    cases: list[EvalCase] = []
    problems: list[Problem] = []
    for skill in chosen:
        folder = skill.folder
        if folder is not None:
            held, wrong = cases_in(skill.name, folder / "evals")
            cases += held
            problems += wrong
        for one in form_findings(skill.path, strict=False):
            if one.code == "trigger-form" and one.path.startswith("evals/"):
                continue  # `cases_in` has it
            problems.append(Problem(one.code, one.level, skill.name, one.message, str(skill.path), one.line))
    if whole:
        held, wrong = cases_in("", app.root / "evals")
        cases += held
        problems += wrong
        for one in project.catalogue.diagnostics():
            if one.level == "error":
                problems.append(Problem(one.code, "error", "", one.message, str(one.path)))
    return cases, problems


def routed(cases: Sequence[EvalCase], project: Project) -> list[Outcome]:
    """Routes each message like the first stages of a turn; files that it names count as existing."""
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.turn.understand import decide, understand_locally

    files = _AnyFile()

    def choose(query: str) -> Choice:
        request = preprocess(Message(text=query), files)
        decision = decide(understand_locally(request, Session(id="eval"), project.router), request, project.catalogue)
        if decision.kind == "skills":
            return Choice(skill=decision.entity or "")
        asked = decision.result.options if isinstance(decision.result, NeedClarification) else ()
        return Choice(asked=tuple(asked))

    return outcomes(cases, choose)


class _AnyFile:
    """Implements `ports.FileReader`; every name that looks like a file is an empty file."""

    def read(self, written: str) -> tuple[Path, str]:
        if "/" not in written and "." not in written:
            raise NotFound(f"{written!r} is not a file", hint="")
        return Path(written), ""

    def find(self, text: str, today: date, whole: str = "") -> tuple[FileReference, ...]:  # noqa: ARG002 - the port
        return ()

    def people(self) -> tuple[str, ...]:
        return ()


# `navigator eval --against`: lists the messages that another setting or description would route differently.

LIMIT = 1024 * 1024  # bytes of a draft


def compared(app: App, project: Project, before: Sequence[Outcome], against: str, *, as_json: bool) -> int:
    """Prints both scores and the messages that change; returns 1 if one of them gets worse."""
    settings, skills = _other(app, project, against)
    with TemporaryDirectory(prefix="navigator-") as folder:
        after = tried(project, [one.case for one in before], settings, skills, Path(folder))
    body = difference(before, after, "en" if as_json else app.spoken)
    worse = any(one["change"] == "worse" for one in body["changes"])
    body = {"exit_code": int(worse), "against": against, **body}
    document(body) if as_json else show(body, app.spoken)
    return int(worse)


def tried(
    project: Project,
    cases: Sequence[EvalCase],
    settings: Settings,
    skills: Sequence[SkillDef],
    folder: Path,
) -> list[Outcome]:
    """Routes the messages with these settings, and with these skills in place of the installed ones of the same names;
    the index is in `folder`."""
    # The project with `settings`, and `skills` instead of those with the same names; `folder` is for the index
    trial = project.with_settings(settings)
    catalogue = cast("Any", Replaced(project.catalogue, skills))
    index = RoutingIndex(folder, FolderWriter([folder]), trial.encoder)
    meaning = SemanticRanker(index, boldness=settings.boldness, lessons=trial.lessons.known)
    trial.catalogue, trial.meaning = catalogue, meaning
    own = project.router
    trial.router = replace(own, catalogue=catalogue, meaning=meaning) if isinstance(own, CascadeRouter) else own
    return routed(cases, trial)


def difference(before: Sequence[Outcome], after: Sequence[Outcome], language: Language = "en") -> dict[str, Any]:
    """`{before, after, changes: [{query, wanted, before, after, change}]}`; `change` is better, worse or other."""
    changes = []
    for one, other in zip(before, after, strict=True):
        if one.choice == other.choice:
            continue
        wanted = one.case.wanted or say("eval.not", language, skill=one.case.skill)
        went = {"before": _went(one, language), "after": _went(other, language), "change": better(one, other)}
        changes.append({"query": one.case.query, "wanted": wanted, **went})
    return {"before": score(before).to_dict(), "after": score(after).to_dict(), "changes": changes}


def show(body: Mapping[str, Any], language: Language) -> None:
    rows = [
        (say(f"figure.{name}", language), *(f"{body[when][name]:.3f}" for when in ("before", "after")))
        for name in FIGURES
    ]
    table(("", "now", "then"), rows)
    for one in sorted(body["changes"], key=lambda one: ("worse", "better", "other").index(one["change"])):
        change, query = say(f"change.{one['change']}", language), repr(shorten(one["query"], 80))
        lines([say("eval.changed", language, **{**one, "change": change, "query": query})])
    note(f"of {numbered(body['before']['cases'], 'message')}, {len(body['changes'])} would be routed differently")


def _went(one: Outcome, language: Language) -> str:
    if one.choice.skill or not one.choice.asked:
        return one.choice.skill or say("eval.nothing", language)
    return say("eval.offers", language, names=BETWEEN[language].join(one.choice.asked))


def _other(app: App, project: Project, against: str) -> tuple[Settings, Sequence[SkillDef]]:
    """The settings to use and the skills to replace. UsageProblem or NotFound if `against` is neither."""
    key, mark, value = against.partition("=")
    path = Path.cwd() / against
    if mark and not path.exists():
        return replace(app.settings, **{field_of(key): checked(key, value)}), ()
    path = path / "SKILL.md" if path.is_dir() else path
    if not path.is_file():
        raise NotFound(f"no file is called {against!r}", hint="KEY=VALUE for a setting, or a draft's SKILL.md")
    return app.settings, [draft(project, path)]


def draft(project: Project, path: Path) -> SkillDef:
    """The skill in the file at `path`, with the place of the installed skill of the same name."""
    found = read_manifest(read_bounded(path, LIMIT), path=path, folder=path.parent)
    held = project.catalogue.find(found.name)
    if held is None:
        raise UsageProblem(f"no skill is called {found.name!r}", hint="give the draft the name of an installed skill")
    return replace(found, path=held.path, folder=held.folder, level=held.level, enabled=held.enabled)


# A router with other settings or with a draft of a skill, which leaves the project's own index unchanged.


class Replaced:
    """A catalogue in which each of `skills` replaces the one with its name."""

    def __init__(self, held: Catalogue, skills: Sequence[SkillDef]) -> None:
        self._held, self._skills = held, {skill.name: skill for skill in skills}

    def list_resources(self, *, enabled_only: bool = True) -> Sequence[SkillDef]:
        found = self._held.list_resources(enabled_only=enabled_only)
        return tuple(self._skills.get(one.name, one) for one in found)

    def find(self, name: str, type: Any = "skill") -> SkillDef | None:
        found = self._held.find(name, type)
        return found if found is None else self._skills.get(found.name, found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._held, name)
