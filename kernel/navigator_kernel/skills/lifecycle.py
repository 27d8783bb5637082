"""Every command of `navigator skill`: the one entry point through which installed skills change (LIF-1..6, AGT-6).

Each command is a method of `Lifecycle` with a typed result. What only some commands need is imported by them, because
`list` has a time budget.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType, field
from msgspec.structs import replace

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.errors import (
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
from navigator_kernel.skills.catalog.aliases import kept_examples, sidecar_path, with_examples
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.skills.catalog.place import InstallScope, at_rest, scope_at
from navigator_kernel.skills.catalog.receipts import folder_files, read_receipts
from navigator_kernel.skills.catalog.switches import (
    Switches,
    add_use,
    change_switches,
    read_switches,
    use_counts,
)
from navigator_kernel.skills.formats.names import refuse_rename
from navigator_kernel.skills.install.deps import open_source_tree
from navigator_kernel.skills.install.inventory import (
    Installed,
    SkillRow,
    compared,
    inventory,
    is_mine,
    is_touched,
    recorded,
)
from navigator_kernel.skills.install.lockfile import (
    LockState,
    lock_states,
    read_lock,
    receipts_in,
    wanted_entries,
)
from navigator_kernel.skills.options import InstallOptions, Target
from navigator_kernel.text import clean, fold, lazy_compile, suggestions
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer
    from navigator_kernel.skills.files import ConvertResult, ValidateResult
    from navigator_kernel.skills.install.conflict import Side
    from navigator_kernel.skills.install.deps import InstallDeps
    from navigator_kernel.skills.install.export import Form
    from navigator_kernel.skills.install.info import ScannedSkill, SourceInfo
    from navigator_kernel.skills.install.install import InstallResult, UninstallResult
    from navigator_kernel.skills.install.plans import PlannedSkill
    from navigator_kernel.skills.install.restore import RepairedPlace, RestoreResult
    from navigator_kernel.skills.install.update import OutdatedResult, UpdateResult
    from navigator_kernel.skills.source.address import Source
    from navigator_kernel.skills.source.reading import SourceReader, Tree
    from navigator_kernel.values.receipt import Receipt
    from navigator_kernel.values.resource import Level, SkillDef

PROFILE = lazy_compile(r"\w[\w.-]{0,63}")
PROFILE_WORDS = frozenset({"list", "none", "remove", "save", "show", "use"})  # commands, which a name would hide
UNSAFE = frozenset({"block", "not_scanned"})  # verdicts for which `scan` exits with 1
_NO_OPTIONS = InstallOptions()


class LockDifference(Struct, frozen=True, kw_only=True):
    """A skill that is here otherwise than the lock wants it, or was edited since it was installed."""

    name: str
    level: str
    target: str
    state: LockState | Literal["edited"]


class SkillList(Struct, frozen=True, kw_only=True):
    """`lock` names what differs from the lock."""

    count: int
    skills: list[SkillRow]
    problems: list[dict[str, Any]]
    lock: list[LockDifference]


class SkillInfo(SkillRow, frozen=True, kw_only=True):
    """An installed skill: its row, what its manifest declares, its files and its receipt."""

    license: str
    command: str
    tools: list[str]
    permissions: dict[str, Any]
    problems: list[str]
    files: list[str]
    receipt: dict[str, Any] | None


class SkillHit(SkillRow, frozen=True, kw_only=True):
    score: int
    reason: str


class SearchResult(Struct, frozen=True, kw_only=True):
    """`remote` are results from the catalogues, if they were searched."""

    query: str
    count: int
    skills: list[SkillHit]
    remote: list[dict[str, Any]] | UnsetType = UNSET


class VerifyResult(Struct, frozen=True, kw_only=True):
    """Each skill is `{name, level, target, state, ok, by_you, refused, modified, missing, extra, mode}`, where `state`
    is one of same, missing, extra, stale (see `lock_states`) and edited, and the lists name files; `refused` says which
    rule of a policy file it does not satisfy now."""

    count: int
    skills: list[dict[str, Any]]


class ScanResult(Struct, frozen=True, kw_only=True):
    count: int
    blocked: int
    skills: list[ScannedSkill]
    exit_code: int


class SwitchResult(Struct, frozen=True, kw_only=True):
    name: str
    enabled: bool
    changed: bool


class Profile(Struct, frozen=True, kw_only=True):
    """A named set of skills; `missing` are those that are not installed here."""

    name: str
    active: bool
    skills: list[str]
    missing: list[str]


class Profiles(Struct, frozen=True, kw_only=True):
    profiles: list[Profile]


class Uses(Struct, frozen=True, kw_only=True):
    name: str
    uses: int


class Examples(Struct, frozen=True, kw_only=True):
    """The requests that a model wrote for an installed skill."""

    name: str
    examples: list[str]


class RepairResult(Struct, frozen=True, kw_only=True):
    dry_run: bool
    levels: list[RepairedPlace]


class CachedRepository(Struct, frozen=True, kw_only=True):
    url: str
    bytes: int
    refs: list[str]
    used: str


class CacheResult(Struct, frozen=True, kw_only=True):
    """The fetched repositories; with `cleared`, how many there were, they are the removed ones."""

    count: int
    bytes: int
    repositories: list[CachedRepository]
    cleared: int | UnsetType = UNSET
    changed: bool | UnsetType = UNSET
    dry_run: bool | UnsetType = UNSET


class MappingResult(Struct, frozen=True, kw_only=True):
    """The known skills that are not installed, each `{name, description, repo, subpath, page, observed, install}`."""

    count: int
    rows: list[dict[str, Any]]


class Lifecycle(Struct, kw_only=True, dict=True):
    """Reads and changes installed skills. `levels` has the folder of skills of each level, in order of precedence;
    `agents` its `.agents/skills`, which comes right after it. The writer of `deps` may write to them and to the locks
    beside them, `state_writer` to `state`, the person's state of this project. `shipped` are the digests of this
    release's skills; `agreed` returns the subjects that the person agreed to; `marketplace` returns the address of one
    that the person has in Claude Code, empty if they have none of that name; `roots` returns all folders that skills
    are read from, in order: the skills of those that no install writes to are listed and never changed.

    Before each command, a change that another process left unfinished is finished."""

    root: Path
    levels: Mapping[Level, Path]
    deps: InstallDeps
    state: Path
    state_writer: Writer
    agents: Mapping[Level, Path] = field(default_factory=dict)
    shipped: Mapping[str, str] = field(default_factory=dict)
    agreed: Callable[[], frozenset[str]] = frozenset
    roots: Callable[[], Sequence[Root]] = tuple
    marketplace: Callable[[str], str] = lambda _name: ""

    def __post_init__(self) -> None:
        self.places: dict[tuple[Level, Target], InstallScope] = {}
        for level, path in self.levels.items():
            beside = self.agents.get(level)
            self.places[level, "claude"] = scope_at(level, path, self.root, shared=beside)
            if beside is not None:
                self.places[level, "agents"] = scope_at(level, beside, self.root, target="agents")

    # Commands that only read

    def installed(self, options: InstallOptions = _NO_OPTIONS) -> SkillList:
        """Lists the installed skills."""
        self.settle()
        skills, notes = self.found(options)
        problems = [note.to_dict() for note in notes if note.level == "error" or note.code == "shadowed"]
        rows = [skill.row() for skill in skills]
        differing: list[LockDifference] = []  # as far as the records and the times of files show it
        for place in self.chosen(options):
            receipts = read_receipts(place, [])
            entries = None
            try:
                entries = wanted_entries(place)
            except Damaged as error:
                path, why = place.told(place.lock), f"{error.message}; {error.hint}"
                problems.append(Diagnostic(code="lock-damaged", level="error", path=path, message=why).to_dict())
            for name, state in lock_states(entries, receipts, place.skills).items():
                edited = state == "same" and is_touched(receipts[name], place)
                if edited or state != "same":
                    where = {"level": place.level, "target": place.target}
                    differing.append(LockDifference(name=name, state="edited" if edited else state, **where))
        return SkillList(count=len(rows), skills=rows, problems=problems, lock=differing)

    def info(
        self, source: str, skills: Sequence[str] = (), options: InstallOptions = _NO_OPTIONS, *, here: bool = False
    ) -> SkillInfo | SourceInfo:
        """Describes an installed skill of that name, else the contents of the source; SkillNotFound for a name without
        a source, or if `here` excludes sources."""
        from navigator_kernel.skills.formats.manifest import declared

        with self._command(options, source) as deps:
            if (installed := self.held(_named(source, "source"))) is not None:
                skill, receipt, files = installed.skill, installed.receipt, list[str]()
                with suppress(KernelError):
                    if skill.folder is not None:
                        files = [clean(file.path, lines=False) for file in folder_files(skill.folder)]
                facts = {**installed.facts(), **declared(skill)}
                return SkillInfo(**facts, files=files, receipt=receipt.to_dict() if receipt else None)
            if here:
                raise self.unknown(source)
            if self.is_unknown(source):
                raise self.unknown(source, or_source=True)
            address, names = self.sourced(source, skills, options)
            if names and deps.scanner is not None:
                deps.scanner.start()
            with _reader(address, names, deps, options) as (reader, own):
                from navigator_kernel.skills.install.info import analyse

                return analyse(reader, own, deps)

    def search(
        self,
        query: str,
        options: InstallOptions = _NO_OPTIONS,
        *,
        limit: int = 20,
        catalogues: Sequence[str] | None = None,
    ) -> SearchResult:
        """Finds installed skills, best first (LIF-16), with `catalogues` also skills that these offer."""
        from navigator_kernel.skills.catalog.search import search

        self.settle()
        space = self.deps.seek(_named(query, "query"))
        rows: dict[str, Installed] = {}
        if space is None or options.user or options.target:
            rows = {one.skill.name: one for one in self.found(options)[0]}
            skills: Sequence[SkillDef] = [row.skill for row in rows.values()]
        else:
            tops = {root.path for root in self._looked_at(_NO_OPTIONS)}
            skills = [skill for skill in space.skills if (skill.folder or skill.path).parent in tops]
        names, sure = (space.names, space.sure) if space else ((), ())
        hits = search(skills, query, use_counts(self.state), names, sure)
        shown = hits[:limit]
        if not rows:
            places = self._places(self._looked_at(_NO_OPTIONS))
            found = recorded([hit.skill for hit in shown], places, self.shipped, self.agreed())
            rows = {one.skill.name: one for one in found}
        results = [SkillHit(**rows[hit.skill.name].facts(), score=hit.score, reason=hit.reason) for hit in shown]
        remote: list[dict[str, Any]] | UnsetType = UNSET
        if catalogues is not None:
            from navigator_kernel.skills.source.remote import search_remote

            remote = search_remote(query, catalogues, base=self.root, offline=options.offline)
        return SearchResult(query=clean(query, lines=False), count=len(hits), skills=results, remote=remote)

    def verify(self, name: str = "", options: InstallOptions = _NO_OPTIONS) -> VerifyResult:
        """Compares what is here with what was installed and with what the lock wants; IntegrityMismatch, with the
        changed files, if anything differs, Refused if a skill does not satisfy the rules of a policy file."""
        self.settle()
        checked: list[dict[str, Any]] = []
        folded, agreed = fold(name), self.agreed()
        for place in self.chosen(options):
            with at_rest(place):
                receipts = read_receipts(place)
                states = lock_states(wanted_entries(place), receipts, place.skills)
            for own, state in states.items():
                if folded not in {"", fold(own)}:
                    continue
                where = {"name": own, "level": place.level, "target": place.target}
                if (receipt := receipts.get(own)) is None:
                    files = {kind: list[str]() for kind in ("modified", "missing", "extra", "mode")}
                    checked.append({**where, "state": state, "ok": False, "by_you": False, "refused": "", **files})
                    continue
                now, files = compared(receipt, place)
                if now is not None:  # else another command has just removed it
                    known = "edited" if any(files.values()) and state == "same" else state
                    mine = is_mine(now, agreed)
                    refused = self.refusal(now, is_locked=known == "same")
                    why = refused.message if refused else ""
                    row = {"state": known, "ok": known == "same", "by_you": mine, "refused": why}
                    checked.append({**where, **row, **files})
        if folded and not checked:
            raise self.unknown(name)
        broken = [one for one in checked if not one["ok"]]
        if broken:
            for place in self.chosen(options):  # a lock that contradicts itself can be satisfied by no folder
                receipts_in(wanted_entries(place) or {}, place, self.deps)
            edited = [one for one in broken if one["state"] == "edited"]
            first = (edited or broken)[0]
            target: Target | None = "agents" if first["target"] == "agents" else None
            there = InstallOptions(user=first["level"] == "user", target=target)
            restore = there.command("install", "--frozen", "--force", "--skill", first["name"])
            undo = f"{restore} undoes the changes; navigator skill trust NAME accepts a skill as it is"
            settle = f"{there.command('install')} brings the folder to the lock"
            hint = f"{undo}; {settle}" if 0 < len(edited) < len(broken) else undo if edited else settle
            message = f"changed since installed: {', '.join(repr(one['name']) for one in edited)}"
            if len(edited) < len(broken):
                differing = ", ".join(f"{one['name']!r} ({one['state']})" for one in broken)
                message = f"not as the lock wants it: {differing}"
            raise IntegrityMismatch(message, hint=hint, skills=checked)
        if refused_now := [one for one in checked if one["refused"]]:
            names = [one["name"] for one in refused_now]
            hint = f"navigator skill uninstall {' '.join(names)} removes what the rules do not allow"
            message = f"installed against the rules: {', '.join(names)}"
            raise Refused(message, hint=hint, reason="policy", skills=checked)
        return VerifyResult(count=len(checked), skills=checked)

    def refusal(self, receipt: Receipt, *, is_locked: bool) -> Refused | None:
        """Why an installed skill could not be installed today, by the rules of the policy files; None if it could."""
        from navigator_kernel.skills.source.rules import refuse_skill

        verdict = "block" if receipt.accepted else receipt.verdict
        try:
            refuse_skill(self.deps.rules, receipt, verdict, is_locked=is_locked)
        except Refused as error:
            return error
        return None

    def check(self) -> int:
        """Checks the records without changing anything, and returns the number of skills; Damaged if one cannot be
        read."""
        from navigator_kernel.skills.install.apply import refuse_damage

        self.settle()
        damaged: list[str] = []
        count = 0
        for place in self.chosen(_NO_OPTIONS):
            count += len(refuse_damage(place, damaged))
            receipts_in(read_lock(place.lock), place, self.deps)
        if damaged:
            hint = "navigator doctor --repair makes them again, as far as the lock still knows the skills"
            raise Damaged(f"receipts that cannot be read: {', '.join(damaged)}", hint=hint)
        return count

    def scan(
        self,
        source: str = "",
        skills: Sequence[str] = (),
        options: InstallOptions = _NO_OPTIONS,
        *,
        here: bool = False,
    ) -> ScanResult:
        """Scans an installed skill or a source, and with `everything` all installed skills; `here` excludes sources.
        Only the cache of repositories is written."""
        from navigator_kernel.skills.install.info import scan_installed, scan_source

        with self._command(options, source) as deps:
            if deps.scanner is not None:
                deps.scanner.start()
            if options.everything and source:
                hint = "name a source, or say --all; every skill of a source is scanned without it"
                raise UsageProblem("--all means the installed skills; it takes no source", hint=hint)
            one = None if options.everything else self.held(_named(source, "source"))
            if options.everything or one is not None:
                if skills or options.ref:  # an installed skill is one skill at one commit
                    hint = "name the source that it came from"
                    raise UsageProblem("--skill and --ref choose from a source", hint=hint)
                chosen = [one] if one is not None else self.found(options)[0]
                rows = [row for each in chosen for row in scan_installed(each, self.root, deps, options)]
            elif here or self.is_unknown(source):
                raise self.unknown(source)
            else:
                address, names = self.sourced(source, skills, options)
                with _reader(address, names, deps, options) as (reader, own):
                    rows = scan_source(reader, own, deps)
        unsafe = sum(row.verdict in UNSAFE for row in rows)
        blocked = sum(row.verdict == "block" for row in rows)
        return ScanResult(count=len(rows), blocked=blocked, skills=rows, exit_code=1 if unsafe else 0)

    # Commands that store a choice

    def enable(self, name: str) -> SwitchResult:
        return self._switched(name, on=True)

    def disable(self, name: str) -> SwitchResult:
        return self._switched(name, on=False)

    def _switched(self, name: str, *, on: bool) -> SwitchResult:
        self.settle()
        own = self._known(name).skill.name

        def switch(now: Switches) -> Switches:
            return replace(now, disabled=now.disabled - {own} if on else now.disabled | {own})

        changed = change_switches(self.state, self.state_writer, switch)
        return SwitchResult(name=own, enabled=on, changed=changed)

    def profiles(self, name: str = "") -> Profiles:
        """The named sets of skills, or the one of that name; NotFound if there is none."""
        now, here = read_switches(self.state), {fold(one.skill.name) for one in self.found(_NO_OPTIONS)[0]}
        chosen = [_profile_named(name, now)] if name else sorted(now.profiles)
        return Profiles(
            profiles=[
                Profile(
                    name=one,
                    active=one == now.profile,
                    skills=list(now.profiles[one]),
                    missing=[skill for skill in now.profiles[one] if fold(skill) not in here],
                )
                for one in chosen
            ]
        )

    def save_profile(self, name: str, skills: Sequence[str] = ()) -> Profiles:
        """Names a set of skills, by default of those that are on; it replaces the set of that name, also where that is
        in use. A skill that is not installed is kept as it is written."""
        if not PROFILE.fullmatch(name) or name in PROFILE_WORDS:
            hint = f"letters, digits, '-', '_' and '.', at most 64; not {', '.join(sorted(PROFILE_WORDS))}"
            raise UsageProblem(f"{clean(name, lines=False)!r} cannot be the name of a profile", hint=hint)
        rows = [one.skill for one in self.found(_NO_OPTIONS)[0]]
        for odd in (one for one in skills if not one.strip() or clean(one, lines=False) != one):
            raise UsageProblem(f"{clean(odd, lines=False)!r} is not the name of a skill", hint="navigator skill list")
        spelled = {fold(skill.name): skill.name for skill in rows}
        names = [spelled.get(fold(one), one) for one in skills] or [skill.name for skill in rows if skill.enabled]

        def save(now: Switches) -> Switches:
            saved = replace(now, profiles={**now.profiles, name: tuple(sorted(set(names)))})
            return self._in_use(saved, name) if now.profile == name else saved

        change_switches(self.state, self.state_writer, save)
        return self.profiles(name)

    def use_profile(self, name: str) -> Profiles:
        """Switches on exactly the skills of a profile here; without a name, everything is as it was before the first
        one was used."""
        change_switches(
            self.state,
            self.state_writer,
            lambda now: self._in_use(now, _profile_named(name, now)) if name else _unused(now),
        )
        return self.profiles(name)

    def remove_profile(self, name: str) -> Profiles:
        """Forgets a profile; if it is in use, everything is as before."""

        def remove(now: Switches) -> Switches:
            gone = _profile_named(name, now)
            left = {one: skills for one, skills in now.profiles.items() if one != gone}
            return replace(_unused(now) if now.profile == gone else now, profiles=left)

        change_switches(self.state, self.state_writer, remove)
        return self.profiles()

    def _in_use(self, now: Switches, name: str) -> Switches:
        names = {one.skill.name for one in self.found(_NO_OPTIONS)[0]}
        before, on = now.before if now.profile else now.disabled, set(map(fold, now.profiles[name]))
        return replace(
            now, profile=name, before=before, disabled=frozenset(name for name in names if fold(name) not in on)
        )

    def record(self, name: str) -> Uses:
        """Adds one use of a skill, for the bonus in a search (LIF-16)."""
        self.settle()
        name = _named(name)
        return Uses(name=name, uses=add_use(self.state, name, self.state_writer))

    def examples(self, name: str, new: Sequence[str] | None = None) -> Examples:
        """The requests that a model wrote for an installed skill; `new` replaces them. UsageProblem for a skill without
        a receipt, because they are stored beside it."""
        from navigator_kernel.skills.install.apply import bytes_of

        self.settle()
        one = self._known(name)
        if one.receipt is None:
            hint = "write `examples:` into its SKILL.md, or navigator route MESSAGE --teach NAME"
            raise UsageProblem(f"{one.skill.name!r} was not installed: it has no receipt", hint=hint)
        path = sidecar_path(one.place.inner, one.receipt.name)
        if new is not None:
            with file_lock(one.place.guard):
                self.deps.writer.write(path, with_examples(bytes_of(path), list(new)))
        return Examples(name=one.skill.name, examples=kept_examples(bytes_of(path)))

    # Commands that change installed skills

    def install(self, source: str, skills: Sequence[str] = (), options: InstallOptions = _NO_OPTIONS) -> InstallResult:
        """Installs the named skills of a source, its only one, or with `everything` all that can be installed."""

        with self._command(options, source) as deps:
            address, names = self.sourced(source, skills, options)
            place = self.target(options)
            refuse_rename(options.rename, names)
            with _reader(address, names, deps, options, install=True) as (reader, own):
                from navigator_kernel.skills.install.install import collect, install_prepared

                options = replace(options, everything=options.everything or (bool(names) and not own))
                prepared = collect(reader, own, deps, options)
            return install_prepared(prepared, place, deps, options)

    def restore(
        self, names: Sequence[str] = (), options: InstallOptions = _NO_OPTIONS, *, frozen: bool = True
    ) -> RestoreResult:
        """Installs exactly what the lock file lists, or nothing; unless `frozen`, what it does not list goes."""
        from navigator_kernel.skills.install.restore import install_locked

        with self._command(options) as deps:
            return install_locked(names, self.target(options), deps, options, frozen=frozen)

    def uninstall(
        self, names: Sequence[str], options: InstallOptions = _NO_OPTIONS, *, repo: str = ""
    ) -> UninstallResult:
        """Removes skills by name, or every skill of a source."""
        from navigator_kernel.skills.install.install import uninstall

        self.settle()
        place = self.target(options)
        source = self.sourced(repo)[0] if repo else None
        if source is None and not names:
            raise UsageProblem("'name' is missing", hint="name a name")
        try:
            return uninstall(names, place, self.deps, options, source=source)
        except (SkillNotFound, Refused):  # it may be a skill of this release, or of another program
            places = {place.skills for place in self.places.values()}
            for one in filter(None, map(self.held, names)):
                name, hint = one.skill.name, f"navigator skill disable {one.skill.name} switches it off"
                if one.status == "shipped":
                    message = f"{name!r} is shipped with navigator and cannot be uninstalled"
                    raise Refused(message, hint=hint, reason="shipped") from None
                if one.place.skills not in places:
                    path = clean(one.place.told(one.skill.folder or one.skill.path), lines=False)
                    raise Refused(f"{name!r} was not installed by navigator: {path!r}", hint=hint) from None
            raise

    def outdated(
        self,
        names: Sequence[str] = (),
        options: InstallOptions = _NO_OPTIONS,
        *,
        diffs: bool = False,
        plans: dict[str, PlannedSkill] | None = None,
    ) -> OutdatedResult:
        """Shows what an update would find; nothing is written anywhere. It scans if it fills `plans`."""
        from navigator_kernel.skills.install.update import outdated

        with self._command(options), closing(self.deps.without_traces()) as deps:
            return outdated(names, self.target(options), deps, options, diffs=diffs, plans=plans)

    def update(
        self, names: Sequence[str] = (), options: InstallOptions = _NO_OPTIONS, *, diffs: bool = False
    ) -> UpdateResult:
        """Installs what the sources have now."""
        from navigator_kernel.skills.install.update import update

        with self._command(options) as deps:
            return update(names, self.target(options), deps, options, diffs=diffs)

    def rollback(self, to: str = "", options: InstallOptions = _NO_OPTIONS) -> RestoreResult:
        """Restores an earlier lock, the last one unless `to` names one by the beginning of its stamp."""
        from navigator_kernel.skills.install.restore import rollback

        with self._command(options) as deps:
            return rollback(to, self.target(options), deps, options)

    def repair(self, options: InstallOptions = _NO_OPTIONS, take: Mapping[str, Side] | None = None) -> RepairResult:
        """Rebuilds records from folders and receipts; an `.agents/skills` with nothing of ours is included only if
        `target` is set. It removes a change that cannot be finished. `take` names the side of a merge for
        each entry of the lock that both changed."""
        from navigator_kernel.skills.install.restore import repair

        places = [place for place in self.chosen(options) if place.level != "shipped"]
        if not options.target:
            places = [place for place in places if place.target == "claude" or place.inner.is_dir()]
        repaired = [repair(place, self.deps, take, dry_run=options.dry_run) for place in places]
        return RepairResult(dry_run=options.dry_run, levels=repaired)

    # Commands that read and write other files

    def export(
        self,
        names: Sequence[str],
        out: Path,
        options: InstallOptions = _NO_OPTIONS,
        *,
        packed: bool = False,
        form: Form | None = None,
    ) -> dict[str, Any]:
        """Copies the named skills, or with `everything` all that this release did not ship, to `out`; `form` is another
        form than folders and archives."""
        from navigator_kernel.skills.install.export import export, publish

        self.settle()
        rows = {fold(one.skill.name): one for one in self.found(options)[0]}
        if bool(names) == options.everything:
            raise UsageProblem("name the skills, or use --all", hint="navigator skill export NAME OUT")
        if (missing := next((name for name in names if fold(name) not in rows), None)) is not None:
            raise self.unknown(missing)
        if names:
            chosen = list({fold(name): rows[fold(name)] for name in names}.values())
        else:
            chosen = [row for row in rows.values() if row.status != "shipped"]
        if not chosen:
            raise NotFound("nothing is installed", hint="name a shipped skill to export it")
        installed, target = [place.skills for place in self.places.values()], self._path(out)
        if form and form != "zip":
            return publish(chosen, target, installed, form, force=options.force, dry_run=options.dry_run)
        ending = ".zip" if form else ".skill" if packed else ""
        return export(chosen, target, installed, packed=ending, force=options.force, dry_run=options.dry_run)

    def import_lock(self, file: Path | None = None, options: InstallOptions = _NO_OPTIONS) -> dict[str, Any]:
        """Installs the skills of a lock file of the npm package `skills`, by default the project's."""
        from navigator_kernel.skills.install.import_lock import FILE, import_lock

        with self._command(InstallOptions()) as deps:
            return import_lock(self._path(file or Path(FILE)), self.target(options), deps, options)

    def convert(
        self, path: Path, out: Path | None = None, *, force: bool = False, dry_run: bool = False
    ) -> ConvertResult:
        """Writes or shows the canonical SKILL.md of a file or a folder in any accepted layout."""
        from navigator_kernel.skills.files import convert

        self.settle()
        managed: list[Path] = []
        for place in self.places.values() if out is not None else ():
            managed += [*(place.skills / name for name in read_receipts(place)), place.inner, place.database]
        target = None if out is None else self._path(out)
        return convert(self._path(path), target, managed, force=force, dry_run=dry_run)

    def formats(self) -> dict[str, str]:
        """The accepted layouts of a skill, each with its description."""
        from navigator_kernel.skills.formats.layouts import FORMATS

        return dict(FORMATS)

    def cache(self, *, clear: bool = False, older_than: float | None = None, dry_run: bool = False) -> CacheResult:
        """Lists the cached repositories, or clears them; `older_than` is days since the last use."""
        cache = self.deps.repositories
        if cache is None:
            raise NotFound("this command keeps no repositories", hint="navigator skill cache")
        if older_than is not None and not clear:
            raise UsageProblem("--older-than says what --clear removes", hint="add --clear")
        rows = list(cache.listed())
        if older_than is not None:
            now = datetime.fromisoformat(self.deps.clock.now())
            days = [(now - datetime.fromisoformat(str(row["used_at"]))).total_seconds() / 86_400 for row in rows]
            rows = [row for row, age in zip(rows, days, strict=True) if age > older_than]
        repositories = [
            CachedRepository(
                url=clean(row["url"], lines=False), bytes=row["bytes"], refs=row["refs"], used=row["used_at"]
            )
            for row in rows
        ]
        result = CacheResult(count=len(rows), bytes=sum(row["bytes"] for row in rows), repositories=repositories)
        if not clear:
            return result
        cleared = 0 if dry_run else cache.clear(older_than)
        return replace(result, cleared=cleared, changed=bool(rows), dry_run=dry_run)

    def mapping(self, word: str = "") -> MappingResult:
        """The skills of known repositories that match `word`."""
        from navigator_kernel.skills.source.remote import known_skills

        rows = known_skills(word, self.deps.mapping)
        return MappingResult(count=len(rows), rows=rows)

    def validate(self, path: str, base: Path | None = None, *, strict: bool = False) -> ValidateResult:
        """Checks the installed skill `path`, if there is one, else the skills at `path`, relative to `base`."""
        from navigator_kernel.skills.files import validate_at

        self.settle()
        plain = "/" not in _named(path, "path") and not path.startswith(".")
        one = self.held(path) if plain else None
        if one is not None:
            return validate_at(one.skill.folder or one.skill.path, strict=strict)
        file = self._path((base or self.root) / path)
        if plain and not file.suffix and not os.path.lexists(file):
            raise self.unknown(path)
        return validate_at(file, strict=strict)

    # Places, sources and errors

    @contextmanager
    def _command(self, options: InstallOptions, source: str = "") -> Iterator[InstallDeps]:
        """The services of one command, which end with it; a dry run that may use the network leaves no trace."""
        self.settle()
        deps = self.deps.without_traces() if options.dry_run and not options.offline else self.deps
        try:
            yield deps
        except FetchFailed as error:
            raise self._hinted(error, source) from error.__cause__
        finally:
            deps.close()

    def settle(self) -> bool:
        """Finishes changes that were left unfinished, and returns whether there were any."""
        unfinished = [place for place in self.places.values() if (place.inner / "intent").is_file()]
        return bool(unfinished) and self._settled(unfinished)

    def _settled(self, unfinished: Sequence[InstallScope]) -> bool:
        from navigator_kernel.skills.install.apply import settle

        mine = [place for place in unfinished if place.level != "shipped" and not self._twin(place)]
        settled = [settle(place, self.deps.writer) for place in mine]
        return any(settled)

    def sourced(
        self, text: str, skills: Sequence[str] = (), options: InstallOptions = _NO_OPTIONS
    ) -> tuple[Source, list[str]]:
        """The source that `text` names, and the wanted skills of it. A bare name that the mapping knows becomes its
        repository and itself (LIF-8), `plugin@marketplace` that plugin of a marketplace of the person's."""
        from navigator_kernel.skills.source.address import parse_source

        text, names = _named(text, "source"), list(skills)
        plugin, at, market = text.partition("@")
        if at and "/" not in text and ":" not in text and " " not in text:
            if not (address := self.marketplace(market)):
                message = f"no marketplace called {clean(market, lines=False)!r} is known to Claude Code here"
                shown = shlex.quote(clean(plugin, lines=False))
                hint = f"name its repository: navigator install OWNER/REPO --skill {shown}"
                raise UsageProblem(message, hint=hint)
            text, names = address, [f"{plugin}:{name}" for name in names or ["*"]]
        elif "/" not in text and ":" not in text:
            if known := self.deps.mapping.find(text):
                text, names = known[0], names or [known[1]]
            elif named := self.deps.mapping.named(text):
                repository, skill = named  # only a project's page knows it: only the person decides to use its source
                words = ["navigator", "skill", "install", repository, "--skill", skill]
                name, command = clean(text, lines=False), clean(shlex.join(words), lines=False)
                hint = f"docs/skills-mapping.md of this project names a source for it; if you trust it: {command}"
                raise SkillNotFound(f"{name!r} is not a known skill", hint=hint, suggestions=[])
        try:
            source = parse_source(text, base=self.root, ref=options.ref)
        except UsageProblem as error:
            raise self._hinted(error, text) from error
        return source, list(dict.fromkeys((*source.skills, *names)))

    def _hinted(self, error: KernelError, source: str) -> KernelError:
        """`error` with the names that are nearest to the requested source: of known repositories, or of installed and
        known skills."""
        if source.count("/") == 1 and ":" not in source:
            repository = source.partition("@")[0].partition("#")[0]
            known = {row.row.repo for row in self.deps.mapping.rows()} - {repository}
            near = suggestions(repository, known, 1, 0.8)
        elif "/" not in source and ":" not in source:
            names = [one.skill.name for one in self.found(_NO_OPTIONS)[0]]
            near = suggestions(source, [*names, *self.deps.mapping.names()], 3, 0.7)
        else:
            near = []
        if near:
            error.hint = f"did you mean {' or '.join(near)}? Otherwise: {error.hint}"
            error.data = {**error.data, "suggestions": near}
        return error

    def found(self, options: InstallOptions) -> tuple[Sequence[Installed], Sequence[Diagnostic]]:
        """The inventory of the chosen places, or of everything that skills are read from if none is chosen."""
        roots = self._looked_at(options)
        return inventory(roots, self._places(roots), read_switches(self.state).disabled, self.shipped, self.agreed())

    def _looked_at(self, options: InstallOptions) -> Sequence[Root]:
        every = () if options.user or options.target else self.roots()
        return every or [Root(path=place.skills, level=place.level) for place in self.chosen(options)]

    def _places(self, roots: Sequence[Root]) -> list[InstallScope]:
        """The place of each of `roots`; in those of other programs, paths are relative to the project or whole."""
        known = {place.skills: place for place in self.places.values()}
        return [
            known.get(path) or InstallScope(level, self.root, path, path.parent / "skills.lock.json")
            for path, level, *_ in roots
        ]

    def chosen(self, options: InstallOptions) -> list[InstallScope]:
        """Every place of the level and the target that are named, or of all if none is named."""
        if options.user:
            self._at("user", "claude")
        places = [place for place in self.places.values() if place.level == "user" or not options.user]
        if options.target:
            return [self._apart(place) for place in places if place.target == options.target]
        return [place for place in places if not self._twin(place)]

    def target(self, options: InstallOptions) -> InstallScope:
        """The one place that a change is for; with `link`, the place of the skills themselves."""
        target = options.target or "claude"
        if options.link and target != "agents":
            raise UsageProblem("--link makes links in .agents/skills", hint="add --target agents, or leave --link out")
        level: Level = "user" if options.user else "project"
        return self._apart(self._at(level, "claude" if options.link else target))

    def _apart(self, place: InstallScope) -> InstallScope:
        """Returns the place; Refused if its folder is another place's."""
        if twin := self._twin(place):
            message = f"{place.told(place.skills)!r} is {twin.told(twin.skills)!r} itself"
            raise Refused(message, hint="leave --target out; the skills installed there are seen here, too")
        return place

    def _at(self, level: Level, target: Target) -> InstallScope:
        if (level, target) not in self.places:
            raise NotFound(f"there is no {level} level here", hint="leave --user out, or run it in a project")
        return self.places[level, target]

    def _twin(self, place: InstallScope) -> InstallScope | None:
        """The place whose folder is really the same as this one's, because of a link above it."""
        if place.target == "claude":
            return None
        twin = self.places[place.level, "claude"]
        return twin if os.path.realpath(twin.skills) == os.path.realpath(place.skills) else None

    def held(self, name: str) -> Installed | None:
        """The installed skill of that name or alias; None for a path or a URL."""
        if "/" in name:
            return None
        rows, _ = self.found(_NO_OPTIONS)
        by_name = (row for row in rows if fold(row.skill.name) == fold(name))
        by_alias = (row for row in rows if fold(name) in map(fold, row.skill.aliases))
        return next(chain(by_name, by_alias), None)

    def is_unknown(self, word: str) -> bool:
        """Whether `word` can only be a name, and no source is known for it."""
        mapping = self.deps.mapping
        return not any(mark in word for mark in "/:.@") and not (mapping.find(word) or mapping.named(word))

    def unknown(self, name: str, *, or_source: bool = False) -> SkillNotFound:
        """The error for a name that no installed skill has; with `or_source` it could also have been a source."""
        near = suggestions(name, [one.skill.name for one in self.found(_NO_OPTIONS)[0]])
        if or_source:
            near = near or suggestions(name, self.deps.mapping.names(), 3, 0.7)
        message = f"no skill called {clean(name, lines=False)!r} is installed"
        if not or_source:
            return unknown_name(SkillNotFound, message, near, hint="navigator skill list shows the installed skills")
        hint = "navigator skill list shows the installed skills; a source is owner/repo, a URL or ./folder"
        if near:
            hint = f"did you mean {', '.join(near)}? A source is owner/repo, a URL or ./folder"
        return SkillNotFound(message, hint=hint, suggestions=near)

    def _known(self, name: str) -> Installed:
        """The installed skill of that name; SkillNotFound if there is none."""
        one = self.held(_named(name))
        if one is None:
            raise self.unknown(name)
        return one

    def _path(self, path: Path) -> Path:
        """`path` relative to the project, without `..`."""
        return Path(os.path.normpath(self.root / path))


def _profile_named(name: str, now: Switches) -> str:
    """The profile of that name; NotFound with suggestions if there is none."""
    if name in now.profiles:
        return name
    message, hint = f"no profile is called {clean(name, lines=False)!r}", "navigator profile save NAME makes one"
    raise unknown_name(NotFound, message, suggestions(name, now.profiles), hint=hint)


def _unused(now: Switches) -> Switches:
    return replace(now, profile="", disabled=now.before, before=frozenset()) if now.profile else now


@contextmanager
def _reader(
    source: Source, names: Sequence[str], deps: InstallDeps, options: InstallOptions, *, install: bool = False
) -> Iterator[tuple[SourceReader, Sequence[str]]]:
    """A context for the reader of `source` and the wanted skills of it. If the one name is that of a plugin in another
    repository, it is the reader of that one, with no names for all of its skills."""
    with ExitStack() as stack:
        tree = stack.enter_context(open_source_tree(source, deps, options, install=install))
        reader = _found(source, tree)
        if len(names) == 1 and (moved := reader.place_of(names[0])):
            stack.close()
            there, name = moved
            message = f"{source.label!r} says that {names[0]!r} lies in {there.label!r}"
            note = Diagnostic(code="plugin-elsewhere", level="note", path="marketplace.json", message=message)
            tree = stack.enter_context(open_source_tree(there, deps, options, install=install))
            reader, names = _found(there, tree, note), [name] if name else []
        yield reader, names


def _found(source: Source, tree: Tree, *notes: Diagnostic) -> SourceReader:
    """The reader of an open tree, which has found its skills."""
    from navigator_kernel.skills.source.reading import SourceReader

    reader = SourceReader(source, tree, notes=notes)
    reader.find()
    return reader


def _named(value: str, what: str = "name") -> str:
    """`value`, stripped; UsageProblem if it is empty."""
    value = value.strip()
    if not value:
        raise UsageProblem(f"{what!r} is missing", hint=f"name a {what}")
    return value
