"""The commands that only read: list, info, search, verify and check."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from navigator_kernel.errors import Damaged, IntegrityMismatch, KernelError
from navigator_kernel.skills.catalog.receipts import folder_files, read_receipts
from navigator_kernel.skills.catalog.switches import use_counts
from navigator_kernel.skills.commands.lifecycle import required
from navigator_kernel.skills.formats.manifest import declared
from navigator_kernel.skills.install.deps import open_source_tree
from navigator_kernel.skills.install.inventory import compared
from navigator_kernel.text import clean, fold
from navigator_kernel.values.standing import install_subject

if TYPE_CHECKING:
    from navigator_kernel.skills.commands.lifecycle import Answer, Lifecycle
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.inventory import Installed
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.mapping import Row
    from navigator_kernel.skills.source.reading import Tree
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import SkillDef

Params = Mapping[str, Any]


def _list(ground: Lifecycle, params: Params) -> Answer:
    """`{user, target}` → `{count, skills, problems}`."""
    found, notes = ground.found(params)
    problems = [note.to_dict() for note in notes if note.level == "error" or note.code == "shadowed"]
    return {"count": len(found), "skills": [one.to_dict() for one in found], "problems": problems}


def _info(ground: Lifecycle, params: Params) -> Answer:
    """`{source, skill, ref, installed}` → an installed skill of that name, else the contents of the source;
    SkillNotFound for a name without a source, or if `installed` forbids looking at one."""
    if (held := ground.held(required(params, "source"))) is not None:
        return _known(held)
    if params.get("installed"):
        raise ground.unknown(str(params["source"]))
    if ground.is_unknown(str(params["source"])):
        raise ground.unknown(str(params["source"]), or_source=True)
    source, wanted = ground.sourced(params)
    if wanted:
        ground.deps.prepare()
    with open_source_tree(source, ground.deps, ground.options(params)) as tree:
        answer, rows = _analyse(source, tree, wanted, ground.deps)
    return {**answer, **ground.observe(rows)}


def _analyse(
    source: Source, tree: Tree, wanted: Sequence[str], deps: InstallDeps
) -> tuple[dict[str, Any], tuple[Row, ...]]:
    from navigator_kernel.skills.install.info import analyse  # mostly imported already while git ran
    from navigator_kernel.skills.source.reading import SourceReader

    return analyse(SourceReader(source, tree), wanted, deps)


def _search(ground: Lifecycle, params: Params) -> Answer:
    """`{query, limit, user, target, remote, catalogues, offline}` → `{query, count, skills}`, best first (LIF-16); with
    `remote` also results from the catalogues."""
    from navigator_kernel.skills.catalog.search import search

    query = required(params, "query")
    sought = ground.deps.seek(query)
    if sought is None or params.get("user") or params.get("target"):
        held = {one.skill.name: one for one in ground.found(params)[0]}
        skills: Sequence[SkillDef] = [one.skill for one in held.values()]
    else:
        skills = ground.among(sought.skills)
        held = {}
    names, sure = (sought.names, sought.sure) if sought else ((), ())
    hits = search(skills, query, use_counts(ground.state), names, sure)
    shown = hits[: int(params.get("limit") or 20)]
    held = held or {one.skill.name: one for one in ground.recorded([hit.skill for hit in shown])}
    told = [{**held[hit.skill.name].to_dict(), "score": hit.score, "reason": hit.reason} for hit in shown]
    answer: dict[str, Any] = {"query": clean(query, lines=False), "count": len(hits), "skills": told}
    if params.get("remote"):
        answer["remote"] = _found_remotely(ground, query, params)
    return answer


def _found_remotely(ground: Lifecycle, query: str, params: Params) -> list[dict[str, Any]]:
    from navigator_kernel.skills.source.remote import search_remote

    catalogues = tuple(map(str, params.get("catalogues") or ()))
    return search_remote(query, catalogues, base=ground.root, offline=bool(params.get("offline")))


def _verify(ground: Lifecycle, params: Params) -> Answer:
    """`{name, user, target}` → `{count, skills}`; IntegrityMismatch, with the changed files, if a skill is not as it
    was installed."""
    checked = []
    wanted, agreed = fold(str(params.get("name") or "")), ground.agreed()
    for place in ground.chosen(params):
        for name, receipt in read_receipts(place).items():
            if wanted in {"", fold(name)}:
                held, found = compared(receipt, place)
                if held is None:  # another command has just removed it
                    continue
                where: dict[str, Any] = {"name": name, "level": place.level, "target": place.target}
                where |= {"ok": not any(found.values()), "by_you": _is_mine(held, agreed)}
                checked.append({**where, **found})
    if wanted and not checked:
        raise ground.unknown(str(params["name"]))
    broken = [one["name"] for one in checked if not one["ok"]]
    if broken:
        first = next(one for one in checked if not one["ok"])
        there = {"user": first["level"] == "user", "target": "agents" if first["target"] == "agents" else None}
        restore = ground.options(there).command("install", "--frozen", "--force", "--skill", str(first["name"]))
        hint = f"{restore} undoes the changes; navigator skill trust NAME accepts a skill as it is"
        message = f"changed since installed: {', '.join(map(repr, broken))}"
        raise IntegrityMismatch(message, hint=hint, skills=checked)
    return {"count": len(checked), "skills": checked}


def _is_mine(receipt: Receipt, agreed: Collection[str]) -> bool:
    """Whether this person installed it: only then do equal bytes prove that nothing has changed since."""
    return install_subject(receipt.name, clean(receipt.origin, lines=False), receipt.digest) in agreed


def _check(ground: Lifecycle, params: Params) -> Answer:
    """Checks the records without changing anything; Damaged if one cannot be read."""
    from navigator_kernel.skills.install.apply import refuse_damage
    from navigator_kernel.skills.install.lockfile import read_lock
    from navigator_kernel.skills.install.restore import receipts_in

    damaged: list[str] = []
    count = 0
    for place in ground.chosen(params):
        count += len(refuse_damage(place, damaged))
        receipts_in(read_lock(place.lock), place, ground.deps)
    if damaged:
        hint = "navigator doctor --repair makes them again, as far as the lock still knows the skills"
        raise Damaged(f"receipts that cannot be read: {', '.join(damaged)}", hint=hint)
    return {"count": count}


def _known(one: Installed) -> dict[str, Any]:
    """An installed skill: its row, its receipt and what its manifest declares."""
    receipt = one.receipt.to_dict() if one.receipt else None
    files: list[str] = []
    with suppress(KernelError):
        if one.skill.folder is not None:
            files = [clean(file.path, lines=False) for file in folder_files(one.skill.folder)]
    return {**one.to_dict(), **declared(one.skill), "files": files, "receipt": receipt}


VERBS: Mapping[str, Callable[[Lifecycle, Params], Answer]] = {
    "check": _check,
    "info": _info,
    "list": _list,
    "search": _search,
    "verify": _verify,
}
