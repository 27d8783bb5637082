"""`navigator eval --against`: lists the messages that another setting or description would route differently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.cli.evals.cases import routed
from navigator_kernel.cli.output import document, lines, note, table
from navigator_kernel.config.settings import checked, field_of
from navigator_kernel.errors import NotFound, UsageProblem
from navigator_kernel.evals.score import FIGURES, Outcome, better, score
from navigator_kernel.text import shorten

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.cli.project import App
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.evals.cases import EvalCase
    from navigator_kernel.values.resource import SkillDef

LIMIT = 1024 * 1024  # bytes of a draft


def compared(app: App, project: Project, before: Sequence[Outcome], against: str, *, as_json: bool) -> int:
    """Prints both scores and the messages that change; returns 1 if one of them gets worse."""
    settings, skills = _other(app, project, against)
    with TemporaryDirectory(prefix="navigator-") as folder:
        after = tried(project, [one.case for one in before], settings, skills, Path(folder))
    body = difference(before, after)
    worse = any(one["change"] == "worse" for one in body["changes"])
    body = {"exit_code": int(worse), "against": against, **body}
    document(body) if as_json else show(body)
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
    from navigator_kernel.bootstrap.trials import open_trial

    return routed(cases, open_trial(project, settings, folder, skills))


def difference(before: Sequence[Outcome], after: Sequence[Outcome]) -> dict[str, Any]:
    """`{before, after, changes: [{query, wanted, before, after, change}]}`; `change` is better, worse or other."""
    changes = []
    for one, other in zip(before, after, strict=True):
        if one.choice == other.choice:
            continue
        wanted = one.case.wanted or f"not {one.case.skill}"
        went = {"before": _went(one), "after": _went(other), "change": better(one, other)}
        changes.append({"query": one.case.query, "wanted": wanted, **went})
    return {"before": score(before).to_dict(), "after": score(after).to_dict(), "changes": changes}


def show(body: Mapping[str, Any]) -> None:
    rows = [(name.replace("_", " "), *(f"{body[when][name]:.3f}" for when in ("before", "after"))) for name in FIGURES]
    table(("", "now", "then"), rows)
    for one in sorted(body["changes"], key=lambda one: ("worse", "better", "other").index(one["change"])):
        query = shorten(one["query"], 80)
        lines(f"{one['change']}: {query!r} wanted {one['wanted']}: {one['before']} → {one['after']}")
    note(f"{len(body['changes'])} of {body['before']['cases']} messages change")


def _went(one: Outcome) -> str:
    if one.choice.skill:
        return one.choice.skill
    return f"offers {', '.join(one.choice.asked)}" if one.choice.asked else "nothing"


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
    from navigator_kernel.skills.formats.manifest import read_manifest

    found = read_manifest(read_bounded(path, LIMIT), path=path, folder=path.parent)
    held = project.catalogue.find(found.name)
    if held is None:
        raise UsageProblem(f"no skill is called {found.name!r}", hint="give the draft the name of an installed skill")
    return replace(found, path=held.path, folder=held.folder, level=held.level, enabled=held.enabled)
