"""How a skill gets in: the whole way from a source to a folder, its receipt and its records."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.errors import KernelError, Refused, UsageProblem
from navigator_kernel.skills.apply import apply, dry
from navigator_kernel.skills.digest import folder_digest
from navigator_kernel.skills.discover import Found, choose, distinct
from navigator_kernel.skills.doors import Doors, Options, opened
from navigator_kernel.skills.links import own_links, refuse_unlinkable, told_links
from navigator_kernel.skills.lookalike import refuse_lookalike
from navigator_kernel.skills.mapping import Row
from navigator_kernel.skills.names import NAME, refuse_rename
from navigator_kernel.skills.plans import Plan, plans, scanned
from navigator_kernel.skills.reading import Reader
from navigator_kernel.text import clean, fold

if TYPE_CHECKING:
    from navigator_kernel.skills.place import Place
    from navigator_kernel.skills.source import Source
    from navigator_kernel.values.receipt import Receipt


class Coming(NamedTuple):
    """The plans of the skills that can be installed, what is wrong with the others, and what was seen beside them."""

    made: Sequence[Plan]
    refused: Sequence[tuple[Found, KernelError]]
    siblings: tuple[Row, ...]
    commit: str
    label: str


def install(source: Source, wanted: Sequence[str], place: Place, doors: Doors, options: Options) -> dict[str, Any]:
    """`{source, commit, level, target, changed, dry_run, skills: […]}`. All of it happens, or nothing does."""
    refuse_rename(options.rename, wanted)
    with opened(source, doors, options) as tree:
        coming = gathered(Reader(source, tree), wanted, doors, options)
    return landed(coming, place, doors, options)


def gathered(reader: Reader, wanted: Sequence[str], doors: Doors, options: Options) -> Coming:
    """What an install brings, read to its end."""
    chosen = _chosen(reader, wanted, options)
    refused: list[tuple[Found, KernelError]] = []
    left_out = None if wanted or len(chosen) < 2 else refused
    made: list[Plan] = []
    for plan in plans(chosen, reader, doors.clock, options.rename, left_out):
        try:
            made.append(scanned(plan, doors, options.accept))
        except Refused as error:
            if left_out is None:
                raise
            left_out += [(found, error) for found in chosen if found.folder == plan.receipt.subpath]
    if refused and not made:
        raise refused[0][1]
    return Coming(made, refused, observed(reader), reader.tree.commit, reader.source.label)


def landed(coming: Coming, place: Place, doors: Doors, options: Options) -> dict[str, Any]:
    """What `install` tells, once it is done."""
    made, refused, siblings, commit, label = coming
    fresh: set[str] = set()
    linked, links = own_links(place), [plan.receipt.name for plan in made] if options.link else []

    def decide(receipts: Mapping[str, Receipt]) -> tuple[Sequence[Plan], Sequence[str]]:
        coming = [plan for plan in made if not settled(plan, place, receipts)]
        known = [*receipts, *doors.reserved(), *_names_in(place), *(plan.receipt.name for plan in coming)]
        for plan in coming:
            if plan.receipt.name not in receipts:
                refuse_lookalike(plan.receipt.name, known)
        refuse_unlinkable(place, links)
        fresh.update(plan.receipt.name for plan in coming)
        fresh.update(set(links) - own_links(place))
        return coming, ()

    if options.dry_run:
        dry(place, decide)
    else:
        apply(place, doors, decide, links=links, agrees=lambda _plan, _before: True)
        doors.observe(siblings)
    head = {"source": label, "commit": commit, "level": place.level, "target": place.target, "changed": bool(fresh)}
    told = [tell(plan, place, {*linked, *links}, changed=plan.receipt.name in fresh) for plan in made]
    why = [{"name": skill.name, "path": skill.shown, **error.to_dict()} for skill, error in refused]
    return {**head, "dry_run": options.dry_run, "skills": told, "refused": why, "exit_code": 1 if why else 0}


def observed(reader: Reader) -> tuple[Row, ...]:
    """A row of the mapping for every skill of the source, described where its manifest was read (X-35)."""
    repository = reader.source.repository
    rows = []
    for found in reader.found if repository else ():
        skill = reader.known(found)
        name, text = (skill.name, skill.description) if skill else (found.name, "")
        rows.append(Row(name, text, repository, found.folder))
    return tuple(rows)


def settled(plan: Plan, place: Place, receipts: Mapping[str, Receipt]) -> bool:
    """Whether the skill lies here already just so. Refused where what lies here is not ours to replace."""
    wanted, target = plan.receipt, place.skills / plan.receipt.name
    refuse_taken(wanted.name, place)
    held = receipts.get(wanted.name)
    if held is None:
        if os.path.lexists(target):
            hint = "move the folder away, or choose another name with --as, or another level"
            raise Refused(f"{str(target)!r} was not installed by navigator", hint=hint)
        return False
    if (held.source, held.subpath) != (wanted.source, wanted.subpath):
        origin = f"{held.source} {held.subpath}".strip()
        hint = f"install it under another name with --as, or navigator skill uninstall {wanted.name} first"
        raise Refused(f"skill {wanted.name!r} is installed from another source: {origin!r}", hint=hint)
    if not os.path.lexists(target):
        return False
    if target.is_symlink() or folder_digest(target) != held.digest:
        hint = f"navigator skill verify {wanted.name} names the changes; uninstall it to start afresh"
        raise Refused(f"skill {wanted.name!r} was changed since it was installed", hint=hint)
    return held.digest == wanted.digest


def _names_in(place: Place) -> list[str]:
    """What lies in the place's folder, by the names that skills have."""
    found = place.skills.iterdir() if place.skills.is_dir() else ()
    return [name for path in found if NAME.fullmatch(name := path.name.removesuffix(".md"))]


def refuse_taken(name: str, place: Place) -> None:
    """Refused where the folder has one that reads like `name` and is written otherwise."""
    for path in place.skills.iterdir() if place.skills.is_dir() else ():
        other = path.stem if path.suffix == ".md" else path.name
        if fold(other) == fold(name) and path.name != name:
            raise Refused(f"{path.name!r} is there already and reads like {name!r}", hint="move it away first")


def tell(plan: Plan, place: Place, linked: Collection[str], *, changed: bool) -> dict[str, Any]:
    """What the answer says of one skill; `linked` are those that have a link afterwards."""
    receipt = plan.receipt
    return {
        "name": receipt.name,
        "path": place.told(place.skills / receipt.name),
        "links": told_links(place, linked, receipt.name),
        "kind": plan.skill.kind,
        "digest": receipt.digest,
        "files": len(receipt.files),
        "verdict": receipt.verdict,
        "changed": changed,
        "findings": [finding.to_dict() for finding in (*plan.findings, *plan.skill.diagnostics)],
    }


def _chosen(reader: Reader, wanted: Sequence[str], options: Options) -> Sequence[Found]:
    found = reader.find()
    if wanted:
        return choose(found, wanted, reader.named, reader.alike)
    found = distinct(found, reader.alike, skills_only=any(skill.role == "skill" for skill in found))
    if options.everything or len(found) == 1:
        if options.rename and len(found) > 1:
            refuse_rename(options.rename, [skill.name for skill in found])
        return found
    names = sorted(clean(skill.name, lines=False) for skill in found)
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    message = f"{reader.source.label!r} holds {len(names)} skills and none is named"
    raise UsageProblem(message, hint=f"add --skill NAME or --all; it has: {listed}", skills=names)
