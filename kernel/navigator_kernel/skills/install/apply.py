"""The only way to change installed skills: folders, receipts, lock and database together, all of it or nothing (X-38).

New folders are prepared in a scratch folder. Then the intent is written, with the old and new content of every file,
and from that moment the change counts: a process that finds an intent that nobody is working on finishes it.
"""

from __future__ import annotations

import json
import os
import secrets
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Self

from msgspec import Struct, field

from navigator_kernel.adapters.files.database import file_lock, read_rows
from navigator_kernel.adapters.files.writer import HALF_WRITTEN, read_bounded
from navigator_kernel.adapters.stores.project_state import look
from navigator_kernel.errors import Damaged, IntegrityMismatch, KernelError, Refused
from navigator_kernel.skills.catalog.aliases import sidecar_bytes, sidecar_path
from navigator_kernel.skills.catalog.place import (
    InstallScope,
    drop_attributes,
    held_link,
    keep_bytes,
    link_path,
    link_text,
    own_links,
    prepare,
    refuse_escape,
)
from navigator_kernel.skills.catalog.receipts import folder_digest, read_receipts, receipt_bytes
from navigator_kernel.skills.formats.names import NAME
from navigator_kernel.skills.install.lockfile import (
    Entries,
    entries_in,
    lock_bytes,
    lock_entry,
    read_lock,
    records_bytes,
    with_unknown,
)
from navigator_kernel.text import lazy_compile

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from navigator_kernel.ports import Writer
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.plans import PlannedSkill
    from navigator_kernel.values.receipt import Receipt


VERSION = 2
INTENT = "intent"  # no receipt can have this name
KEPT_LOCKS = 50
MANY = 16  # from this many skills on, threads save time
_SIZE_LIMIT = 256 * 1024 * 1024  # bytes of a file whose old content is kept for a rollback
_SCRATCH = lazy_compile(r"change-[0-9a-f]{16}")
_STAMP = lazy_compile(r"\w[\w.-]{0,119}")


@contextmanager
def open_change(
    place: InstallScope, deps: InstallDeps, *, dry_run: bool = False, tolerant: bool = False
) -> Iterator[Change]:
    """A change of installed skills: inside the context, under the place's lock, `apply` makes it once. A dry run makes
    all checks and changes nothing. Damaged if a record that would be rewritten cannot be read; if `tolerant`, a skill
    with an unreadable receipt only keeps what lock and database know of it."""
    refuse_escape(place)
    if dry_run:
        yield Change(place, deps, None, tolerant=tolerant)
        return
    prepare(place, deps.writer)
    with file_lock(place.guard), InstallTransaction(place, deps.writer) as transaction:
        change = Change(place, deps, transaction, tolerant=tolerant)
        yield change
    change.agree()


class Change:
    """`receipts` are those of the installed skills before the change, `damaged` the skills whose receipt cannot be
    read."""

    def __init__(
        self, place: InstallScope, deps: InstallDeps, transaction: InstallTransaction | None, *, tolerant: bool
    ) -> None:
        self._place, self._deps, self._transaction = place, deps, transaction
        self.damaged: list[str] = []
        self.receipts = refuse_damage(place, self.damaged if tolerant else None)
        self._subjects: dict[str, list[str]] = {}

    def apply(
        self,
        coming: Sequence[PlannedSkill] = (),
        going: Sequence[str] = (),
        *,
        keep: Mapping[str, str] | None = None,
        links: Sequence[str] = (),
        agreed: Collection[str] = (),
        wanted: Sequence[Receipt] = (),
        lock: Entries | None = None,
        there: Sequence[PlannedSkill] = (),
    ) -> None:
        """Writes and removes skills. `keep` names the backups of folders that are replaced. `links` are skills that get
        a link; a removed skill loses its link. `agreed` are the skills that the command is also the person's agreement
        to (DESIGN, who may do what), among those to write and those that are `there` already; a lock file or a receipt
        that came with a clone never is (X-43).

        The lock changes in the entries of `coming`, `going` and `wanted` only, which are skills that are here already;
        or it becomes `lock`, whatever is here."""
        if self._transaction is None:
            return
        place, writer, change, keep = self._place, self._deps.writer, self._transaction, keep or {}
        receipts = {name: receipt for name, receipt in self.receipts.items() if name not in going}
        for name in filter(self.receipts.__contains__, going):  # a skill may be in the lock and not here
            change.drop(name, keep=keep.get(name, ""))
            change.write(f"receipt/{name}", None)
            change.write(f"aliases/{name}", None)
        for name in sorted(own_links(place).intersection(going)):
            change.write(f"link/{name}", None)
        for name in links:
            change.write(f"link/{name}", link_text(place, name).encode())
        with writer.together():
            folders = [change.folder(plan.receipt.name, keep=keep.get(plan.receipt.name, "")) for plan in coming]
            if len(coming) < MANY:
                for plan, folder in zip(coming, folders, strict=True):
                    _stage_one(plan, folder, writer)
            else:
                _stage_together(coming, folders, writer)
            for plan in coming:
                name = plan.receipt.name
                aliases = bytes_of(sidecar_path(place.inner, name))
                change.write(f"receipt/{name}", receipt_bytes(plan.receipt))
                change.write(f"aliases/{name}", sidecar_bytes(plan.skill, name, aliases, plan.about, plan.queries))
        receipts |= {plan.receipt.name: plan.receipt for plan in coming}
        if coming:
            keep_bytes(place, writer)
        if coming or going:
            skills = {plan.receipt.name: plan.skill for plan in coming}
            change.write("database", records_bytes(place, receipts, coming=skills, damaged=self.damaged))
            # Recorded before the change is made; if that fails, the change is not made
            for plan in coming:
                for one in plan.receipt.accepted:
                    facts = {"skill": plan.receipt.name, "digest_of_skill": plan.receipt.digest, **one.to_dict()}
                    self._deps.audit.record("accepted", **facts)
            came = [{**plan.receipt.identity, "verdict": plan.verdict} for plan in coming]
            self._deps.audit.record("changed", place=place.told(place.skills), came=came, went=list(going))
        if lock is not None:
            self._lock(change, lock_bytes(lock))
        elif coming or going or wanted:
            if os.path.lexists(place.lock):
                entries = read_lock(place.lock)
            else:  # a lock that is not there yet has an entry for each skill that is
                entries = {name: lock_entry(receipt) for name, receipt in self.receipts.items()}
            self._lock(change, lock_bytes(entries, [*wanted, *(plan.receipt for plan in coming)], going))
        change.commit()
        if going and not receipts and not self.damaged:
            drop_attributes(place, writer)
        known = [plan for plan in (*coming, *there) if plan.receipt.name in agreed]
        self._subjects = {
            "installed by command": [agreement for plan in known for agreement in plan.agreements],
            "accepted by command": [one for plan in coming for one in plan.granted],
        }

    def agree(self) -> None:
        """Stores the consents of the command. A failure does not undo the change: the person is asked later."""
        with suppress(KernelError):
            for note, subjects in self._subjects.items():
                if subjects and self._deps.consents is not None:
                    self._deps.consents.trust(*subjects, note=note)

    def _lock(self, change: InstallTransaction, lock: bytes) -> None:
        """Writes the lock; the old one is kept for `rollback`, with the entries that this change makes. A lock that
        says the same stays as it is written."""
        place, before = self._place, bytes_of(self._place.lock)
        entries = {} if before is None else entries_in(before, place.lock)
        if before is not None:
            lock = with_unknown(lock, before)
            if json.loads(lock) == json.loads(before):
                return
        change.write("lock", lock)
        if before is not None:
            after = entries_in(lock, place.lock)
            made = {name: after.get(name) for name in {*entries, *after} if entries.get(name) != after.get(name)}
            stamp, at = self._deps.clock.now().replace(":", "").replace(".", ""), 0
            while os.path.lexists(place.locks / f"{stamp}-{at:03}.json"):
                at += 1
            change.write(f"locks/{stamp}-{at:03}", lock_bytes(entries, made=made))
            for old in sorted(place.locks.glob("*.json"))[: -(KEPT_LOCKS - 1)]:
                change.write(f"locks/{old.stem}", None)


def refuse_damage(place: InstallScope, damaged: list[str] | None = None) -> Mapping[str, Receipt]:
    """The receipts; Damaged if a record that a change would rewrite cannot be read. An unreadable receipt only adds its
    name to `damaged`, if that is given."""
    read_rows(place.database)
    read_lock(place.lock)
    return read_receipts(place, damaged)


def _stage_together(plans: Sequence[PlannedSkill], folders: Sequence[Path], writer: Writer) -> None:
    """Writes on several threads, which wait for the system most of the time; the first error is raised at the end."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(os.cpu_count() or 1, 4)) as pool:
        for _ in pool.map(_stage_one, plans, folders, [writer] * len(plans)):
            pass


def _stage_one(plan: PlannedSkill, folder: Path, writer: Writer) -> None:
    """Writes the files of a skill and checks their digest."""
    writer.write_new(folder, {file.path: (plan.contents[file.path], file.mode) for file in plan.receipt.files})
    if folder_digest(folder, plan.receipt) != plan.receipt.digest:
        raise IntegrityMismatch(f"skill {plan.receipt.name!r} was not written as it was read", hint="check the disk")


class _Intent(Struct):
    """`folders` maps a skill to the name under which its old folder is kept, empty for none; `put` are the skills that
    get a new one. `files` maps a slot to its old and its new content, None for no file."""

    scratch: Path
    folders: dict[str, str] = field(default_factory=dict)
    put: set[str] = field(default_factory=set)
    files: dict[str, tuple[bytes | None, bytes | None]] = field(default_factory=dict)


class InstallTransaction:
    """A context under the place's lock: `folder`, `drop` and `write` collect changes, `commit` makes them. Leaving it
    without a commit leaves everything as it was."""

    def __init__(self, place: InstallScope, writer: Writer) -> None:
        self._place, self._writer = place, writer
        self._intent = _Intent(scratch=place.inner / f"change-{secrets.token_hex(8)}")
        self._data: dict[str, bytes | None] = {}

    def __enter__(self) -> Self:
        _finish(self._place, self._writer)
        _tidy(self._place, self._writer)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if not os.path.lexists(self._place.inner / INTENT):
            self._writer.remove(self._intent.scratch)

    def folder(self, name: str, *, keep: str = "") -> Path:
        """The path for the new folder of skill `name`; the old folder is kept as `keep` below `backups`."""
        self._intent.folders[name] = keep
        self._intent.put.add(name)
        return self._intent.scratch / "new" / name

    def drop(self, name: str, *, keep: str = "") -> None:
        """Removes the folder of skill `name`."""
        self._intent.folders[name] = keep

    def write(self, slot: str, data: bytes | None) -> None:
        """Sets the new content of a slot's file, None to remove it: `lock`, `database`, `receipt/<name>`,
        `aliases/<name>`, `locks/<stamp>`, or `link/<name>`, a link whose content is its target."""
        self._data[slot] = data

    def commit(self) -> bool:
        """Commits; returns whether anything changed. After an error nothing has, or the next command completes it."""
        intent, scratch = self._intent, self._intent.scratch
        for slot, data in self._data.items():
            if (before := _current(self._place, slot)) != data:
                intent.files[slot] = before, data
        if not intent.folders and not intent.files:
            return False
        self._writer.make_folder(scratch)
        folders = {name: [name in intent.put, keep] for name, keep in intent.folders.items()}
        files = {slot: [_as_text(before), _as_text(data)] for slot, (before, data) in intent.files.items()}
        body = {"v": VERSION, "scratch": scratch.name, "seal": _seal(scratch), "folders": folders, "files": files}
        self._writer.write(self._place.inner / INTENT, json.dumps(body).encode())  # durable before the first move
        try:
            with self._writer.together():
                _apply(self._intent, self._place, self._writer, strict=True)
            self._writer.remove(self._place.inner / INTENT)
        except BaseException:
            with self._writer.together():
                self._take_back()
            self._writer.remove(self._place.inner / INTENT)
            raise
        return True

    def _take_back(self) -> None:
        """Undoes what `_apply` has done so far."""
        intent, place, writer = self._intent, self._place, self._writer
        for name, keep in intent.folders.items():
            new, old, target = _folders(intent, name, place)
            if keep and os.path.lexists(place.backups / keep) and not os.path.lexists(old):
                writer.move(place.backups / keep, old)
            if name in intent.put and not os.path.lexists(new) and os.path.lexists(target):
                writer.move(target, new)
            if os.path.lexists(old) and not os.path.lexists(target):
                writer.move(old, target)
        for slot, (before, _) in intent.files.items():
            _set(place, slot, before, writer, strict=False)


def settle(place: InstallScope, writer: Writer) -> bool:
    """Finishes a change that another process began and did not finish; returns whether there was one.

    Waits for a change that is under way. Busy if that takes too long, Damaged if the intent cannot be read.
    """
    if not os.path.lexists(place.inner / INTENT):
        return False
    refuse_escape(place)
    with file_lock(place.guard):
        return _finish(place, writer)


def _finish(place: InstallScope, writer: Writer) -> bool:
    intent = _read(place)
    if intent is None:
        return False
    with writer.together():
        _apply(intent, place, writer, strict=False)
    writer.remove(place.inner / INTENT)
    writer.remove(intent.scratch)
    return True


def sweep(place: InstallScope, writer: Writer) -> int:
    """Removes the remains of interrupted changes, under the lock, and returns how many there were."""
    unfinished = os.path.lexists(place.inner / INTENT)
    writer.remove(place.inner / INTENT)
    return int(unfinished) + _tidy(place, writer)


def _tidy(place: InstallScope, writer: Writer) -> int:
    """Removes scratch folders and half-written files of killed processes, and returns how many there were."""
    remains = [path for path in place.inner.glob("change-*") if _SCRATCH.fullmatch(path.name)]
    remains += [path for folder in (place.inner, place.locks) for path in folder.glob(HALF_WRITTEN)]
    for path in remains:
        writer.remove(path)
    files = [place.lock, place.database]
    return len(remains) + sum(map(writer.sweep, files))


def _apply(intent: _Intent, place: InstallScope, writer: Writer, *, strict: bool) -> None:
    """Applies the intent; steps that are already done are skipped."""
    for name in intent.folders:
        new, old, target = _folders(intent, name, place)
        if name in intent.put and not os.path.lexists(new):
            continue  # done
        if os.path.lexists(target) and not os.path.lexists(old):
            writer.make_folder(old.parent)
            writer.move(target, old)
        if name in intent.put:
            writer.move(new, target)
    for slot, (_, data) in intent.files.items():
        _set(place, slot, data, writer, strict=strict)
    for name, keep in intent.folders.items():
        _, old, _ = _folders(intent, name, place)
        if keep and os.path.lexists(old):
            writer.make_folder(place.backups)
            writer.move(old, place.backups / keep)


def _folders(intent: _Intent, name: str, place: InstallScope) -> tuple[Path, Path, Path]:
    """The paths of the new folder, of the old folder's backup, and of the skill."""
    return intent.scratch / "new" / name, intent.scratch / "old" / name, place.skills / name


def _set(place: InstallScope, slot: str, data: bytes | None, writer: Writer, *, strict: bool) -> None:
    """Writes or removes a link. A foreign file in its place is kept, and Refused if `strict`."""
    path = slot_path(place, slot)
    if not slot.startswith("link/"):
        if bytes_of(path) != data:
            writer.remove(path) if data is None else writer.write(path, data)
        return
    try:
        if _current(place, slot) != data:
            writer.remove(path) if data is None else writer.link(path, link_text(place, path.name))
    except Refused:
        if strict:
            raise


def _current(place: InstallScope, slot: str) -> bytes | None:
    """The content of a slot, None for no file; Refused if a foreign file is in place of a link."""
    path = slot_path(place, slot)
    if not slot.startswith("link/"):
        return bytes_of(path)
    target = held_link(place, path.name)
    return None if target is None else target.encode()


def bytes_of(path: Path) -> bytes | None:
    try:
        return read_bounded(path, _SIZE_LIMIT)
    except FileNotFoundError:
        return None


def slot_path(place: InstallScope, slot: str) -> Path:
    """The file of a slot; Refused for other names, so that an intent cannot name anything else."""
    kind, _, name = slot.partition("/")
    single = {"lock": place.lock, "database": place.database}
    named: Mapping[str, Callable[[], Path]] = {
        "receipt": lambda: place.inner / f"{name}.json",
        "aliases": lambda: sidecar_path(place.inner, name),
        "locks": lambda: place.locks / f"{name}.json",
        "link": lambda: link_path(place, name),
    }
    path = single.get(slot)
    if kind in named and (_STAMP if kind == "locks" else NAME).fullmatch(name):
        path = named[kind]()
    if path is None:
        raise Refused(f"a change cannot write {slot!r}", hint="navigator skill repair")
    return path


def _read(place: InstallScope) -> _Intent | None:
    """The intent on disk, or None if it was written elsewhere: a repository must not supply one."""
    try:
        raw = json.loads(read_bounded(place.inner / INTENT, _SIZE_LIMIT))
        if raw["v"] != VERSION or not _SCRATCH.fullmatch(raw["scratch"]):
            raise ValueError("another version wrote it")
        intent = _Intent(scratch=place.inner / raw["scratch"])
        seen = look(str(intent.scratch))
        seals = {_seal(intent.scratch), f"{seen.device}:{seen.inode}"}  # the second is that of earlier versions
        if seen.inode == 0 or raw["seal"] not in seals:
            return None
        for name, (put, keep) in raw["folders"].items():
            if not NAME.fullmatch(name) or (keep and not _STAMP.fullmatch(keep)):
                raise ValueError(f"{name!r} is not a name")
            intent.folders[name] = keep
            intent.put |= {name} if put else set()
        for slot, (before, data) in raw["files"].items():
            slot_path(place, slot)
            intent.files[slot] = _bytes(before), _bytes(data)
        return intent
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, Refused) as error:
        hint = "navigator doctor --repair starts afresh from the folders"
        raise Damaged(f"an unfinished change of {str(place.skills)!r} cannot be read", hint=hint) from error


def _as_text(data: bytes | None) -> str | None:
    """`data` as JSON text, without loss for any bytes."""
    return None if data is None else data.decode("utf-8", errors="surrogateescape")


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8", errors="surrogateescape")


def _seal(scratch: Path) -> str:
    """A value that ties an intent to this folder, also after its disk is mounted again with another device number; a
    copy or checkout has another one. Empty without the folder."""
    seen = look(str(scratch))
    return f"{seen.inode}:{seen.born or seen.device}" if seen.inode else ""
