"""How a skill gets in: the whole way from a source to a folder, its receipt and its records."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.database import locked, read_rows
from navigator_kernel.errors import IntegrityMismatch, Refused, UsageProblem
from navigator_kernel.ports import Clock, Writer
from navigator_kernel.skills.change import Change
from navigator_kernel.skills.digest import folder_digest, tree_digest
from navigator_kernel.skills.discover import Found, choose, distinct
from navigator_kernel.skills.gate import LINK, SKILL_LIMIT, passed
from navigator_kernel.skills.lockfile import lock_bytes, read_lock
from navigator_kernel.skills.mapping import Row, SkillMapping
from navigator_kernel.skills.place import Place, refuse_escape
from navigator_kernel.skills.reading import Reader, open_source
from navigator_kernel.skills.receipts import read_receipt, read_receipts, receipt_bytes, receipt_path
from navigator_kernel.skills.records import records_bytes
from navigator_kernel.skills.source import Source
from navigator_kernel.text import clean, fold
from navigator_kernel.values.receipt import InstalledFile, Receipt, Verdict
from navigator_kernel.values.resource import Diagnostic, SkillDef

# A finding of level `error` blocks; None where nothing looked, which is not the same as nothing found.
Scan = Callable[[SkillDef, Mapping[str, bytes]], Sequence[Diagnostic] | None]


NOT_SCANNED = "not-scanned"  # the code of a finding that says that a scanner failed


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """What a change of the installed skills may reach."""

    writer: Writer
    clock: Clock
    mapping: SkillMapping
    scan: Scan | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One skill as it is to lie on disk: `contents` by path inside it."""

    skill: SkillDef
    receipt: Receipt
    contents: Mapping[str, bytes]
    findings: tuple[Diagnostic, ...] = ()


def install(
    source: Source, wanted: Sequence[str], place: Place, doors: Doors, *, everything: bool = False
) -> dict[str, Any]:
    """`{source, commit, level, changed, skills: […]}`. All of it happens, or nothing does."""
    refuse_damage(place)
    with open_source(source) as tree:
        reader = Reader(source, tree)
        chosen = _chosen(reader, wanted, everything=everything)
        plans = [_scanned(plan, doors.scan) for plan in _plans(chosen, reader, doors.clock)]
        siblings = observed(reader)
        commit = tree.commit
    refuse_escape(place)
    doors.writer.make_folder(place.inner)
    with locked(place.guard), Change(doors.writer, place.inner) as change:
        fresh = [plan for plan in plans if not _settled(plan, place)]
        staged = [(_staged(plan, change, doors.writer), plan) for plan in fresh]
        for folder, plan in staged:
            target = place.skills / plan.receipt.name
            change.remove(target)
            change.move(folder, target)
            change.write(receipt_path(place, plan.receipt.name), receipt_bytes(plan.receipt))
        if fresh:
            derive(place, change)
        observe(siblings, place, doors.mapping, change)
        change.keep()
    names = {plan.receipt.name for plan in fresh}
    return {
        "source": source.label,
        "commit": commit,
        "level": place.level,
        "changed": bool(fresh),
        "skills": [_told(plan, place, changed=plan.receipt.name in names) for plan in plans],
    }


def refuse_damage(place: Place) -> None:
    """Damaged where a record that a change would rewrite cannot be read."""
    read_rows(place.database)
    read_lock(place.lock)
    read_receipts(place)


def derive(place: Place, change: Change, gone: str = "") -> None:
    """Writes the lock and the database anew from the receipts; `gone` names a skill that has just left."""
    receipts = read_receipts(place)
    change.write(place.lock, lock_bytes(read_lock(place.lock), receipts.values(), gone))
    change.write(place.database, records_bytes(place, receipts))


def observed(reader: Reader) -> tuple[Row, ...]:
    """A row of the mapping for every skill of the source, described where its manifest was read (X-35)."""
    repository = reader.source.repository
    rows = []
    for found in reader.found if repository else ():
        skill = reader.known(found)
        name, text = (skill.name, skill.description) if skill else (found.name, "")
        rows.append(Row(name, text, repository, found.folder))
    return tuple(rows)


def observe(rows: Sequence[Row], place: Place, mapping: SkillMapping, change: Change) -> None:
    """Adds `rows` to the observed region; only a project has a mapping that grows."""
    text = mapping.grown(rows) if rows and place.level == "project" else None
    if text is not None:
        change.write(mapping.path, text)


def _chosen(reader: Reader, wanted: Sequence[str], *, everything: bool) -> Sequence[Found]:
    found = reader.find()
    if wanted:
        return choose(found, wanted, reader.named, reader.alike)
    found = distinct(found, reader.alike)
    if everything or len(found) == 1:
        return found
    names = sorted(clean(skill.name, lines=False) for skill in found)
    listed = ", ".join(names[:20]) + (", …" if len(names) > 20 else "")
    message = f"{reader.source.label!r} holds {len(names)} skills and none is named"
    raise UsageProblem(message, hint=f"add --skill NAME or --all; it has: {listed}", skills=names)


def _plans(chosen: Sequence[Found], reader: Reader, clock: Clock) -> list[Plan]:
    links = reader.read(entry.oid for skill in chosen for entry in skill.entries if entry.mode == LINK)
    files = {skill.folder: passed(skill, links) for skill in chosen}
    blobs = reader.read(file.oid for planned in files.values() for file in planned)
    now = clock.now()
    plans: list[Plan] = []
    for skill in chosen:
        manifest = reader.manifest_from(skill, blobs[skill.manifest.oid])
        contents = {file.path: blobs[file.oid] for file in files[skill.folder]}
        modes = {file.path: file.mode for file in files[skill.folder]}
        plans.append(_plan(manifest, skill, contents, modes, reader, now))
    _refuse_twins(plans)
    return plans


def _plan(
    manifest: SkillDef, found: Found, contents: Mapping[str, bytes], modes: Mapping[str, int], reader: Reader, now: str
) -> Plan:
    if sum(map(len, contents.values())) > SKILL_LIMIT:
        message = f"skill {manifest.name!r} is over {SKILL_LIMIT} bytes"
        raise Refused(message, hint="tell its author", reason="too-large")
    files = tuple(
        InstalledFile(path=path, sha256=hashlib.sha256(data).hexdigest(), mode=modes[path], size=len(data))
        for path, data in sorted(contents.items())
    )
    receipt = Receipt(
        name=manifest.name,
        source=reader.source.url,
        ref=reader.source.ref,
        commit=reader.tree.commit,
        subpath=found.folder,
        tree=found.tree if reader.tree.commit else "",
        files=files,
        digest=tree_digest(files),
        verdict="not_scanned",
        installed_at=now,
    )
    return Plan(skill=manifest, receipt=receipt, contents=contents)


def _refuse_twins(plans: Sequence[Plan]) -> None:
    seen: dict[str, str] = {}
    for plan in plans:
        first = seen.setdefault(fold(plan.receipt.name), plan.receipt.subpath)
        if first != plan.receipt.subpath:
            paths = [first, plan.receipt.subpath]
            hint = f"name one by its path: {clean(', '.join(paths), lines=False)}"
            raise UsageProblem(f"two skills call themselves {plan.receipt.name!r}", hint=hint, paths=paths)


def _scanned(plan: Plan, scan: Scan | None) -> Plan:
    if scan is None:
        return plan
    seen = scan(plan.skill, plan.contents)
    if seen is None:
        return plan
    findings = tuple(seen)
    blocking = [finding for finding in findings if finding.level == "error"]
    if blocking:
        shown = "; ".join(clean(finding.message, lines=False) for finding in blocking[:3])
        facts = [finding.to_dict() for finding in findings]
        message = f"skill {plan.receipt.name!r} is not safe: {shown}"
        raise Refused(message, hint="read it before you trust it", findings=facts)
    verdict: Verdict = "warn" if findings else "ok"
    if any(finding.code == NOT_SCANNED for finding in findings):
        verdict = "not_scanned"
    return replace(plan, receipt=replace(plan.receipt, verdict=verdict), findings=findings)


def _settled(plan: Plan, place: Place) -> bool:
    """Whether the skill lies here already just so. Refused where what lies here is not ours to replace."""
    wanted, target = plan.receipt, place.skills / plan.receipt.name
    _refuse_lookalike(wanted.name, place)
    held = read_receipt(place, wanted.name)
    if held is None:
        if os.path.lexists(target):
            hint = "move the folder away, or choose another level"
            raise Refused(f"{str(target)!r} was not installed by navigator", hint=hint)
        return False
    if (held.source, held.subpath) != (wanted.source, wanted.subpath):
        origin = f"{held.source} {held.subpath}".strip()
        hint = f"navigator skill uninstall {wanted.name}, then install again"
        raise Refused(f"skill {wanted.name!r} is installed from another source: {origin!r}", hint=hint)
    if not os.path.lexists(target):
        return False
    if target.is_symlink() or folder_digest(target) != held.digest:
        hint = f"navigator skill verify {wanted.name} names the changes; uninstall it to start afresh"
        raise Refused(f"skill {wanted.name!r} was changed since it was installed", hint=hint)
    return held.digest == wanted.digest


def _refuse_lookalike(name: str, place: Place) -> None:
    for path in place.skills.iterdir():
        other = path.stem if path.suffix == ".md" else path.name
        if fold(other) == fold(name) and path.name != name:
            raise Refused(f"{path.name!r} is there already and reads like {name!r}", hint="move it away first")


def _staged(plan: Plan, change: Change, writer: Writer) -> Path:
    """The skill's files in a folder of the same file system, proved to be what was read."""
    folder = change.new_folder()
    for file in plan.receipt.files:
        writer.write(folder / file.path, plan.contents[file.path], mode=file.mode)
    if folder_digest(folder) != plan.receipt.digest:
        raise IntegrityMismatch(f"skill {plan.receipt.name!r} was not written as it was read", hint="check the disk")
    return folder


def _told(plan: Plan, place: Place, *, changed: bool) -> dict[str, Any]:
    receipt = plan.receipt
    return {
        "name": receipt.name,
        "path": place.told(place.skills / receipt.name),
        "kind": plan.skill.kind,
        "digest": receipt.digest,
        "files": len(receipt.files),
        "verdict": receipt.verdict,
        "changed": changed,
        "findings": [finding.to_dict() for finding in (*plan.findings, *plan.skill.diagnostics)],
    }
