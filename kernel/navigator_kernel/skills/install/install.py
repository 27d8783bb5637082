"""Installs skills: from a source to folders, receipts and records."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.errors import (
    ConsentNeeded,
    KernelError,
    NotLoadable,
    Refused,
    SkillNotFound,
    UsageProblem,
    unknown_name,
)
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
from navigator_kernel.skills.install.apply import open_change, refuse_damage
from navigator_kernel.skills.install.changes import changed_by
from navigator_kernel.skills.install.lockfile import read_lock
from navigator_kernel.skills.install.plans import PlannedSkill, drafts, refuse_twin, scanned, titled
from navigator_kernel.skills.install.selection import GROWN, LeftOut, Picked, Selection, failed, told_of
from navigator_kernel.skills.source.address import site_of
from navigator_kernel.skills.source.mapping import Row
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean, fold, suggestions

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from navigator_kernel.skills.formats.plugin_parts import PluginParts
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.values.receipt import Receipt, Verdict


TAKEN = "name-taken"  # reason of a Refused
_FOR_AUTHORS = frozenset({"allowed-tools-form", "crlf", "name-folder", "not-text", "yaml-unquoted"})


class PreparedInstall(NamedTuple):
    """The plans of the skills that can be installed, the skills that cannot, and all skills seen in the source.
    `several` says that a problem of one skill is reported and not raised, `named` that the person named the skills:
    then it is an error if none can be installed. `plugins` is what the plugins of the skills bring beside them."""

    made: Sequence[PlannedSkill]
    left: Sequence[LeftOut]
    siblings: tuple[Row, ...]
    commit: str
    label: str
    several: bool = False
    named: bool = False
    plugins: Sequence[PluginParts] = ()


class InstalledSkill(Struct, frozen=True, kw_only=True):
    """A skill of an install. `was` is the digest that it replaces; `name` to `problems` come from its manifest."""

    path: str
    links: list[str]
    name: str
    description: str
    kind: str
    license: str
    command: str
    tools: list[str]
    permissions: dict[str, Any]
    problems: list[str]
    subpath: str
    digest: str
    files: int
    verdict: Verdict
    changed: bool
    findings: list[dict[str, Any]]
    was: str = ""


class Counts(Struct, frozen=True, kw_only=True):
    """`found` is the sum of the others; `there` are skills that were installed already."""

    found: int
    installed: int
    there: int
    skipped: int
    blocked: int


class InstallResult(Struct, frozen=True, kw_only=True):
    """`plugins` is what the plugins of the skills bring beside them; nothing of it is installed."""

    source: str
    commit: str
    level: str
    target: str
    changed: bool
    dry_run: bool
    counts: Counts
    skills: list[InstalledSkill]
    left_out: list[dict[str, Any]]
    plugins: list[PluginParts]
    exit_code: int


def collect(reader: SourceReader, names: Sequence[str], deps: InstallDeps, options: InstallOptions) -> PreparedInstall:
    """Reads and scans the skills of an install. Refused if the source has another commit than the options say."""
    if options.commit and options.commit != (commit := reader.tree.commit):
        message = f"the source is at {commit[:12] or 'no commit'} now, and {options.commit[:12]} was shown"
        raise Refused(message, hint="look at it again", reason="moved")
    reader.find()
    selection = Selection(reader)
    picked = selection.named(names, options.exclude) if names else _everything(selection, options)
    several = len(picked.skills) + len(picked.left) > 1
    if options.rename and several:
        refuse_rename(options.rename, [skill.name for skill in picked.skills])
    drawn, refused = drafts(picked.skills, reader, deps.clock, options.rename, picked.files)
    if deps.scanner is not None:
        deps.scanner.ahead([(plan.skill, plan.contents) for plan in drawn])
    by_folder = {skill.folder: skill for skill in picked.skills}
    made: list[PlannedSkill] = []
    seen: dict[str, PlannedSkill] = {}
    for at, plan in enumerate(drawn):
        skill = by_folder[plan.receipt.subpath]
        try:
            if not options.rename and skill.folder not in picked.by_path:
                plan = titled(plan, skill, reader, selection.name_for(plan, skill))
            refuse_twin(plan, seen)
            made.append(scanned(plan, deps, options))
        except (NotLoadable, Refused, UsageProblem) as error:
            refused.append((skill, error))
        if deps.progress is not None:
            deps.progress(at + 1, len(drawn))
    if refused and not several:
        raise refused[0][1]
    left = [*picked.left, *(failed(skill, error) for skill, error in refused)]
    if not names:
        left += [told_of(name, name, error) for name, error in reader.unread.items()]
        for name, place in reader.elsewhere.items():
            there = SkillNotFound(f"it lies in {place.address}", hint=f"--skill {name} installs it", suggestions=[])
            left.append(LeftOut(name, "", "elsewhere", there))
    if not made and (names or not several):
        raise _none(left)
    seen_rows, source = observe_catalogue(reader), reader.source
    plugins = reader.parts_of(dict.fromkeys(by_folder[plan.receipt.subpath].plugin for plan in made))
    return PreparedInstall(made, left, seen_rows, reader.tree.commit, source.label, several, bool(names), plugins)


def install_prepared(
    prepared: PreparedInstall, place: InstallScope, deps: InstallDeps, options: InstallOptions
) -> InstallResult:
    """Installs all prepared skills that can be installed, together, or none. One that is here and could do more than
    before stays as it is and is left out, unless the options agree to that, as in an update."""
    made: list[PlannedSkill] = []
    fresh: list[PlannedSkill] = []
    left = list(prepared.left)
    linked = own_links(place)
    with open_change(place, deps, dry_run=options.dry_run) as change:
        names, locked = names_in(place), read_lock(place.lock)
        folders = (name.removesuffix(".md") for alike in names.values() for name in alike)
        known = shapes([*change.receipts, *deps.reserved, *filter(NAME.fullmatch, folders)])
        for plan in prepared.made:
            name = plan.receipt.name
            try:
                is_new = not _is_settled(plan, place, change.receipts, locked.get(name, {}), names, options)
                if is_new and name not in change.receipts:
                    refuse_shape(name, known)
                refuse_unlinkable(place, [name] if options.link else [])
                digest, here = plan.receipt.digest, change.receipts.get(name)
                agreed = options.grown or digest in options.agreed
                if is_new and here is not None and not agreed and os.path.lexists(place.skills / name):
                    growth = changed_by(plan, here, place, deps)
                    if growth.is_growth:
                        message = f"skill {name!r} can do more than before, and stays as it is"
                        hint = "--yes agrees to that"
                        raise ConsentNeeded(message, hint=hint, reason=GROWN, digest=digest, change=growth)
            except ConsentNeeded as error:
                left.append(told_of(name, plan.receipt.subpath or ".", error))
                continue
            except Refused as error:
                if not prepared.several:
                    raise
                left.append(told_of(name, plan.receipt.subpath or ".", error))
                continue
            known.setdefault(skeleton(name), []).append(name)
            made.append(plan)
            fresh += [plan] if is_new else []
        if prepared.named and not made and all(one.reason != GROWN for one in left):
            raise _none(left)
        links = [plan.receipt.name for plan in made] if options.link else []
        written = {plan.receipt.name for plan in fresh}
        there = [change.receipts[plan.receipt.name] for plan in made if plan.receipt.name not in written]
        wanted = [one for one in there if locked.get(one.name, {}).get("digest") != one.digest]
        change.apply(fresh, links=links, agreed=written, wanted=wanted)
    if not options.dry_run:
        deps.observe(prepared.siblings)
    changed = written | (set(links) - linked)
    was = {name: receipt.digest for name, receipt in change.receipts.items() if name in written}
    skills = [
        _installed(plan, place, {*linked, *links}, changed=name in changed, was=was.get(name, ""))
        for plan, name in ((plan, plan.receipt.name) for plan in made)
    ]
    blocked = sum(one.state == "blocked" for one in left)
    installed = sum(skill.changed for skill in skills)
    failures = {one.reason for one in left if one.is_failure}
    must_ask = GROWN in failures and not options.dry_run
    return InstallResult(
        source=prepared.label,
        commit=prepared.commit,
        level=place.level,
        target=place.target,
        changed=bool(changed),
        dry_run=options.dry_run,
        counts=Counts(
            found=len(skills) + len(left),
            installed=installed,
            there=len(skills) - installed,
            skipped=len(left) - blocked,
            blocked=blocked,
        ),
        skills=skills,
        left_out=[one.to_dict() for one in sorted(left, key=lambda one: (one.path, one.name))],
        plugins=list(prepared.plugins),
        exit_code=ConsentNeeded.exit_code if must_ask else int(bool(failures - {GROWN})),
    )


def _installed(
    plan: PlannedSkill, place: InstallScope, linked: Collection[str], *, changed: bool, was: str
) -> InstalledSkill:
    """The result for one skill; `linked` are the skills with a link."""
    receipt = plan.receipt
    # What matters only to the skill's author is a note here (`navigator skill validate` warns of it)
    noticed = [
        replace(diagnostic, level="note") if diagnostic.code in _FOR_AUTHORS else diagnostic
        for diagnostic in plan.skill.diagnostics
    ]
    return InstalledSkill(
        path=place.told(place.skills / receipt.name),
        links=told_links(place, linked, receipt.name),
        **{**declared(plan.skill), "name": receipt.name},
        subpath=clean(receipt.subpath, lines=False),
        digest=receipt.digest,
        files=len(receipt.files),
        verdict=receipt.verdict,
        changed=changed,
        findings=[one.to_dict() for one in (*plan.findings, *noticed)],
        was=was,
    )


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


def observe_catalogue(reader: SourceReader) -> tuple[Row, ...]:
    """A row of the mapping for every skill of the source, with its description if its manifest was read (X-35)."""
    repository = reader.source.repository
    rows = []
    for here in reader.found if repository else ():
        skill = reader.known(here)
        name, text = (skill.name, skill.description) if skill else (here.name, "")
        rows.append(Row(name, text, repository, here.folder))
    return tuple(rows)


def _is_settled(
    plan: PlannedSkill,
    place: InstallScope,
    receipts: Mapping[str, Receipt],
    locked: Mapping[str, Any],
    names: Mapping[str, Sequence[str]],
    options: InstallOptions,
) -> bool:
    """Whether exactly this skill is already installed here. Refused if the existing entry is not ours to replace, or if
    the lock wants a skill of this name from elsewhere. `locked` is its entry in the lock, empty for none; `names` is
    the result of `names_in`."""
    receipt, target = plan.receipt, place.skills / plan.receipt.name
    origin = str(locked.get("source"))
    if locked and (site_of(origin), locked.get("subpath")) != (site_of(receipt.source), receipt.subpath):
        origin = clean(f"{origin} {locked.get('subpath')}".strip(), lines=False)
        hint = f"install it under another name with --as, or {options.command('uninstall', receipt.name)} first"
        raise Refused(f"the lock has skill {receipt.name!r} from another source: {origin!r}", hint=hint, reason=TAKEN)
    refuse_taken(receipt.name, place, names)
    installed = receipts.get(receipt.name)
    if installed is None:
        if os.path.lexists(target):
            hint = "move the folder away, or choose another name with --as, or another level"
            raise Refused(f"{str(target)!r} was not installed by navigator", hint=hint, reason=TAKEN)
        return False
    if (site_of(installed.source), installed.subpath) != (site_of(receipt.source), receipt.subpath):
        origin = f"{installed.source} {installed.subpath}".strip()
        hint = f"install it under another name with --as, or {options.command('uninstall', receipt.name)} first"
        raise Refused(f"skill {receipt.name!r} is installed from another source: {origin!r}", hint=hint, reason=TAKEN)
    if not os.path.lexists(target):
        return False
    if target.is_symlink() or folder_digest(target, installed) != installed.digest:
        message = f"skill {receipt.name!r} was changed since it was installed"
        raise Refused(message, hint=options.undoing(receipt.name), reason="edited")
    return installed.digest == receipt.digest


def refuse_unmanaged(coming: Sequence[PlannedSkill], receipts: Collection[str], place: InstallScope) -> None:
    """Refused if a folder that no receipt describes is in place of a skill that comes."""
    for name in (plan.receipt.name for plan in coming if plan.receipt.name not in receipts):
        refuse_taken(name, place)
        if os.path.lexists(place.skills / name):
            raise Refused(f"{str(place.skills / name)!r} was not installed by navigator", hint="move the folder away")


def names_in(place: InstallScope) -> dict[str, list[str]]:
    """The entries of the scope's folder by folded name; a file `x.md` is called `x`."""
    names: dict[str, list[str]] = {}
    for path in place.skills.iterdir() if place.skills.is_dir() else ():
        names.setdefault(fold(path.name.removesuffix(".md")), []).append(path.name)
    return names


def refuse_taken(name: str, place: InstallScope, names: Mapping[str, Sequence[str]] | None = None) -> None:
    """Refused if the folder has an entry that differs from `name` only in case or form."""
    for other in (names_in(place) if names is None else names).get(fold(name), ()):
        if other != name:
            message = f"{other!r} already exists and looks like {name!r}"
            raise Refused(message, hint="move it away first", reason=TAKEN)


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


class UninstalledSkill(Struct, frozen=True, kw_only=True):
    name: str
    path: str
    links: list[str]


class UninstallResult(Struct, frozen=True, kw_only=True):
    level: str
    target: str
    dry_run: bool
    skills: list[UninstalledSkill]


def uninstall(
    names: Sequence[str],
    place: InstallScope,
    deps: InstallDeps,
    options: InstallOptions,
    *,
    source: Source | None = None,
) -> UninstallResult:
    """Removes all of the skills, with our links to them, or none; `source` means all skills that came from it. The
    mapping keeps its rows (X-35).

    SkillNotFound with suggestions, Refused for a folder without a receipt.
    """
    refuse_damage(place)
    refuse_escape(place)
    locked = read_lock(place.lock)
    going = [owned(name, place, locked) for name in names]
    if source is not None:
        origins = {name: entry.get("source") for name, entry in locked.items()}
        origins |= {name: receipt.source for name, receipt in read_receipts(place).items()}
        of_source = [name for name, origin in origins.items() if origin == source.url]
        if not of_source:
            hint = "navigator skill list --json names sources"
            raise SkillNotFound(f"no skill of {source.label!r} is installed", hint=hint)
        going += of_source
    going = list(dict.fromkeys(going))
    for name in going:
        if (place.skills / name).is_symlink():
            path = str(place.skills / name)
            raise Refused(f"{path!r} is a link that navigator did not make", hint="remove the link yourself")
    linked = own_links(place)
    with open_change(place, deps, dry_run=options.dry_run) as change:
        gone = [name for name in going if name not in change.receipts and name not in locked]
        if gone:
            raise SkillNotFound(f"no skill called {gone[0]!r} is installed", hint="another command removed it")
        change.apply(going=going)
    skills = [
        UninstalledSkill(name=name, path=place.told(place.skills / name), links=told_links(place, linked, name))
        for name in going
    ]
    return UninstallResult(level=place.level, target=place.target, dry_run=options.dry_run, skills=skills)


def owned(name: str, place: InstallScope, locked: Collection[str] = ()) -> str:
    """The skill that `name` means, which is installed here or one of `locked`; Damaged if its receipt cannot be
    read."""
    damaged: list[str] = []
    with at_rest(place):  # a folder without a receipt may be half an install
        receipts, folders = read_receipts(place, damaged), list[str]()
        with suppress(FileNotFoundError, NotADirectoryError), os.scandir(place.skills) as entries:
            folders = [entry.name for entry in entries if entry.is_dir() and not entry.name.startswith(".")]
    folded = {fold(known): known for known in (*receipts, *damaged)}
    if known := folded.get(fold(name)):
        read_receipt(place, known)
        return known
    if unmanaged := next((folder for folder in folders if fold(folder) == fold(name)), None):
        path = place.skills / unmanaged
        hint = "uninstall what it leads to, or remove the link" if path.is_symlink() else "remove the folder yourself"
        raise Refused(f"{str(path)!r} was not installed by navigator", hint=hint)
    if wanted := next((known for known in locked if fold(known) == fold(name)), None):
        return wanted
    message = f"no skill called {clean(name, lines=False)!r} is installed"
    near = suggestions(name, [*receipts, *folders, *locked])
    raise unknown_name(SkillNotFound, message, near, hint="navigator skill list shows the installed skills")
