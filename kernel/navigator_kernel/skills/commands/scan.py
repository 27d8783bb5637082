"""The command `scan`, which checks skills before anybody trusts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.errors import KernelError, UsageProblem
from navigator_kernel.skills.commands.lifecycle import required
from navigator_kernel.text import clean

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.skills.commands.lifecycle import Answer, Lifecycle
    from navigator_kernel.skills.install.inventory import Installed
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.discover import Found
    from navigator_kernel.skills.source.reading import SourceReader

Params = Mapping[str, Any]
UNSAFE = frozenset({"block", "not_scanned"})  # verdicts for which the command exits with 1


def _scan(ground: Lifecycle, params: Params) -> Answer:
    """`{source, skill, ref, all, installed, user, target, offline, auth}` → `{count, blocked, skills: [{name, path,
    verdict, findings}], exit_code}`. `source` is the name of an installed skill, or a source as for `install`; `all`
    means every installed skill, and `installed` excludes sources. Only the cache of repositories is written."""
    ground.deps.prepare()
    if params.get("all"):
        if params.get("source"):
            hint = "name a source, or say --all; every skill of a source is scanned without it"
            raise UsageProblem("--all means the installed skills; it takes no source", hint=hint)
        _refuse_choice(params)
        told = [row for one in ground.found(params)[0] for row in _of_installed(ground, one)]
    elif (held := ground.held(required(params, "source"))) is not None:
        _refuse_choice(params)
        told = list(_of_installed(ground, held))
    elif params.get("installed") or ground.is_unknown(str(params["source"])):
        raise ground.unknown(str(params["source"]))
    else:
        told = list(_of_source(ground, params))
    unsafe = sum(one["verdict"] in UNSAFE for one in told)
    blocked = sum(one["verdict"] == "block" for one in told)
    return {"count": len(told), "blocked": blocked, "skills": told, "exit_code": 1 if unsafe else 0}


def _refuse_choice(params: Params) -> None:
    """Refuses options that choose from a source: an installed skill is one skill at one commit."""
    if params.get("skill") or params.get("ref"):
        raise UsageProblem("--skill and --ref choose from a source", hint="name the source that it came from")


def _of_installed(ground: Lifecycle, one: Installed) -> Iterator[dict[str, Any]]:
    """Scans an installed skill by reading its folder as a source."""
    from navigator_kernel.skills.source.address import parse_source

    skill, shown = one.skill, one.place.told(one.skill.folder or one.skill.path)
    if skill.folder is None:
        yield _row(skill.name, shown, *_of_file(ground, one))
        return
    try:
        judged = list(_judged(ground, parse_source(str(skill.folder), base=ground.root), {}, _topmost))
    except KernelError as error:
        finding = {"code": error.code, "level": "error", "path": "", "message": clean(error.message), "line": None}
        judged = [("", "block", [finding])]
    for _, verdict, findings in judged:
        yield _row(skill.name, shown, verdict, findings)


def _topmost(reader: SourceReader) -> Sequence[Found]:
    """The skill at the top of the folder."""
    return [found for found in reader.find() if not found.folder]


def _of_file(ground: Lifecycle, one: Installed) -> tuple[str, list[dict[str, Any]]]:
    """The verdict and the findings of a skill that is one file."""
    from navigator_kernel.skills.catalog.catalogue import FILE_LIMIT
    from navigator_kernel.skills.install.plans import verdict_of

    scan, path = ground.deps.scan, one.skill.path
    found = None if scan is None else scan(one.skill, {path.name: read_bounded(path, FILE_LIMIT)})
    return verdict_of(found), [finding.to_dict() for finding in found or ()]


def _of_source(ground: Lifecycle, params: Params) -> Iterator[dict[str, Any]]:
    from navigator_kernel.skills.source.discover import select_skills

    source, wanted = ground.sourced(params)

    def chosen(reader: SourceReader) -> Sequence[Found]:
        found = reader.find()
        return select_skills(found, wanted, reader.named, reader.contents) if wanted else found

    for name, verdict, findings in _judged(ground, source, params, chosen):
        yield _row(name.rpartition("/")[2] or source.base_name, f"{source.label} {name}".strip(), verdict, findings)


def _judged(
    ground: Lifecycle, source: Source, params: Params, chosen: Callable[[SourceReader], Sequence[Found]]
) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """`(folder in the source, verdict, findings)` of each skill."""
    from navigator_kernel.skills.install.deps import open_source_tree
    from navigator_kernel.skills.install.info import judge
    from navigator_kernel.skills.source.reading import SourceReader

    with open_source_tree(source, ground.deps, ground.options(params)) as tree:
        reader = SourceReader(source, tree)
        for folder, (verdict, findings) in judge(chosen(reader), reader, ground.deps).items():
            yield folder, verdict, findings


def _row(name: str, path: str | Path, verdict: str, findings: list[dict[str, Any]]) -> dict[str, Any]:
    """One skill of the result, cleaned, as names and findings are text from a stranger."""
    told = {"name": name, "path": str(path), "verdict": verdict}
    return {**_cleaned(told), "findings": [_cleaned(one) for one in findings]}


def _cleaned(held: Mapping[str, Any]) -> dict[str, Any]:
    return {key: clean(value, lines=False) if isinstance(value, str) else value for key, value in held.items()}


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {"scan": _scan}
