"""Checks the sources of installed skills for updates, and installs them."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import asdict, replace

from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.errors import Damaged, FetchFailed, KernelError, NotLoadable, Refused, SkillNotFound
from navigator_kernel.skills.catalog.place import at_rest, own_links, told_links
from navigator_kernel.skills.catalog.receipts import read_receipt, read_receipts
from navigator_kernel.skills.install.abilities import abilities
from navigator_kernel.skills.install.apply import open_change
from navigator_kernel.skills.install.changes import Note, SkillChange, changed_by, difference
from navigator_kernel.skills.install.deps import InstallDeps, open_source_tree
from navigator_kernel.skills.install.install import owned, refuse_unmanaged
from navigator_kernel.skills.install.inventory import compared
from navigator_kernel.skills.install.lockfile import (
    LockState,
    lock_states,
    read_lock,
    receipts_in,
    wanted_entries,
)
from navigator_kernel.skills.install.plans import PlannedSkill, drafts, scanned, titled
from navigator_kernel.skills.install.selection import told_of
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.discover import LINK
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.text import clean, fold
from navigator_kernel.values.standing import standing_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from navigator_kernel.skills.catalog.place import InstallScope
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.options import InstallOptions
    from navigator_kernel.skills.source.discover import Found
    from navigator_kernel.skills.source.reading import Tree
    from navigator_kernel.values.receipt import Receipt


def source_from_receipt(receipt: Receipt, *, ref: str | None = None) -> Source:
    """The source of a receipt, at its ref or at `ref`. Refused like any source."""
    return parse_source(receipt.source, base=Path("/"), ref=receipt.ref if ref is None else ref)


@contextmanager
def open_origin(source: Source, deps: InstallDeps, options: InstallOptions, *, install: bool) -> Iterator[SourceReader]:
    """Opens the source, to install from it or only to compare, and finds all its skills."""
    with open_source_tree(source, deps, options, install=install) as tree:
        reader = SourceReader(source, tree)
        with suppress(SkillNotFound):
            reader.find()
        yield reader


def locate_again(receipt: Receipt, reader: SourceReader) -> Found | None:
    """The skill at its old path, else the only one with its name, else None."""
    for skill in reader.found:
        if skill.folder == receipt.subpath:
            return skill
    name = fold(receipt.declared or receipt.name)
    moved = [skill for skill in reader.found if fold(reader.named(skill)) == name]
    return moved[0] if len(moved) == 1 else None


def planned(pairs: Sequence[tuple[Receipt, Found]], reader: SourceReader, deps: InstallDeps) -> list[PlannedSkill]:
    """Prepares installed skills again, each under its installed name."""
    places = {skill.folder: skill for _, skill in pairs}
    plans, refused = drafts(list(places.values()), reader, deps.clock)
    if refused:
        raise refused[0][1]
    drawn = {plan.receipt.subpath: plan for plan in plans}
    return [
        titled(drawn[skill.folder], skill, reader, receipt.name if receipt.declared else "") for receipt, skill in pairs
    ]


State = Literal["current", "changed", "moved", "deleted", "removed", "refused", "unreachable", "unreadable"]

_OTHERS = frozenset(
    {"deleted", "removed", "refused", "unreachable"}
)  # states of skills that are neither updated nor kept


class OutdatedSkill(Struct, frozen=True, kw_only=True):
    """A skill that the lock wants, or that is here, compared with its source. `edited` are the files that were changed
    here. The source has `deleted` it, or another command has `removed` it from here meanwhile; what the source has is
    `refused`, as the problem says; `unreadable` is a receipt that cannot be read. `lock` says how what is here compares
    with the lock."""

    name: str
    state: State
    lock: LockState = "same"
    since: str = field(default="", name="from")
    to: str = ""
    path: str = ""
    edited: list[str] = field(default_factory=list)
    problem: str = ""
    change: SkillChange | None = None
    diff: str | UnsetType = UNSET


class OutdatedResult(Struct, frozen=True, kw_only=True):
    """`count` are the skills whose state is not `current`, or that are not here as the lock wants them."""

    level: str
    target: str
    count: int
    skills: list[OutdatedSkill]


class UpdatedSkill(OutdatedSkill, frozen=True, kw_only=True):
    """`action` is `updated`, `kept`, `pending` (it can do more, and nobody agreed yet to `digest`), `extra` (not
    updated, because the lock does not want it), or a state for which there is no update; `verdict` is that of the
    scanners if it was updated."""

    action: str
    backup: str = ""
    links: list[str]
    verdict: str = ""
    digest: str = ""


class UpdateResult(Struct, frozen=True, kw_only=True):
    """`left_out` are the errors of the refused skills, as in the result of an install."""

    level: str
    target: str
    dry_run: bool
    changed: bool
    skills: list[UpdatedSkill]
    left_out: list[dict[str, Any]]


class _News(Struct, frozen=True, kw_only=True):
    """What the source has for a skill: `receipt` is what the project wants, `here` that of the folder. `plan` is set if
    the source has something else than either."""

    receipt: Receipt
    state: State
    here: Receipt | None = None
    lock: LockState = "same"
    commit: str = ""
    subpath: str = ""
    plan: PlannedSkill | None = None
    edited: tuple[str, ...] = ()
    problem: str = ""
    change: SkillChange | None = None
    notes: tuple[Note, ...] = ()

    def shown(self, diff: str | UnsetType = UNSET) -> OutdatedSkill:
        return OutdatedSkill(
            name=self.receipt.name,
            state=self.state,
            lock=self.lock,
            since=self.receipt.commit,
            to=self.commit,
            path=self.subpath,
            edited=list(self.edited),
            problem=self.problem,
            change=self.change,
            diff=diff,
        )


def outdated(
    names: Sequence[str],
    place: InstallScope,
    deps: InstallDeps,
    options: InstallOptions,
    *,
    diffs: bool = False,
    plans: dict[str, PlannedSkill] | None = None,
) -> OutdatedResult:
    """Compares installed skills with their sources, with `diffs` line by line. Writes nothing, and scans nothing unless
    it fills `plans`, by name: the problem of a skill then says why an update would be refused."""
    news, damaged, _ = _news(names, place, deps, options, install=False)
    skills = []
    for one in news:
        if one.plan is not None:
            can = abilities(one.plan.skill, one.plan.contents)
            plan = one.plan._replace(receipt=replace(one.plan.receipt, can=can))
            findings: list[dict[str, Any]] = []
            if plans is not None:
                try:
                    plan = scanned(
                        plan, deps, options, is_locked=one.lock != "extra" and one.plan.receipt == one.receipt
                    )
                except Refused as error:
                    findings = list(error.data.get("findings", ()))
                    one = replace(one, problem=error.message)
                plans[one.receipt.name] = plan
            change = _change_of(one, plan, place, deps)
            one = replace(one, change=replace(change, findings=findings or change.findings))
        skills.append(one.shown(_diff_of(one, place) if diffs else UNSET))
    skills += [_unreadable(name, place, "" if diffs else UNSET) for name in damaged]
    count = sum(skill.state != "current" or skill.lock != "same" for skill in skills)
    return OutdatedResult(level=place.level, target=place.target, count=count, skills=skills)


def update(
    names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions, *, diffs: bool = False
) -> UpdateResult:
    """Installs what the sources have now, also of skills that the lock wants and that are not here; a skill that the
    lock does not want is updated only by name. A link that leads to a skill leads to the new one. A skill that can do
    more than before stays as it is, as `pending`, unless the options agree to that; so does one whose new files are
    `refused`, unless it is the only one, and the error is raised.

    Refused if a skill that would be replaced was edited here; the error names its files. `force` replaces it and keeps
    a copy.
    """
    news, damaged, refused = _news(names, place, deps, options, install=True)
    pending = [(one, one.plan) for one in news if one.plan is not None and (names or one.lock != "extra")]
    edited = {one.receipt.name: list(one.edited) for one, _ in pending if one.edited}
    if edited and not options.force:
        shown = "; ".join(f"{name}: {', '.join(files[:5])}" for name, files in edited.items())
        hint = "--force replaces them and keeps a copy; name the other skills to update these alone"
        raise Refused(f"edited since installed: {shown}", hint=hint, edited=edited)
    if deps.scanner is not None:
        deps.scanner.ahead([(plan.skill, plan.contents) for _, plan in pending])
    drawn, pending = pending, []
    for one, plan in drawn:
        try:
            is_locked = one.lock != "extra" and plan.receipt == one.receipt
            pending.append((one, scanned(plan, deps, options, is_locked=is_locked)))
        except Refused as error:
            if len(news) == 1:
                raise
            refused[one.receipt.name] = error
            news[news.index(one)] = replace(one, state="refused", problem=error.message, plan=None)
    changes = {one.receipt.name: _change_of(one, plan, place, deps) for one, plan in pending}
    texts = {one.receipt.name: _diff_of(one, place) for one, _ in pending} if diffs else {}
    waiting = {
        plan.receipt.name: plan.receipt.digest
        for _, plan in pending
        if changes[plan.receipt.name].is_growth and not options.grown and plan.receipt.digest not in options.agreed
    }
    news = [replace(one, change=changes.get(one.receipt.name)) for one in news]
    pending = [(one, plan) for one, plan in pending if plan.receipt.name not in waiting]
    stamp = deps.clock.now().replace(":", "").replace(".", "")
    backups = {name: f"{name}-{stamp}" for name in edited}
    coming: list[PlannedSkill] = []  # without those that another command removed or changed meanwhile
    if pending or options.dry_run:
        with open_change(place, deps, dry_run=options.dry_run, tolerant=True) as change:
            locked = read_lock(place.lock)
            same = [(one, plan) for one, plan in pending if change.receipts.get(one.receipt.name) == one.here]
            coming = [plan for one, plan in same if one.here is not None or one.receipt.name in locked]
            refuse_unmanaged(coming, change.receipts, place)
            agreed = [plan.receipt.name for plan in coming if agrees_again(plan, change.receipts, deps.agreed)]
            change.apply(coming, keep=backups, agreed=agreed)
        damaged = list(dict.fromkeys([*damaged, *change.damaged]))
    verdicts = {plan.receipt.name: plan.verdict for plan in coming}
    linked = own_links(place)
    skills: list[tuple[OutdatedSkill, str]] = []
    for one in news:
        name = one.receipt.name
        passed = one.plan is None or name in verdicts or name in waiting or (one.lock == "extra" and not names)
        if passed:
            result = one.shown(texts.get(name, UNSET))
        elif (now := read_receipt(place, name)) is None:
            result = replace(one, state="removed", edited=()).shown()
        else:  # another command changed it meanwhile
            is_updated = one.plan is not None and now.digest == one.plan.receipt.digest
            problem = "" if is_updated else "another command changed it meanwhile"
            state = "current" if is_updated else one.state
            result = replace(one, receipt=now, state=state, edited=(), problem=problem).shown()
        action: str = "updated" if result.name in verdicts else result.state if result.state in _OTHERS else "kept"
        action = "pending" if name in waiting else "extra" if one.lock == "extra" and action == "kept" else action
        skills.append((result, action))
    skills += [(_unreadable(name, place), "unreadable") for name in damaged]
    updated = [
        UpdatedSkill(
            **asdict(one),
            action=action,
            backup=place.told(place.backups / backups[one.name]) if one.name in backups and action == "updated" else "",
            links=told_links(place, linked, one.name),
            verdict=verdicts.get(one.name, ""),
            digest=waiting.get(one.name, ""),
        )
        for one, action in skills
    ]
    changed = bool(coming)
    return UpdateResult(
        level=place.level,
        target=place.target,
        dry_run=options.dry_run,
        changed=changed,
        skills=updated,
        left_out=[told_of(name, "", error).to_dict() for name, error in sorted(refused.items())],
    )


def _diff_of(one: _News, place: InstallScope) -> str:
    return difference(place.skills / one.receipt.name, one.plan.contents) if one.plan is not None else ""


def _change_of(one: _News, plan: PlannedSkill, place: InstallScope, deps: InstallDeps) -> SkillChange:
    is_wanted = plan.receipt.digest == one.receipt.digest
    return changed_by(plan, one.here, place, deps, notes=one.notes, edited=bool(one.edited), is_wanted=is_wanted)


def agrees_again(plan: PlannedSkill, before: Mapping[str, Receipt], subjects: frozenset[str]) -> bool:
    """Whether an update agrees to a skill's new bytes: only if the person had agreed to the bytes that it replaces,
    from the same source. Receipts that a clone brought are not enough (X-43)."""
    old = before.get(plan.receipt.name)
    if old is None or old.source != plan.receipt.source:
        return False
    return standing_of(old.name, clean(old.origin, lines=False), old.digest, subjects) != "unknown"


def _unreadable(name: str, place: InstallScope, diff: str | UnsetType = UNSET) -> OutdatedSkill:
    try:
        read_receipt(place, name)
        problem = ""
    except Damaged as error:
        problem = f"{error.message}; {error.hint}"
    return OutdatedSkill(name=name, state="unreadable", problem=problem, diff=diff)


def _news(
    names: Sequence[str], place: InstallScope, deps: InstallDeps, options: InstallOptions, *, install: bool
) -> tuple[list[_News], list[str], dict[str, KernelError]]:
    """The news for each skill of the lock and each receipt, by name, the names of unreadable receipts, and the errors
    of refused skills by name; the error of the only one is raised. Each source is opened once per ref. Damaged if one
    of `names` has an unreadable receipt."""
    damaged: list[str] = []
    with at_rest(place):
        entries, receipts_now = wanted_entries(place), read_receipts(place, damaged)
        states = lock_states(entries, receipts_now, place.skills)
    chosen = [owned(name, place, entries or ()) for name in names]
    wanted = {**receipts_now, **receipts_in(entries or {}, place, deps)}
    groups: dict[tuple[str, str], list[_News]] = {}
    for name in dict.fromkeys(chosen or sorted(wanted)):
        if (receipt := wanted.get(name)) is None or name in damaged:  # one may be removed meanwhile
            continue
        here = receipts_now.get(name)
        if here is not None and states[name] == "same":
            receipt = here
        known = _News(receipt=receipt, state="current", here=here, lock=states[name])
        groups.setdefault((receipt.source, receipt.ref), []).append(known)
    news: dict[str, _News] = {}
    refused: dict[str, KernelError] = {}
    is_only = sum(map(len, groups.values())) == 1
    for group in groups.values():
        try:
            with open_origin(source_from_receipt(group[0].receipt), deps, options, install=install) as reader:
                told = []
                for one in group:
                    try:
                        told.append(_of(one, reader, place, deps))
                    except (NotLoadable, Refused) as error:
                        refused[one.receipt.name] = error
                news |= {one.receipt.name: one for one in _with_history(told, reader.tree)}
        except FetchFailed as error:
            for one in group:
                news[one.receipt.name] = replace(one, state="unreachable", problem=error.message)
        except Refused as error:  # the source itself
            refused |= {one.receipt.name: error for one in group}
        for one in group:
            if (problem := refused.get(one.receipt.name)) is not None:
                if is_only:
                    raise problem
                news[one.receipt.name] = replace(one, state="refused", problem=problem.message)
    return [news[name] for name in sorted(news)], damaged, refused


def _with_history(news: Sequence[_News], tree: Tree) -> Iterator[_News]:
    """The news, with notes on a rewritten or unknown history and on authors that are new since the commit that is
    here."""
    seen: dict[str, list[Note]] = {}
    for one in news:
        earlier = (one.here or one.receipt).commit
        if one.plan is None or not isinstance(tree, GitSource) or earlier == tree.commit:
            yield one
            continue
        if earlier not in seen:
            seen[earlier] = notes = []
            if (history := tree.history(earlier)) is None:
                notes.append(("unknown", earlier[:12], tree.commit[:12]))
            else:
                if history.is_tag:
                    notes.append(("tag", clean(one.receipt.ref, lines=False), tree.commit[:12]))
                if not history.is_before:
                    notes.append(("history", earlier[:12], tree.commit[:12]))
                strangers = [author for author in history.since if author not in history.authors]
                if strangers and history.authors:
                    before = next(iter(sorted(history.authors)), "")
                    notes.append(("author", clean(before, lines=False), clean(", ".join(strangers[:3]), lines=False)))
        if one.here is None and one.plan.receipt == one.receipt:
            if not any(kind == "history" for kind, _, _ in seen[earlier]):
                yield one
                continue
            # The lock wants these bytes at a commit that may be gone
            plan = one.plan._replace(receipt=replace(one.receipt, commit=tree.commit))
            one = replace(one, state="changed", plan=plan)
        yield replace(one, notes=tuple(seen[earlier]))


def _of(known: _News, reader: SourceReader, place: InstallScope, deps: InstallDeps) -> _News:
    """`known` with what the source has of the skill."""
    receipt, here, skill = known.receipt, known.here, locate_again(known.receipt, reader)
    known = replace(known, commit=reader.tree.commit, subpath=skill.folder if skill else "")
    if skill is None:
        return replace(known, state="deleted")
    moved, is_here = skill.folder != receipt.subpath, known.lock not in {"missing", "stale"}
    whole = not any(entry.mode == LINK for entry in skill.entries)  # a link's target may be outside the folder
    if is_here and not moved and whole and receipt.tree and skill.tree == receipt.tree:
        return known
    [plan] = planned([(receipt, skill)], reader, deps)
    if plan.receipt.name != receipt.name:
        return replace(known, state="deleted", problem=f"it calls itself {plan.receipt.name!r} now")
    state: State = "moved" if moved else "changed"
    if not moved and plan.receipt.digest == receipt.digest:
        if is_here:
            return known
        state, plan = "current", plan._replace(receipt=receipt)  # as the lock wants it
    if here is None:
        return replace(known, state=state, plan=plan)
    now, changes = compared(here, place)
    if now != here:
        if now is not None and (now.source, now.ref) == (here.source, here.ref):
            wanted = now if receipt == here else receipt
            return _of(replace(known, receipt=wanted, here=now), reader, place, deps)
        return replace(known, state="removed")
    edited = () if known.lock == "missing" else tuple(sorted({path for paths in changes.values() for path in paths}))
    return replace(known, state=state, plan=plan, edited=edited)
