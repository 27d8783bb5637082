"""Checks the sources of installed skills for updates, and installs them."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import read_bounded
from navigator_kernel.adapters.processes.line_diff import unified
from navigator_kernel.errors import Damaged, FetchFailed, KernelError, Refused, SkillNotFound
from navigator_kernel.skills.catalog.place import own_links, told_links
from navigator_kernel.skills.catalog.receipts import folder_files, read_receipt, read_receipts
from navigator_kernel.skills.install.apply import check_changes, commit_changes
from navigator_kernel.skills.install.deps import InstallDeps, open_source_tree
from navigator_kernel.skills.install.install import owned
from navigator_kernel.skills.install.inventory import compared
from navigator_kernel.skills.install.plans import PlannedSkill, drafts, scanned, titled
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.discover import LINK
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean, fold
from navigator_kernel.values.receipt import FILE_LIMIT
from navigator_kernel.values.standing import standing_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.discover import Found
    from navigator_kernel.values.receipt import Receipt


def source_from_receipt(receipt: Receipt, *, ref: str | None = None) -> Source:
    """The source of a receipt, at its ref or at `ref`. Refused like any source."""
    return parse_source(receipt.source, base=Path("/"), ref=receipt.ref if ref is None else ref)


@contextmanager
def open_origin(source: Source, deps: InstallDeps, options: InstallOptions) -> Iterator[SourceReader]:
    """Opens the source and finds all its skills."""
    with open_source_tree(source, deps, options) as tree:
        reader = SourceReader(source, tree)
        with suppress(SkillNotFound):
            reader.find()
        yield reader


def locate_again(receipt: Receipt, reader: SourceReader) -> Found | None:
    """The skill at its old path, else the only one with its name, else None."""
    for found in reader.found:
        if found.folder == receipt.subpath:
            return found
    name = fold(receipt.declared or receipt.name)
    moved = [found for found in reader.found if fold(reader.named(found)) == name]
    return moved[0] if len(moved) == 1 else None


def planned(pairs: Sequence[tuple[Receipt, Found]], reader: SourceReader, deps: InstallDeps) -> list[PlannedSkill]:
    """Prepares installed skills again, each under its installed name."""
    places = {found.folder: found for _, found in pairs}
    drawn = {plan.receipt.subpath: plan for plan in drafts(list(places.values()), reader, deps.clock)}
    return [
        titled(drawn[found.folder], found, reader, receipt.name if receipt.declared else "") for receipt, found in pairs
    ]


State = Literal["current", "changed", "moved", "deleted", "removed", "unreachable"]

_OTHERS = frozenset({"deleted", "removed", "unreachable"})  # states of skills that are neither updated nor kept


class OutdatedEntry(Struct, frozen=True, kw_only=True):
    """An installed skill compared with its source: `plan` if the source has changes, `edited` local changes. The source
    has `deleted` it, or another command has `removed` it from here meanwhile."""

    receipt: Receipt
    state: State
    commit: str = ""
    subpath: str = ""
    plan: PlannedSkill | None = None
    edited: tuple[str, ...] = ()
    problem: str = ""

    def to_dict(self) -> dict[str, Any]:
        held = self.receipt
        told: dict[str, Any] = {"name": held.name, "state": self.state, "from": held.commit, "to": self.commit}
        return {**told, "path": self.subpath, "edited": list(self.edited), "problem": self.problem}


def outdated(
    names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions, *, diffs: bool = False
) -> dict[str, Any]:
    """`{level, target, count, skills: [{name, state, from, to, path, edited, problem}]}`, with `diffs` also the `diff`
    of each. A skill whose receipt cannot be read has the state `unreadable`. Writes nothing."""
    damaged: list[str] = []
    news = _news(names, place, deps, options, damaged)
    more = {one.receipt.name: {"diff": _difference(one, place)} if diffs else {} for one in news}
    told = [{**one.to_dict(), **more[one.receipt.name]} for one in news]
    told += [{**_unreadable(name, place), **({"diff": ""} if diffs else {})} for name in damaged]
    count = len([one for one in told if one["state"] != "current"])
    return {"level": place.level, "target": place.target, "count": count, "skills": told}


def update(names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions) -> dict[str, Any]:
    """`{level, target, dry_run, changed, skills: […]}` with an action each: updated, kept, deleted, removed,
    unreachable, or unreadable for a receipt that cannot be read; and the verdict of the scanners if it is updated. A
    link that leads to a skill leads to the new one.

    Refused if a skill that would be replaced was edited here; the error names its files. `force` replaces it and keeps
    a copy.
    """
    damaged: list[str] = []
    news = _news(names, place, deps, options, damaged)
    coming = [one for one in news if one.plan is not None]
    edited = {one.receipt.name: list(one.edited) for one in coming if one.edited}
    if edited and not options.force:
        shown = "; ".join(f"{name}: {', '.join(files[:5])}" for name, files in edited.items())
        hint = "--force replaces them and keeps a copy; name the other skills to update these alone"
        raise Refused(f"edited since installed: {shown}", hint=hint, edited=edited)
    deps.ahead([(one.plan.skill, one.plan.contents) for one in coming if one.plan is not None])
    plans = [scanned(one.plan, deps, options) for one in coming if one.plan is not None]
    mine = list[PlannedSkill]()  # without those that another command removed or changed meanwhile

    def decide(receipts: Mapping[str, Receipt]) -> tuple[Sequence[PlannedSkill], Sequence[str]]:
        mine.extend(
            plan for one, plan in zip(coming, plans, strict=True) if receipts.get(one.receipt.name) == one.receipt
        )
        return mine, ()

    stamp = deps.clock.now().replace(":", "").replace(".", "")
    keep = {name: f"{name}-{stamp}" for name in edited}
    if options.dry_run:
        check_changes(place, decide, damaged)
    elif plans:
        commit_changes(place, deps, decide, keep=keep, agrees=_agrees_again(deps), damaged=damaged)
    linked = own_links(place)
    verdicts = {plan.receipt.name: plan.verdict for plan in mine}
    news = [one if one.plan is None or one.receipt.name in verdicts else _left(one, place) for one in news]
    told = [{**one.to_dict(), "action": _action(one), "backup": _backup(one, keep, place)} for one in news]
    told += [{**_unreadable(name, place), "action": "unreadable", "backup": ""} for name in dict.fromkeys(damaged)]
    told = [
        {**one, "links": told_links(place, linked, one["name"]), "verdict": verdicts.get(one["name"], "")}
        for one in told
    ]
    head = {"level": place.level, "target": place.target, "dry_run": options.dry_run}
    return {**head, "changed": bool(mine), "skills": told}


def _left(one: OutdatedEntry, place: InstallScope) -> OutdatedEntry:
    """The entry of a skill that another command removed or changed meanwhile."""
    held = read_receipt(place, one.receipt.name)
    if held is None:
        return replace(one, state="removed", plan=None, edited=())
    same = one.plan is not None and held.digest == one.plan.receipt.digest
    problem = "" if same else "another command changed it meanwhile"
    return replace(one, receipt=held, state="current" if same else one.state, plan=None, edited=(), problem=problem)


def _difference(one: OutdatedEntry, place: InstallScope) -> str:

    return difference(place.skills / one.receipt.name, one.plan.contents) if one.plan else ""


def _agrees_again(deps: InstallDeps) -> Callable[[PlannedSkill, Mapping[str, Receipt]], bool]:
    """An update agrees to a skill's new bytes only if the person had agreed to the bytes that it replaces, from the
    same source: receipts that a clone brought are not enough (X-43)."""
    consents = deps.consents()
    subjects = frozenset(consents.subjects()) if consents is not None else frozenset()

    def agrees(plan: PlannedSkill, before: Mapping[str, Receipt]) -> bool:
        old = before.get(plan.receipt.name)
        if old is None or old.source != plan.receipt.source:
            return False
        return standing_of(old.name, clean(old.origin, lines=False), old.digest, subjects) != "unknown"

    return agrees


def _action(one: OutdatedEntry) -> str:
    return "updated" if one.plan is not None else one.state if one.state in _OTHERS else "kept"


def _backup(one: OutdatedEntry, keep: Mapping[str, str], place: InstallScope) -> str:
    name = keep.get(one.receipt.name)
    return place.told(place.backups / name) if name else ""


def _unreadable(name: str, place: InstallScope) -> dict[str, Any]:
    try:
        read_receipt(place, name)
        problem = ""
    except Damaged as error:
        problem = f"{error.message}; {error.hint}"
    return {"name": name, "state": "unreadable", "from": "", "to": "", "path": "", "edited": [], "problem": problem}


def _news(
    names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions, damaged: list[str]
) -> list[OutdatedEntry]:
    """One entry for each receipt, by name; each source is opened once per ref. The names of unreadable receipts are
    added to `damaged`; Damaged if one of `names` is among them."""
    wanted = [owned(name, place) for name in names]
    held = read_receipts(place, damaged)
    groups: dict[tuple[str, str], list[Receipt]] = {}
    for name in dict.fromkeys(name for name in wanted or held if name in held):  # one may be removed meanwhile
        groups.setdefault((held[name].source, held[name].ref), []).append(held[name])
    found: dict[str, OutdatedEntry] = {}
    for receipts in groups.values():
        try:
            with open_origin(source_from_receipt(receipts[0]), deps, options) as reader:
                for receipt in receipts:
                    found[receipt.name] = _of(receipt, reader, place, deps)
        except FetchFailed as error:
            for receipt in receipts:
                found[receipt.name] = OutdatedEntry(receipt=receipt, state="unreachable", problem=error.message)
    return [found[name] for name in sorted(found)]


def _of(receipt: Receipt, reader: Any, place: InstallScope, deps: InstallDeps) -> OutdatedEntry:
    commit, found = reader.tree.commit, locate_again(receipt, reader)
    if found is None:
        return OutdatedEntry(receipt=receipt, state="deleted", commit=commit)
    moved = found.folder != receipt.subpath
    whole = not any(entry.mode == LINK for entry in found.entries)  # a link's target may be outside the folder
    if not moved and whole and receipt.tree and found.tree == receipt.tree:
        return OutdatedEntry(receipt=receipt, state="current", commit=commit, subpath=found.folder)
    [plan] = planned([(receipt, found)], reader, deps)
    if plan.receipt.name != receipt.name:
        problem = f"it calls itself {plan.receipt.name!r} now"
        return OutdatedEntry(receipt=receipt, state="deleted", commit=commit, subpath=found.folder, problem=problem)
    if not moved and plan.receipt.digest == receipt.digest:
        return OutdatedEntry(receipt=receipt, state="current", commit=commit, subpath=found.folder)
    now, changes = compared(receipt, place)
    if now != receipt:
        if now is not None and (now.source, now.ref) == (receipt.source, receipt.ref):
            return _of(now, reader, place, deps)
        return OutdatedEntry(receipt=receipt, state="removed", commit=commit, subpath=found.folder)
    edited = tuple(sorted({path for paths in changes.values() for path in paths}))
    state: State = "moved" if moved else "changed"
    return OutdatedEntry(receipt=receipt, state=state, commit=commit, subpath=found.folder, plan=plan, edited=edited)


LONGEST = 200_000  # characters of the difference of one skill
FILE = 500_000  # bytes of a file that is compared line by line


def difference(folder: Path, contents: Mapping[str, bytes]) -> str:
    """The diff from the files in `folder` to `contents`; if it is longer than `LONGEST`, it is cut at a line."""
    here = {path: folder / path for path in _paths(folder)}
    lines: list[str] = []
    left = LONGEST
    for path in sorted({*here, *contents}):
        before = _read(here[path]) if path in here else None
        for line in _of_file(path, before, contents.get(path)):
            left -= len(line) + 1
            if left < 0:
                return "\n".join([*lines, "… the rest is not shown"])
            lines.append(line)
    return "\n".join(lines)


def _paths(folder: Path) -> list[str]:
    with suppress(KernelError):
        return [file.path for file in folder_files(folder)]
    return []


def _read(path: Path) -> bytes:
    try:
        return read_bounded(path, FILE_LIMIT)
    except (KernelError, OSError):
        return b"\0"  # shown as a file without lines


def _of_file(path: str, before: bytes | None, after: bytes | None) -> Iterator[str]:
    if before == after:
        return
    if any(b"\0" in data or len(data) > FILE for data in (before or b"", after or b"")):
        name = clean(path, lines=False)
        yield f"--- {f'a/{name}' if before is not None else '/dev/null'}"
        yield f"+++ {f'b/{name}' if after is not None else '/dev/null'}"
        yield "@@ the contents differ @@"
        return
    yield from unified(path, before, after).removesuffix("\n").split("\n")
