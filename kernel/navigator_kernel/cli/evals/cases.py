"""Routes the messages of evals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.errors import NotFound
from navigator_kernel.evals.cases import Problem, cases_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import date

    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.cli.project import App
    from navigator_kernel.evals.cases import EvalCase
    from navigator_kernel.evals.score import Choice, Outcome
    from navigator_kernel.values.request import FileReference
    from navigator_kernel.values.resource import SkillDef

# Findings of validate --strict that hide a skill from every host; others may be due to a host's own keys
BREACHES = (
    *("frontmatter-missing", "unclosed", "yaml-unquoted", "not-text", "name-missing", "name-odd"),
    *("description-missing", "description-length"),
)


def gathered(
    app: App, project: Project, chosen: Sequence[SkillDef], *, whole: bool
) -> tuple[list[EvalCase], list[Problem]]:
    """The evals of the skills and, with `whole`, of the project; and the problems in their files."""
    from navigator_kernel.skills.formats.validate import validate

    cases: list[EvalCase] = []
    problems: list[Problem] = []
    for skill in chosen:
        folder = skill.folder
        if folder is not None:
            held, wrong = cases_in(skill.name, folder / "evals")
            cases += held
            problems += wrong
        for one in validate(skill.path.read_bytes(), folder.name if folder else "", {}, strict=True):
            if one.code in BREACHES:
                problems.append(Problem(one.code, "error", skill.name, one.message, str(skill.path)))
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
    from navigator_kernel.evals.score import Choice, outcomes
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.turn.understand import decide, understand_locally
    from navigator_kernel.values.request import Message, Session
    from navigator_kernel.values.route import NeedClarification

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

    def find(self, text: str, today: date) -> tuple[FileReference, ...]:  # noqa: ARG002 - as in the port
        return ()
