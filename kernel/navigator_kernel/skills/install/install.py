"""Installs skills: from a source to folders, receipts and records."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from navigator_kernel.errors import KernelError, NotLoadable, Refused, SkillNotFound, UsageProblem
from navigator_kernel.skills.catalog.place import (
    InstallScope,
    at_rest,
    own_links,
    refuse_escape,
    refuse_unlinkable,
    told_links,
)
from navigator_kernel.skills.catalog.receipts import folder_digest, read_receipt, read_receipts
from navigator_kernel.skills.formats.manifest import declared
from navigator_kernel.skills.formats.names import NAME, refuse_rename, refuse_shape, shapes, skeleton
from navigator_kernel.skills.install.apply import check_changes, commit_changes, refuse_damage
from navigator_kernel.skills.install.deps import InstallDeps, open_source_tree
from navigator_kernel.skills.install.plans import PlannedSkill, drafts, refuse_twin, scanned, titled
from navigator_kernel.skills.install.selection import LeftOut, Picked, Selection, failed, told_of
from navigator_kernel.skills.source.mapping import Row
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean, fold, suggestions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.discover import Found
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import Diagnostic


TAKEN = "name-taken"  # reason of a Refused
_FOR_AUTHORS = frozenset({"allowed-tools-form", "crlf", "name-folder", "not-text", "yaml-unquoted"})


class PreparedInstall(NamedTuple):
    """The plans of the skills that can be installed, the skills that cannot, and all skills seen in the source.
    `several` says that a problem of one skill is reported and not raised, `named` that the person named the skills:
    then it is an error if none can be installed."""

    made: Sequence[PlannedSkill]
    left: Sequence[LeftOut]
    siblings: tuple[Row, ...]
    commit: str
    label: str
    several: bool = False
    named: bool = False


def install(
    source: Source, wanted: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions
) -> dict[str, Any]:
    """`{source, commit, level, target, changed, dry_run, counts, skills: […], left_out: […]}`. Installs all skills that
    can be installed, together, or none."""
    refuse_rename(options.rename, wanted)
    with open_source_tree(source, deps, options, install=True) as tree:
        coming = collect(SourceReader(source, tree), wanted, deps, options)
    return install_prepared(coming, place, deps, options)


def collect(reader: SourceReader, wanted: Sequence[str], deps: InstallDeps, options: InstallOptions) -> PreparedInstall:
    """Reads and scans the skills of an install."""
    reader.find()
    selection = Selection(reader)
    picked = selection.named(wanted, options.exclude) if wanted else _everything(selection, options)
    several = len(picked.skills) + len(picked.left) > 1
    if options.rename and several:
        refuse_rename(options.rename, [skill.name for skill in picked.skills])
    refused: list[tuple[Found, KernelError]] = []
    drawn = drafts(picked.skills, reader, deps.clock, options.rename, refused, picked.files)
    deps.ahead([(plan.skill, plan.contents) for plan in drawn])
    found = {skill.folder: skill for skill in picked.skills}
    made: list[PlannedSkill] = []
    seen: dict[str, PlannedSkill] = {}
    for at, plan in enumerate(drawn):
        skill = found[plan.receipt.subpath]
        try:
            if not options.rename and skill.folder not in picked.by_path:
                plan = titled(plan, skill, reader, selection.name_for(plan, skill))
            refuse_twin(plan, seen)
            made.append(scanned(plan, deps, options))
        except (NotLoadable, Refused, UsageProblem) as error:
            refused.append((skill, error))
        deps.progress(at + 1, len(drawn))
    if refused and not several:
        raise refused[0][1]
    left = [*picked.left, *(failed(skill, error) for skill, error in refused)]
    if not made and (wanted or not several):
        raise _none(left)
    return PreparedInstall(
        made, left, observe_catalogue(reader), reader.tree.commit, reader.source.label, several, bool(wanted)
    )


def install_prepared(
    coming: PreparedInstall, place: InstallScope, deps: InstallDeps, options: InstallOptions
) -> dict[str, Any]:
    """Installs prepared skills and returns the answer of `install`."""
    made, left = list(coming.made), list(coming.left)
    fresh, was = set[str](), dict[str, str]()
    linked, links = own_links(place), list[str]()

    def decide(receipts: Mapping[str, Receipt]) -> tuple[Sequence[PlannedSkill], Sequence[str]]:
        bringing: list[PlannedSkill] = []
        names = names_in(place)
        there = (name.removesuffix(".md") for alike in names.values() for name in alike)
        known = shapes([*receipts, *deps.reserved(), *filter(NAME.fullmatch, there)])
        for plan in coming.made:
            try:
                is_new = _is_new(plan, place, receipts, names, known, options)
                refuse_unlinkable(place, [plan.receipt.name] if options.link else [])
            except Refused as error:
                if not coming.several:
                    raise
                made.remove(plan)
                left.append(told_of(plan.receipt.name, plan.receipt.subpath or ".", error))
                continue
            known.setdefault(skeleton(plan.receipt.name), []).append(plan.receipt.name)
            bringing += [plan] if is_new else []
            links.extend([plan.receipt.name] if options.link else [])  # `commit_changes` reads them after this call
        if coming.named and not made:
            raise _none(left)
        fresh.update(plan.receipt.name for plan in bringing)
        was.update((name, receipt.digest) for name, receipt in receipts.items() if name in fresh)
        fresh.update(set(links) - linked)
        return bringing, ()

    if options.dry_run:
        check_changes(place, decide)
    else:
        commit_changes(place, deps, decide, links=links, agrees=lambda _plan, _before: True)
        deps.observe(coming.siblings)
    head = {"source": coming.label, "commit": coming.commit, "level": place.level, "target": place.target}
    told = [tell(plan, place, {*linked, *links}, changed=plan.receipt.name in fresh) for plan in made]
    told = [{**one, "was": was.get(one["name"], "")} for one in told]
    code = 1 if any(one.is_failure for one in left) else 0
    others = [one.to_dict() for one in sorted(left, key=lambda one: (one.path, one.name))]
    done = {"changed": bool(fresh), "dry_run": options.dry_run, "counts": _counts(told, left)}
    return {**head, **done, "skills": told, "left_out": others, "exit_code": code}


def _counts(told: Sequence[Mapping[str, Any]], left: Sequence[LeftOut]) -> dict[str, int]:
    """Counts: `found` is the sum of the others; `there` are skills that were installed already."""
    changed, blocked = sum(one["changed"] for one in told), sum(one.state == "blocked" for one in left)
    found, skipped = len(told) + len(left), len(left) - blocked
    return {"found": found, "installed": changed, "there": len(told) - changed, "skipped": skipped, "blocked": blocked}


def _none(left: Sequence[LeftOut]) -> KernelError:
    """The error if nothing can be installed."""
    if len(left) == 1:
        return left[0].error
    errors = [one.error for one in left if one.is_failure] or [UsageProblem("nothing is left to install")]
    first = errors[0]
    others = "; ".join(error.message for error in errors[1:4])
    message = f"nothing was installed: {first.message}" + (f"; {others}" if others else "")
    blocked = (error.hint for error in errors[1:4] if error.data.get("blocked_by"))
    hint = "; ".join(dict.fromkeys((first.hint, *blocked)))
    return type(first)(message, hint=hint, **{**first.data, "left_out": [one.to_dict() for one in left]})


def _is_new(
    plan: PlannedSkill,
    place: InstallScope,
    receipts: Mapping[str, Receipt],
    names: Mapping[str, Sequence[str]],
    known: Mapping[str, Sequence[str]],
    options: InstallOptions,
) -> bool:
    """Whether the skill must be written. Refused if an installed skill or one of this install prevents it."""
    if _settled(plan, place, receipts, names, options):
        return False
    if plan.receipt.name not in receipts:
        refuse_shape(plan.receipt.name, known)
    return True


def observe_catalogue(reader: SourceReader) -> tuple[Row, ...]:
    """A row of the mapping for every skill of the source, with its description if its manifest was read (X-35)."""
    repository = reader.source.repository
    rows = []
    for found in reader.found if repository else ():
        skill = reader.known(found)
        name, text = (skill.name, skill.description) if skill else (found.name, "")
        rows.append(Row(name, text, repository, found.folder))
    return tuple(rows)


def _settled(
    plan: PlannedSkill,
    place: InstallScope,
    receipts: Mapping[str, Receipt],
    names: Mapping[str, Sequence[str]],
    options: InstallOptions,
) -> bool:
    """Whether exactly this skill is already installed here. Refused if the existing entry is not ours to replace.
    `names` is the result of `names_in`."""
    wanted, target = plan.receipt, place.skills / plan.receipt.name
    refuse_taken(wanted.name, place, names)
    held = receipts.get(wanted.name)
    if held is None:
        if os.path.lexists(target):
            hint = "move the folder away, or choose another name with --as, or another level"
            raise Refused(f"{str(target)!r} was not installed by navigator", hint=hint, reason=TAKEN)
        return False
    if (held.source, held.subpath) != (wanted.source, wanted.subpath):
        origin = f"{held.source} {held.subpath}".strip()
        hint = f"install it under another name with --as, or {options.command('uninstall', wanted.name)} first"
        raise Refused(f"skill {wanted.name!r} is installed from another source: {origin!r}", hint=hint, reason=TAKEN)
    if not os.path.lexists(target):
        return False
    if target.is_symlink() or folder_digest(target) != held.digest:
        message = f"skill {wanted.name!r} was changed since it was installed"
        raise Refused(message, hint=options.undoing(wanted.name), reason="edited")
    return held.digest == wanted.digest


def names_in(place: InstallScope) -> dict[str, list[str]]:
    """The entries of the scope's folder by folded name; a file `x.md` is called `x`."""
    found: dict[str, list[str]] = {}
    for path in place.skills.iterdir() if place.skills.is_dir() else ():
        found.setdefault(fold(path.name.removesuffix(".md")), []).append(path.name)
    return found


def refuse_taken(name: str, place: InstallScope, names: Mapping[str, Sequence[str]] | None = None) -> None:
    """Refused if the folder has an entry that differs from `name` only in case or form."""
    for other in (names_in(place) if names is None else names).get(fold(name), ()):
        if other != name:
            message = f"{other!r} already exists and looks like {name!r}"
            raise Refused(message, hint="move it away first", reason=TAKEN)


def tell(plan: PlannedSkill, place: InstallScope, linked: Collection[str], *, changed: bool) -> dict[str, Any]:
    """The answer about one skill; `linked` are the skills with a link."""
    receipt = plan.receipt
    return {
        "path": place.told(place.skills / receipt.name),
        "links": told_links(place, linked, receipt.name),
        **declared(plan.skill),
        "name": receipt.name,
        "subpath": clean(receipt.subpath, lines=False),
        "digest": receipt.digest,
        "files": len(receipt.files),
        "verdict": receipt.verdict,
        "changed": changed,
        "findings": [one.to_dict() for one in (*plan.findings, *map(_at_install, plan.skill.diagnostics))],
    }


def _at_install(noticed: Diagnostic) -> Diagnostic:
    """The diagnostic, as a note if it matters only to the skill's author (`navigator skill validate` warns of it):
    nothing is lost."""
    return replace(noticed, level="note") if noticed.code in _FOR_AUTHORS else noticed


def _everything(selection: Selection, options: InstallOptions) -> Picked:
    """All skills, if the options say so or there is only one; otherwise UsageProblem."""
    if options.everything or selection.is_lone:
        return selection.everything(options.exclude)
    reader = selection.reader
    meant = [skill for skill in reader.found if skill.role == "skill"] or reader.found
    names = sorted({fold(skill.name): clean(skill.name, lines=False) for skill in meant}.values())
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    message = f"{reader.source.label!r} holds {len(names)} skills and none is named"
    more = {"choices": selection.choices()} if options.choosing else {}
    raise UsageProblem(message, hint=f"add --skill NAME or --all; it has: {listed}", skills=names, **more)


def uninstall(
    names: Sequence[str],
    place: InstallScope,
    deps: InstallDeps,
    options: InstallOptions,
    *,
    source: Source | None = None,
) -> dict[str, Any]:
    """Removes all of the skills, with our links to them, or none: `{level, target, dry_run, skills: [{name, path,
    links}]}`. `source` means all skills that came from it. The mapping keeps its rows (X-35).

    SkillNotFound with suggestions, Refused for a folder without a receipt.
    """
    refuse_damage(place)
    refuse_escape(place)
    known = [owned(name, place) for name in names] + (_from(source, place) if source else [])
    known = list(dict.fromkeys(known))
    for name in known:
        if (place.skills / name).is_symlink():
            path = str(place.skills / name)
            raise Refused(f"{path!r} is a link that navigator did not make", hint="remove the link yourself")

    linked = own_links(place)

    def decide(receipts: Mapping[str, Receipt]) -> tuple[tuple[()], list[str]]:
        gone = [name for name in known if name not in receipts]
        if gone:
            raise SkillNotFound(f"no skill called {gone[0]!r} is installed", hint="another command removed it")
        return (), known

    if options.dry_run:
        check_changes(place, decide)
    else:
        commit_changes(place, deps, decide)
    told = [
        {"name": name, "path": place.told(place.skills / name), "links": told_links(place, linked, name)}
        for name in known
    ]
    return {"level": place.level, "target": place.target, "dry_run": options.dry_run, "skills": told}


def owned(name: str, place: InstallScope) -> str:
    """The installed skill that `name` means; Damaged if its receipt cannot be read."""
    damaged: list[str] = []
    with at_rest(place):  # a folder without a receipt may be half an install
        receipts, folders = read_receipts(place, damaged), _folders(place)
    folded = {fold(known): known for known in (*receipts, *damaged)}
    if known := folded.get(fold(name)):
        read_receipt(place, known)
        return known
    if unmanaged := next((folder for folder in folders if fold(folder) == fold(name)), None):
        path = place.skills / unmanaged
        hint = "uninstall what it leads to, or remove the link" if path.is_symlink() else "remove the folder yourself"
        raise Refused(f"{str(path)!r} was not installed by navigator", hint=hint)
    near = suggestions(name, [*receipts, *folders])
    hint = f"did you mean {', '.join(near)}?" if near else "navigator skill list shows the installed skills"
    shown = clean(name, lines=False)
    raise SkillNotFound(f"no skill called {shown!r} is installed", hint=hint, suggestions=near)


def _from(source: Source, place: InstallScope) -> list[str]:
    found = [name for name, receipt in read_receipts(place).items() if receipt.source == source.url]
    if not found:
        raise SkillNotFound(
            f"no skill of {source.label!r} is installed", hint="navigator skill list --json names sources"
        )
    return found


def _folders(place: InstallScope) -> list[str]:
    try:
        with os.scandir(place.skills) as entries:
            return [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    except (FileNotFoundError, NotADirectoryError):
        return []
