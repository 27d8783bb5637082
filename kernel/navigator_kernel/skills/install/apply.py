"""The only function that changes installed skills: folders, receipts, lock and database together (X-38)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.adapters.files.database import file_lock, read_rows
from navigator_kernel.errors import IntegrityMismatch, KernelError
from navigator_kernel.skills.catalog.aliases import sidecar_bytes, sidecar_path
from navigator_kernel.skills.catalog.digest import folder_digest
from navigator_kernel.skills.catalog.place import InstallScope, prepare, refuse_escape
from navigator_kernel.skills.catalog.receipts import read_receipts, receipt_bytes
from navigator_kernel.skills.install.change import InstallTransaction, held_bytes
from navigator_kernel.skills.install.links import link_text, own_links
from navigator_kernel.skills.install.lockfile import lock_bytes, read_lock
from navigator_kernel.skills.install.records import records_bytes

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.plans import PlannedSkill
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import SkillDef

KEPT_LOCKS = 50
MANY = 16  # from this many skills on, threads save time


def refuse_damage(place: InstallScope, damaged: list[str] | None = None) -> Mapping[str, Receipt]:
    """The receipts; Damaged if a record that a change would rewrite cannot be read. An unreadable receipt only adds its
    name to `damaged`, if that is given."""
    read_rows(place.database)
    read_lock(place.lock)
    return read_receipts(place, damaged)


def commit_changes(
    place: InstallScope,
    deps: InstallDeps,
    decide: Callable[[Mapping[str, Receipt]], tuple[Sequence[PlannedSkill], Sequence[str]]],
    *,
    keep: Mapping[str, str] | None = None,
    forget: bool = True,
    links: Sequence[str] = (),
    agrees: Callable[[PlannedSkill, Mapping[str, Receipt]], bool] = lambda _plan, _before: False,
    damaged: list[str] | None = None,
) -> bool:
    """Changes skills; returns whether anything changed. `decide` gets the receipts under the lock and returns the
    skills to write and to remove; it refuses by raising. `keep` names the backups of folders that are replaced. With
    `forget` a removed skill leaves the lock file, too. `links` are skills that get a link; a removed skill loses its
    link. `agrees` says for each skill to write, given the earlier receipts, whether the command is also the person's
    agreement to it (DESIGN, who may do what); a lock file or a receipt that came with a clone never is (X-43).
    Skills with an unreadable receipt, which are added to `damaged`, keep what lock and database know of them.
    """
    refuse_escape(place)
    prepare(place, deps.writer)
    with file_lock(place.guard), InstallTransaction(place, deps.writer) as change:
        before = refuse_damage(place, damaged)
        receipts = dict(before)
        coming, going = decide(receipts)
        agreed = [subject for plan in coming if agrees(plan, before) for subject in plan.agreements]
        keep = keep or {}
        for name in going:
            change.drop(name, keep=keep.get(name, ""))
            change.write(f"receipt/{name}", None)
            change.write(f"aliases/{name}", None)
            receipts.pop(name, None)
        for name in sorted(own_links(place).intersection(going)):
            change.write(f"link/{name}", None)
        for name in links:
            change.write(f"link/{name}", link_text(place, name).encode())
        with deps.writer.together():
            folders = [change.folder(plan.receipt.name, keep=keep.get(plan.receipt.name, "")) for plan in coming]
            _stage(coming, folders, deps.writer)
            for plan in coming:
                name = plan.receipt.name
                aliases = held_bytes(sidecar_path(place.inner, name))
                change.write(f"receipt/{name}", receipt_bytes(plan.receipt))
                change.write(f"aliases/{name}", sidecar_bytes(plan.skill, name, aliases, plan.about))
        receipts |= {plan.receipt.name: plan.receipt for plan in coming}
        new = {plan.receipt.name: plan.skill for plan in coming}
        if coming or going:
            _derive(place, change, receipts, new, going if forget else (), deps, damaged or ())
        _recorded(place, coming, going, deps)
        changed = change.commit()
    _agreed(agreed, coming, deps)
    return changed


def _recorded(place: InstallScope, coming: Sequence[PlannedSkill], going: Sequence[str], deps: InstallDeps) -> None:
    """Records the change before it is made; if that fails, the change is not made."""
    if coming or going:
        came = [{**plan.receipt.identity, "verdict": plan.verdict} for plan in coming]
        for plan in coming:
            for one in plan.receipt.accepted:
                deps.audit().record(
                    "accepted", skill=plan.receipt.name, digest_of_skill=plan.receipt.digest, **one.to_dict()
                )
        deps.audit().record("changed", place=place.told(place.skills), came=came, went=list(going))


def _agreed(subjects: Sequence[str], coming: Sequence[PlannedSkill], deps: InstallDeps) -> None:
    """Stores the consents of the command. A failure does not undo the change: the person is asked later."""
    granted = [subject for plan in coming for subject in plan.granted]
    consents = deps.consents() if subjects or granted else None
    with suppress(KernelError):
        if consents is not None and subjects:
            consents.trust(*subjects, note="installed by command")
        if consents is not None and granted:
            consents.trust(*granted, note="accepted by command")


def check_changes(
    place: InstallScope, decide: Callable[[Mapping[str, Receipt]], object], damaged: list[str] | None = None
) -> None:
    """Runs all checks of `commit_changes` and changes nothing."""
    refuse_escape(place)
    decide(refuse_damage(place, damaged))


def _derive(
    place: InstallScope,
    change: InstallTransaction,
    receipts: Mapping[str, Receipt],
    coming: Mapping[str, SkillDef],
    gone: Sequence[str],
    deps: InstallDeps,
    damaged: Sequence[str],
) -> None:
    """Writes the lock and the database from the receipts; the old lock is kept for `rollback`."""
    lock = lock_bytes(read_lock(place.lock), receipts.values(), gone)
    change.write("lock", lock)
    change.write("database", records_bytes(place, receipts, coming=coming, damaged=damaged))
    before = held_bytes(place.lock)
    if before is not None and before != lock:
        stamp = deps.clock.now().replace(":", "").replace(".", "")
        change.write(f"locks/{_free(place, stamp)}", before)
        for old in sorted(place.locks.glob("*.json"))[: -(KEPT_LOCKS - 1)]:
            change.write(f"locks/{old.stem}", None)


def _free(place: InstallScope, stamp: str) -> str:
    at = 0
    while os.path.lexists(place.locks / f"{stamp}-{at:03}.json"):
        at += 1
    return f"{stamp}-{at:03}"


def _stage(plans: Sequence[PlannedSkill], folders: Sequence[Path], writer: Writer) -> None:
    """Writes each skill's files in a folder of the same file system, many on several threads, which wait for the
    system most of the time; the first error is raised after all threads are done."""
    if len(plans) < MANY:
        for plan, folder in zip(plans, folders, strict=True):
            _stage_one(plan, folder, writer)
        return
    _stage_together(plans, folders, writer)


def _stage_together(plans: Sequence[PlannedSkill], folders: Sequence[Path], writer: Writer) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        for _ in pool.map(_stage_one, plans, folders, [writer] * len(plans)):
            pass


def _stage_one(plan: PlannedSkill, folder: Path, writer: Writer) -> None:
    """Writes the files of a skill and checks their digest."""
    writer.write_new(folder, {file.path: (plan.contents[file.path], file.mode) for file in plan.receipt.files})
    if folder_digest(folder) != plan.receipt.digest:
        raise IntegrityMismatch(f"skill {plan.receipt.name!r} was not written as it was read", hint="check the disk")
