"""Brings the folder to exactly what a lock file lists, byte for byte, or changes nothing; rebuilds damaged records."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock, read_rows
from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import (
    Busy,
    Damaged,
    FetchFailed,
    IntegrityMismatch,
    KernelError,
    NotFound,
    Refused,
    SkillNotFound,
    UsageProblem,
    unknown_name,
)
from navigator_kernel.skills.catalog.place import (
    InstallScope,
    dangling,
    link_path,
    own_links,
    prepare,
    refuse_escape,
    refuse_unlinkable,
    told_links,
)
from navigator_kernel.skills.catalog.receipts import folder_digest, read_receipts, receipt_bytes
from navigator_kernel.skills.install.abilities import abilities
from navigator_kernel.skills.install.apply import (
    INTENT,
    InstallTransaction,
    bytes_of,
    open_change,
    settle,
    slot_path,
    sweep,
)
from navigator_kernel.skills.install.changes import SkillChange, changed_by
from navigator_kernel.skills.install.conflict import Side, merged, saved, sides_of
from navigator_kernel.skills.install.install import names_in, refuse_taken
from navigator_kernel.skills.install.lockfile import (
    Entries,
    entries_in,
    lock_bytes,
    lock_entry,
    manifest_in,
    pin,
    read_lock,
    receipts_in,
    records_bytes,
)
from navigator_kernel.skills.install.plans import PlannedSkill, scanned
from navigator_kernel.skills.install.update import open_origin, planned, source_from_receipt
from navigator_kernel.text import clean, suggestions
from navigator_kernel.values.receipt import FILE_LIMIT, Abilities, Receipt

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.reading import SourceReader


class RestoredSkill(Struct, frozen=True, kw_only=True):
    """`action` is `restored`, `removed` or `kept`. If it was restored, `findings` are its own, and `change` is what
    differs from the skill that was here before, if one was."""

    name: str
    action: str
    links: list[str]
    backup: str
    findings: list[dict[str, Any]] = field(default_factory=list)
    change: SkillChange | None = None


class RestoreResult(Struct, frozen=True, kw_only=True):
    """`to` is the stamp of the earlier lock of a rollback."""

    to: str | UnsetType = UNSET
    level: str
    target: str
    dry_run: bool
    changed: bool
    skills: list[RestoredSkill]


class RepairedPlace(Struct, frozen=True, kw_only=True):
    """The number of `skills`, the `rewritten` files, the `missing` folders, the skills whose receipt is `unreadable`
    and cannot be made again, each with what to do, the removed links that led to nothing, and the number of left-overs
    of interrupted changes that were `swept`."""

    level: str
    target: str
    skills: int = 0
    rewritten: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    unlinked: list[str] = field(default_factory=list)
    swept: int = 0


def install_locked(
    names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions, *, frozen: bool
) -> RestoreResult:
    """Brings the skills `names`, or all, to what the lock says. What is here and not in the lock is uninstalled; if
    `frozen`, nothing is, and it is Refused: the lock would have to change to have it.

    NotFound without a lock file or for a name that it lacks, IntegrityMismatch if a source no longer has these bytes,
    Refused if a skill was edited; `force` restores it and keeps a copy.
    """
    if not frozen and not place.lock.is_file():
        raise UsageProblem("no source is named", hint="navigator skill install owner/repo --skill NAME")
    if not place.lock.is_file():
        raise NotFound(
            f"there is no {place.told(place.lock)!r}", hint="install a skill, or run this in the folder of the lock"
        )
    locked = receipts_in(read_lock(place.lock), place, deps)
    if names:
        if missing := [name for name in names if name not in locked]:
            message = f"{clean(missing[0], lines=False)!r} is not in {place.told(place.lock)!r}"
            raise unknown_name(SkillNotFound, message, suggestions(missing[0], locked), hint="leave --skill out")
        return _restored({name: locked[name] for name in names}, (), place, deps, options)
    extra = sorted(read_receipts(place).keys() - locked.keys())
    if extra and frozen:
        hint = "leave --frozen out to uninstall them; navigator install SOURCE adds them to the lock"
        raise Refused(f"installed and not in the lock: {', '.join(extra)}", hint=hint, skills=extra)
    return _restored(locked, extra, place, deps, options)


def rollback(to: str, place: InstallScope, deps: InstallDeps, options: InstallOptions) -> RestoreResult:
    """Takes back the last change, or every change since the lock of that stamp; skills that these brought are
    uninstalled. Entries of the lock that came from elsewhere meanwhile stay. NotFound if there is no such lock."""
    stamps = sorted(path.stem for path in place.locks.glob("*.json"))
    chosen = [stamp for stamp in stamps if stamp.startswith(to)] if to else stamps[-1:]
    if len(chosen) != 1:
        hint = f"--to one of: {', '.join(stamps[-10:])}" if stamps else "nothing was changed here yet"
        raise NotFound(f"no earlier lock is called {clean(to, lines=False)!r}" if to else "no earlier lock", hint=hint)
    before = entries = read_lock(place.lock)
    for stamp in reversed(stamps[stamps.index(chosen[0]) :]):
        path = place.locks / f"{stamp}.json"
        earlier, made = read_lock(path), json.loads(path.read_bytes()).get("made")
        if made is None:  # a lock of an earlier version does not say what was changed
            made = {**entries, **dict.fromkeys(earlier.keys() - entries.keys())}
        undone = {name for name, entry in made.items() if pin(entries.get(name) or {}) == pin(entry or {})}
        kept = {name: entry for name, entry in entries.items() if name not in undone}
        entries = kept | {name: earlier[name] for name in undone & earlier.keys()}
    locked, receipts = receipts_in(entries, place, deps), read_receipts(place)
    going = [name for name in sorted(receipts) if name in before and name not in entries]
    about = {name: one for name, one in locked.items() if entries[name] != before.get(name)}
    result, linked = _restored(about, going, place, deps, options, lock=entries), own_links(place)
    others = [name for name in receipts if name in entries and name not in about]
    skills = [
        RestoredSkill(name=name, action="kept", links=told_links(place, linked, name), backup="") for name in others
    ]
    return replace(result, to=chosen[0], skills=sorted([*result.skills, *skills], key=lambda one: one.name))


def _restored(
    locked: Mapping[str, Receipt],
    going: Sequence[str],
    place: InstallScope,
    deps: InstallDeps,
    options: InstallOptions,
    *,
    lock: Entries | None = None,
) -> RestoreResult:
    """Brings what is here to `locked`, without those in `going`. The lock becomes `lock`; without it, it stays."""
    receipts_now = read_receipts(place)
    missing = [
        receipt
        for name, receipt in locked.items()
        if not _is_same(receipt, here := receipts_now.get(name)) or not _is_whole(here, place)
    ]
    coming = _fetched(missing, deps, options)
    plans = {plan.receipt.name: plan for plan in coming}
    changes = {
        name: changed_by(plan, receipts_now[name], place, deps, edited=not _is_whole(receipts_now[name], place))
        for name, plan in plans.items()
        if name in receipts_now and os.path.lexists(place.skills / name)
    }
    there: list[PlannedSkill] = []
    for receipt in locked.values() if options.trust_lock else ():
        skill = None if receipt in missing else manifest_in(place.skills / receipt.name)
        if skill is not None:
            plan = PlannedSkill(skill=skill, receipt=receipt, contents=_contents(receipt, place))
            there.append(scanned(plan, deps, is_locked=True)._replace(receipt=receipt))
    linked, links = own_links(place), list(locked) if options.link else []
    stamp = deps.clock.now().replace(":", "").replace(".", "")
    with open_change(place, deps, dry_run=options.dry_run) as change:
        refuse_unlinkable(place, links)
        names, receipts = names_in(place), change.receipts
        late = [one.name for one in locked.values() if one not in missing and not _is_same(one, receipts.get(one.name))]
        if late:
            raise Busy(f"another command changed {', '.join(late)} meanwhile", hint="try again")
        keep: dict[str, str] = {}
        for name in (*(plan.receipt.name for plan in coming), *going):
            refuse_taken(name, place, names)
            target = place.skills / name
            if not os.path.lexists(target):
                continue
            if (installed := receipts.get(name)) is None:
                raise Refused(f"{str(target)!r} was not installed by navigator", hint="move the folder away")
            if target.is_symlink() or folder_digest(target, installed) != installed.digest:
                if not options.force:
                    message = f"skill {name!r} was changed since it was installed"
                    raise Refused(message, hint=options.undoing(name))
                keep[name] = f"{name}-{stamp}"
        agreed = locked if options.trust_lock else ()
        before = read_lock(place.lock)
        after = before if lock is None else lock
        change.apply(coming, going, keep=keep, links=links, agreed=agreed, lock=after, there=there)
    actions = {**dict.fromkeys(locked, "kept"), **{one.name: "restored" for one in missing}}
    actions |= dict.fromkeys(going, "removed")
    skills = [
        RestoredSkill(
            name=name,
            action=action,
            links=told_links(place, {*linked, *links}, name),
            backup=place.told(place.backups / keep[name]) if name in keep else "",
            findings=[finding.to_dict() for finding in plans[name].findings] if name in plans else [],
            change=changes.get(name),
        )
        for name, action in sorted(actions.items())
    ]
    changed = bool(coming or going or set(links) - linked) or after != before
    return RestoreResult(
        level=place.level, target=place.target, dry_run=options.dry_run, changed=changed, skills=skills
    )


def _is_whole(installed: Receipt | None, place: InstallScope) -> bool:
    """Whether the skill is installed, and its files are as they were then."""
    if installed is None:
        return False
    target = place.skills / installed.name
    try:
        return not target.is_symlink() and folder_digest(target, installed) == installed.digest
    except KernelError:  # there is none, or another command is removing it
        return False


def _is_same(locked: Receipt, installed: Receipt | None) -> bool:
    return installed is not None and replace(installed, installed_at=locked.installed_at, can=locked.can) == locked


def _fetched(missing: Sequence[Receipt], deps: InstallDeps, options: InstallOptions) -> list[PlannedSkill]:
    """Prepares the `missing` skills, opening each source once per commit; IntegrityMismatch if files differ."""
    groups: dict[tuple[str, str], list[Receipt]] = {}
    for receipt in missing:
        groups.setdefault((receipt.source, receipt.commit), []).append(receipt)
    made: list[PlannedSkill] = []
    for receipts in groups.values():
        with _locked_origin(receipts[0], deps, options) as reader:
            places = {skill.folder: skill for skill in reader.found}
            gone = [receipt.name for receipt in receipts if receipt.subpath not in places]
            if gone:
                raise IntegrityMismatch(f"{reader.source.label!r} has no {gone[0]!r} any more", hint="update the lock")
            plans = planned([(receipt, places[receipt.subpath]) for receipt in receipts], reader, deps)
        if deps.scanner is not None:
            deps.scanner.ahead([(plan.skill, plan.contents) for plan in plans])
        for receipt, plan in zip(receipts, plans, strict=True):
            if plan.receipt.digest != receipt.digest or plan.receipt.name != receipt.name:
                message = f"skill {receipt.name!r} is not what the lock says: {plan.receipt.digest}"
                raise IntegrityMismatch(message, hint="the source was changed; nothing was installed")
            whole = scanned(plan, deps, is_locked=True)
            made.append(whole._replace(receipt=replace(receipt, can=whole.receipt.can)))
    return made


@contextmanager
def _locked_origin(receipt: Receipt, deps: InstallDeps, options: InstallOptions) -> Iterator[SourceReader]:
    """Opens the source at the commit of a receipt; FetchFailed says so if the source has no such commit any more."""
    try:
        with open_origin(source_from_receipt(receipt, ref=receipt.commit), deps, options, install=True) as reader:
            yield reader
    except FetchFailed as error:
        if error.data.get("reason") != "ref" or not receipt.commit:
            raise
        source = clean(receipt.source, lines=False)
        message = f"{source!r} has no commit {receipt.commit[:12]} any more, which the lock wants for {receipt.name!r}"
        hint = f"its history was rewritten; navigator update {receipt.name} shows what it has now, and takes that"
        raise FetchFailed(message, hint=hint, reason="ref") from error


def _contents(receipt: Receipt, place: InstallScope) -> dict[str, bytes]:
    folder = place.skills / receipt.name
    paths = [file.path for file in receipt.files if (folder / file.path).is_file()]
    return {path: read_bounded(folder / path, FILE_LIMIT) for path in paths}


def repair(
    place: InstallScope, deps: InstallDeps, take: Mapping[str, Side] | None = None, *, dry_run: bool = False
) -> RepairedPlace:
    """Rebuilds the database of a place from its folders and receipts, a receipt from the lock, and a lock that cannot
    be read from itself and the receipts (X-38). A correct file stays untouched; a copy of one that cannot be read is
    kept among the records.

    A lock with conflict markers is merged entry by entry: ConsentNeeded if both sides changed one and `take` names no
    side for it."""
    if not place.inner.is_dir() and not dangling(place) and _is_readable(place):
        return RepairedPlace(level=place.level, target=place.target)
    refuse_escape(place)
    if dry_run:
        swept = len([*place.inner.glob("change-*"), *place.inner.glob(INTENT)])
        receipts, rewritten, unreadable = _rewritten(place, deps, take or {})
        unlinked = dangling(place)
    else:
        with suppress(Damaged):  # a change that cannot be finished is removed below
            settle(place, deps.writer)
        prepare(place, deps.writer)
        with file_lock(place.guard):
            swept = sweep(place, deps.writer)
            receipts, rewritten, unreadable = _rewritten(place, deps, take or {})
            unlinked = dangling(place)
            for slot in rewritten:
                # A person may still read something in an unreadable file; the same bytes get the same name, however
                # often a repair is broken off
                if slot.startswith("receipt/") or (slot == "lock" and not _is_readable(place)):
                    path = slot_path(place, slot)
                    before = bytes_of(path) or b""
                    copy = f"{path.name}.damaged-{blake2b(before, digest_size=4).hexdigest()}"
                    deps.writer.write(place.inner / copy, before)
            with InstallTransaction(place, deps.writer) as change:
                for slot, data in [*rewritten.items(), *((f"link/{name}", None) for name in unlinked)]:
                    change.write(slot, data)
                change.commit()
    locked = entries_in(rewritten["lock"], place.lock) if "lock" in rewritten else _entries(place)
    return RepairedPlace(
        level=place.level,
        target=place.target,
        skills=len(receipts),
        rewritten=[place.told(slot_path(place, slot)) for slot in rewritten],
        missing=sorted(name for name in {*receipts, *locked} if not (place.skills / name).is_dir()),
        unreadable=unreadable,
        unlinked=[place.told(link_path(place, name)) for name in unlinked],
        swept=swept,
    )


def _rewritten(
    place: InstallScope, deps: InstallDeps, take: Mapping[str, Side]
) -> tuple[Mapping[str, Receipt], dict[str, bytes], dict[str, str]]:
    """All receipts, the contents by slot of the files that must be rewritten, and the skills whose receipts stay
    unreadable, with what to do."""
    damaged: list[str] = []
    receipts = dict(read_receipts(place, damaged))
    lock = _mended(place, receipts, deps, take)
    rows: Sequence[Mapping[str, Any]] | None = None
    with suppress(Damaged):
        rows = read_rows(place.database)
    row_of = {str(row.get("name")): row for row in rows or ()}
    again, unreadable = dict[str, Receipt](), dict[str, str]()
    for name in damaged:
        row = row_of.get(name, {})
        try:
            receipt = receipts_in({name: lock[name]}, place, deps)[name]
        except (KeyError, Damaged):
            source = row.get("repo") or "its source"
            unreadable[name] = f"move {place.told(place.skills / name)} away and install it again from {source}"
            continue
        can, skill = Abilities(), manifest_in(place.skills / name)
        with suppress(KernelError):
            if skill is not None and folder_digest(place.skills / name, receipt) == receipt.digest:
                can = abilities(skill, _contents(receipt, place))
        again[name] = replace(receipt, installed_at=str(row.get("synced_at") or receipt.installed_at), can=can)
    receipts |= again
    contents = {f"receipt/{name}": receipt_bytes(receipt) for name, receipt in again.items()}
    if lock != _entries(place) or not _is_readable(place) or (receipts and not place.lock.is_file()):
        contents["lock"] = lock_bytes(lock)
    contents["database"] = records_bytes(place, receipts, rebuild=rows is None, damaged=list(unreadable))
    current = {slot: bytes_of(slot_path(place, slot)) for slot in contents}
    return receipts, {slot: data for slot, data in contents.items() if current[slot] != data}, unreadable


def _mended(
    place: InstallScope, receipts: Mapping[str, Receipt], deps: InstallDeps, take: Mapping[str, Side]
) -> Entries:
    """What the lock says: if git could not merge it, what both sides say; if it cannot be read or there is none, what
    of it can be, and the receipts. An entry that contradicts itself becomes that of the receipt, if there is one."""
    content = bytes_of(place.lock)
    here = {name: lock_entry(receipt) for name, receipt in receipts.items()}
    if content is None:
        return here
    try:
        entries = entries_in(content, place.lock)
    except Damaged as error:
        if error.data.get("newer"):
            raise
        sides = sides_of(place.lock, content)
        entries = merged(sides, take) if sides is not None else {**here, **saved(content)}
    mended: dict[str, Mapping[str, Any]] = {}
    for name, entry in entries.items():
        mended[name] = entry
        try:
            receipts_in({name: entry}, place, deps)
        except Damaged:
            mended[name] = here.get(name, entry)
    return mended


def _is_readable(place: InstallScope) -> bool:
    with suppress(Damaged):
        read_lock(place.lock)
        return True
    return False


def _entries(place: InstallScope) -> Entries:
    """The lock's entries, if the lock can be read."""
    with suppress(Damaged):
        return read_lock(place.lock)
    return {}
