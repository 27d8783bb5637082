"""Checks for missing and damaged parts, and their repair: `navigator doctor`, and the worker's `run doctor`."""

from __future__ import annotations

import json
import os
import platform
import secrets
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct

from navigator_kernel.adapters.files.database import own_lock, read_rows
from navigator_kernel.adapters.files.scratch import new_scratch
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.project_state import BOX
from navigator_kernel.bootstrap.places import installed_plugins, open_consents, private_writer, tool_file
from navigator_kernel.config.settings import MACHINE_POLICY, policy_files, user_cache, user_state
from navigator_kernel.errors import ConsentNeeded, Damaged, KernelError, UsageProblem
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import APART, COLON
from navigator_kernel.skills.catalog.switches import read_switches, read_uses, switches_path
from navigator_kernel.storage_errors import LONGEST
from navigator_kernel.text import Language, lazy_compile, numbered

if TYPE_CHECKING:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.skills.install.conflict import Side

# Extras, a module of each, and the effect of its absence
_EXTRAS = (
    ("llm", "pydantic_ai", "not installed; no model can be asked"),
    ("mcp", "mcp", "not installed"),
)
# The databases of a project's state, and what a person loses of a damaged one at worst
_DATABASES = {
    "sessions.sqlite": "conversations",
    "workflows.sqlite": "workflow runs with their approvals",
    "conversations.sqlite": "which session a client of the API continues; it begins a new one with its own messages",
}
_PACKAGE = lazy_compile(r"[\w.-]+")
_MARKS = {"damaged": "!!", "missing": "--", "note": "..", "ok": "ok"}
_REPAIR = "navigator doctor --repair"
_MIB = 1024 * 1024
_FULL, _NARROW = 16 * _MIB, 512 * _MIB  # bytes of free space: nothing works, and a run may not have what it is allowed
_RUBBISH = 64 * _MIB  # bytes of left-overs that are worth a line

State = Literal["ok", "note", "missing", "damaged"]


class Finding(Struct, frozen=True, kw_only=True):
    """The result of one check. A `note` names something that works anyway. `fix` repairs it, and returns what it did;
    None if only the person can, as `remedy` says."""

    what: str
    state: State
    detail: str
    remedy: str = ""
    fix: Callable[[], list[str]] | None = None

    def to_dict(self) -> dict[str, str]:
        return {"what": self.what, "state": self.state, "detail": self.detail, "remedy": self.remedy}


def findings(project: Project, checks: Sequence[Check] | None = None) -> Iterator[Finding]:
    """Yields a finding for each of the checks, by default of all; an unreadable file is a finding, not an error.
    Changes nothing: a file that is written to try a folder is removed again."""
    for check in checks or CHECKS:
        try:
            yield from check(project)
        except (KernelError, OSError, ValueError) as error:
            hint = error.hint if isinstance(error, KernelError) else ""
            yield Finding(what=check.__name__.strip("_"), state="damaged", detail=str(error), remedy=hint)


def repair(
    project: Project, found: Sequence[Finding], take: Mapping[str, Side] | None = None
) -> tuple[list[str], list[str]]:
    """Repairs what can be repaired, merges a lock with conflict markers, and brings skills.db up to date. Returns what
    was done, and what could not be done. ConsentNeeded if both sides of a merge changed an entry and `take` names none.
    """

    def rewrite_records() -> list[str]:
        places = project.lifecycle.repair(take=take).levels
        return [f"{place.level}: {name}" for place in places for name in place.rewritten]

    done, failed = list[str](), list[str]()
    for one in (*found, Finding(what="records", state="ok", detail="", fix=rewrite_records)):
        if one.fix is None:
            continue
        try:
            done += one.fix()
        except ConsentNeeded:
            raise
        except (KernelError, OSError) as error:
            failed.append(f"{one.what} was not repaired: {error}")
    return done, failed


def shown(found: Sequence[Finding], language: Language, *, every: bool = False) -> list[str]:
    """The lines that a person reads: damaged and missing parts, notes, of those about the text of skills only the
    number, and the counts; or `every` finding."""
    lines: list[str] = []
    of_skills = Counter(one.what for one in found if one.state == "note" and one.what.startswith("manifest"))
    for one in sorted(found, key=lambda one: list(_MARKS).index(one.state)):
        if every or (one.state != "ok" and not (one.state == "note" and one.what in of_skills)):
            detail = in_language(one.detail, language)
            lines.append(f"{_MARKS[one.state]}  {in_language(one.what, language)}{COLON[language]}{detail}")
            lines += [f"    {in_language(one.remedy, language)}"] if one.remedy else []
    if of_skills and not every:
        counts = ((what, in_language(numbered(n, "skill"), language)) for what, n in of_skills.most_common())
        lines += [f"{_MARKS['note']}  {what}{COLON[language]}{count}" for what, count in counts]
        lines.append(f"    {in_language('navigator doctor -v names them', language)}")
    states = Counter[str](one.state for one in found)
    named = (numbered(states[state], state) if state == "note" else f"{states[state]} {state}" for state in _MARKS)
    return [*lines, APART[language].join(in_language(count, language) for count in named)]


def answered(project: Project, args: Sequence[str]) -> tuple[int, str]:
    """The exit code and the text of `navigator doctor [--json]`, for the worker. UsageProblem for `--repair`, which
    only a person types."""
    if unknown := [word for word in args if word != "--json"]:
        raise UsageProblem(f"doctor has no option {unknown[0]!r} here", hint="use the command line for it")
    found = list(findings(project))
    code = 1 if any(one.state == "damaged" for one in found) else 0
    if not args:
        return code, "\n".join(shown(found, "en"))

    return code, json.dumps({"findings": [one.to_dict() for one in found], "exit_code": code}, ensure_ascii=False)


# The machine


def _system(_: Project) -> Iterator[Finding]:
    from importlib.metadata import PackageNotFoundError, distribution, requires

    new_enough = sys.version_info >= (3, 11)
    yield Finding(what="python", state="ok" if new_enough else "damaged", detail=platform.python_version())
    system, git = platform.system(), shutil.which("git")
    remedy = "processes are contained on Linux only; skills with a command may not run here"
    is_linux = system == "Linux"
    yield Finding(
        what="system", state="ok" if is_linux else "missing", detail=system, remedy="" if is_linux else remedy
    )
    git_remedy = "" if git else "apt-get install git"
    yield Finding(what="git", state="ok" if git else "missing", detail=git or "not found", remedy=git_remedy)
    for extra, module, without in _EXTRAS:
        yield _extra(f"navigator-kernel[{extra}]", extra, without, is_there=find_spec(module) is not None)
    for plugin in installed_plugins():
        lines: list[str] = []
        with suppress(PackageNotFoundError):  # a source tree that is not installed
            lines = requires(plugin.package) or []
        # The packages of the extra that the plugin's package calls like the plugin
        marked = [(line, line.partition(";")[2].replace(" ", "").replace('"', "'")) for line in lines]
        needed = [_PACKAGE.findall(line)[0] for line, marker in marked if "extra==" + repr(plugin.name) in marker]
        try:
            is_there = all(distribution(package) is not None for package in needed)
        except PackageNotFoundError:
            is_there = False
        if needed:
            yield _extra(f"{plugin.package}[{plugin.name}]", plugin.name, "not installed", is_there=is_there)


def _extra(package: str, extra: str, without: str, *, is_there: bool) -> Finding:
    detail, remedy = ("installed", "") if is_there else (without, f"pip install '{package}'")
    return Finding(what=f"extra {extra}", state="ok" if is_there else "missing", detail=detail, remedy=remedy)


def _sandbox(project: Project) -> Iterator[Finding]:
    """Starts a program in the sandbox, with the limits of a run."""
    from navigator_kernel.sandbox.contain import REMEDIES

    rung, failed = project.contained.tried_again()
    reasons = [f"{name} does not work: {reason}" for name, reason in failed.items()]
    state: State = "ok"
    if rung is None:
        state, detail, remedy = "missing", "skills with a command do not run", "; ".join(REMEDIES)
    else:
        detail, remedy = rung.name, "" if rung.name == "bubblewrap" or failed else "apt-get install bubblewrap"
    yield Finding(what="sandbox", state=state, detail="; ".join([detail, *reasons]), remedy=remedy)


def _threads(_: Project) -> Iterator[Finding]:
    """The system counts all threads of the person, a browser's too, against one limit."""
    import resource

    from navigator_kernel.adapters.processes.launcher import threads_of_user
    from navigator_kernel.sandbox.confinement import PROCESSES

    count = threads_of_user()
    limit = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if os.getuid() == 0 or limit == resource.RLIM_INFINITY:
        yield Finding(what="threads", state="ok", detail=f"{count}; the system sets no limit")
        return
    few = limit - count < PROCESSES
    remedy = f"a skill may start {PROCESSES}; end other programs, or raise the limit (ulimit -u)" if few else ""
    yield Finding(what="threads", state="missing" if few else "ok", detail=f"{count} of at most {limit}", remedy=remedy)


def _folders(project: Project) -> Iterator[Finding]:
    """Writes, syncs, locks and removes a file in each folder that work writes to, and looks at the space there."""
    state = "sessions, approvals and the audit log are not kept, so no skill runs"
    folders = {
        "your state": (user_state(), state, "XDG_STATE_HOME"),
        "your state of this project": (project.state.folder, state, "XDG_STATE_HOME"),
        "your cache": (user_cache(), "nothing can be installed", "XDG_CACHE_HOME"),
        "the project's mybox": (project.box, "runs leave no logs and no files", "--root"),
        "temporary files": (new_scratch().parent, "no skill with a command runs", "TMPDIR"),
    }
    spaces: dict[int, tuple[str, Path]] = {}
    for name, (folder, loss, variable) in folders.items():
        there = next(path for path in (folder, *folder.parents) if path.is_dir())
        path = there / f".navigator-doctor-{secrets.token_hex(8)}.tmp"  # a name that is cleaned up if this is killed
        writer = FolderWriter([there])
        try:
            writer.create(path, bytes(4096), mode=0o600)
            try:
                with own_lock(path):
                    pass
            finally:
                writer.remove(path)
            spaces.setdefault(there.stat().st_dev, (name, there))
        except KernelError as error:
            yield Finding(what=name, state="damaged", detail=f"{error.message}; {loss}", remedy=error.hint)
            continue
        if len(os.fsencode(folder)) > LONGEST - 20:
            detail = f"the path of {str(folder)!r} is longer than a database's may be; {loss}"
            yield Finding(
                what=name, state="damaged", detail=detail, remedy=f"use a shorter path; {variable} names another folder"
            )
            continue
        yield Finding(what=name, state="ok", detail=str(folder))
    for name, folder in spaces.values():
        seen = os.statvfs(folder)
        free, files = seen.f_bavail * seen.f_frsize, seen.f_favail if seen.f_files else 1
        detail = f"{free // _MIB} MiB free in {str(folder)!r}" + ("" if files else ", and no more files can be made")
        level: State = "damaged" if free < _FULL or not files else "missing" if free < _NARROW else "ok"
        remedy = "" if level == "ok" else "navigator gc --days 0 removes old files; a run may use up to 512 MiB"
        yield Finding(what=f"space for {name}", state=level, detail=detail, remedy=remedy)
    box = project.root / BOX
    if not os.access(box if box.is_dir() else project.root, os.W_OK | os.X_OK):
        detail = f"you cannot write to {str(project.root)!r}: it can be asked, and what runs write is in your own state"
        yield Finding(
            what="project", state="note", detail=detail, remedy="install, host and config set do not work here"
        )


def _locks(project: Project) -> Iterator[Finding]:
    """The locks that living processes hold, as the system lists them."""
    held: dict[tuple[int, int], str] = {}
    with suppress(OSError):
        for line in Path("/proc/locks").read_text().splitlines():
            words = line.split()
            if words[1] == "FLOCK":
                major, minor, inode = words[5].split(":")
                held[os.makedev(int(major, 16), int(minor, 16)), int(inode)] = words[4]
    taken = []
    for folder in (user_state(), project.state.folder.parent, project.state.folder, project.state.folder / "underway"):
        for path in sorted((*folder.glob("*.lock"), *folder.glob("*.jsonl"))):
            with suppress(OSError):
                seen = path.stat()
                if process := held.get((seen.st_dev, seen.st_ino)):
                    taken.append(f"process {process} holds {path.name}")
    yield Finding(what="locks", state="ok", detail="; ".join(taken) or "none is held")


def _rubbish(project: Project) -> Iterator[Finding]:
    from navigator_kernel.bootstrap.upkeep import KEEP_DAYS, leftovers, size_of

    found, kept, sentence = leftovers(project, KEEP_DAYS)
    size, results = sum(map(size_of, found)), sum(map(size_of, kept))
    detail = f"{len(found)} old or left over, {size // _MIB} MiB" if found else "none"
    detail += f"; old results that are not in the project: {results // _MIB} MiB" if kept else ""
    state: State = "note" if size + results >= _RUBBISH or sentence else "ok"
    remedy = sentence or ("navigator gc removes them" if found else "")
    remedy = remedy or ("navigator gc --results removes old results" if results >= _RUBBISH else "")
    yield Finding(what="rubbish", state=state, detail=detail, remedy=remedy)


# The person's state


def _project(project: Project) -> Iterator[Finding]:
    """The record by which the person's state is known as that of this project."""
    state = project.state

    def claim() -> list[str]:
        state.claim()
        return [f"project: {str(state.folder)!r} is known as its state again"]

    for fault in state.faults():
        hint = f"{_REPAIR} makes it again" if state.record else "navigator project list shows all states"
        yield Finding(
            what="project",
            state="damaged" if state.record else "note",
            detail=fault,
            remedy=hint,
            fix=claim if state.record else None,
        )
    if not state.faults():
        yield Finding(what="project", state="ok", detail=str(state.folder))


def _databases(project: Project) -> Iterator[Finding]:
    from navigator_kernel.adapters.stores.salvage import check, rebuild

    def fix(file: Path) -> list[str]:
        saved = rebuild(file)
        rows = ", ".join(f"{count} {table}" for table, count in saved.rows.items()) or "nothing"
        return [f"{file.name}: {rows} saved; the damaged file is {saved.original}"]

    files = sorted((*project.state.folder.glob("*.sqlite"), *user_state().glob("*.sqlite")))
    sound = 0
    for file in files:
        problem = check(file)
        if not problem:
            sound += 1
            continue
        lost = _DATABASES.get(file.name, "its contents")
        remedy = f"{_REPAIR} saves what can be read, and keeps the file; at worst you lose {lost}"
        yield Finding(what=file.name, state="damaged", detail=problem, remedy=remedy, fix=partial(fix, file))
    if sound == len(files):
        yield Finding(what="databases", state="ok", detail=f"{numbered(sound, 'database')} sound")


def _state_files(project: Project) -> Iterator[Finding]:
    """Files of JSON that cannot be made again: a repair gives a damaged one another name, so that work goes on."""
    from navigator_kernel.adapters.models.providers import kept_tooling
    from navigator_kernel.bootstrap.models import tooling_file
    from navigator_kernel.sandbox.servers import load_pins

    state, lessons, trust = project.state.folder, project.lessons, user_state() / "trust.json"

    def uses() -> int:
        if (counts := read_uses(state / "usage.json")) is None:
            raise Damaged(f"{str(state / 'usage.json')!r} cannot be read")
        return len(counts)

    def server_tokens() -> int:
        file = state / "gateway-tokens.json"
        rows = read_rows(file)
        if not all({"id", "digest", "role", "label", "created", "expires"} <= row.keys() for row in rows):
            raise Damaged(f"{str(file)!r} does not contain tokens")
        return len(rows)

    kinds: tuple[tuple[str, Path, Callable[[], int], str, str], ...] = (
        ("trust", trust, lambda: len(open_consents().subjects()), "subject trusted", "you are asked for trust again"),
        ("approved tools", tool_file(), lambda: len(load_pins(tool_file())), "tool", "you approve MCP tools again"),
        ("tested models", tooling_file(), lambda: len(kept_tooling(tooling_file())), "model", "test models again"),
        (
            "switches",
            switches_path(state),
            lambda: len(read_switches(state).disabled),
            "skill off",
            "every skill is on",
        ),
        ("uses", state / "usage.json", uses, "skill used", "counts begin at zero"),
        (
            "tokens",
            state / "gateway-tokens.json",
            server_tokens,
            "token of the server",
            "clients need new ones (navigator serve --new-token)",
        ),
        ("examples", lessons.path, lambda: len(lessons.all()), "skill with examples", "learned examples are gone"),
    )
    for what, file, count, unit, loss in kinds:

        def counted(count: Callable[[], int] = count, unit: str = unit) -> str:
            noun, _, more = unit.partition(" ")
            return f"{numbered(count(), noun)} {more}".rstrip()

        yield _tried(what, counted, *_aside_at(file, loss))
    home = user_state() / "home.json"
    yield _tried("home", lambda: _home_note(home), f"{_REPAIR} writes it again", partial(_write_home_note, home))


def _home_note(file: Path) -> str:
    if not os.path.lexists(file):
        return "not used yet"
    try:
        note = json.loads(file.read_text(encoding="utf-8"))
        return f"version {int(note['v'])}" + (", upgraded" if int(note["upgraded_at"]) else "")
    except (ValueError, KeyError, TypeError) as error:
        raise Damaged(f"{str(file)!r} cannot be read; state of an earlier version is not taken over") from error


def _write_home_note(file: Path) -> list[str]:
    """Writes a note that allows nothing: no file that a clone brings may count as state of an earlier version."""
    private_writer(file.parent).write(file, json.dumps({"v": 2, "upgraded_at": 0}).encode(), mode=0o600)
    return [str(file)]


def _runs(project: Project) -> Iterator[Finding]:
    """Unfinished work of models."""
    damaged = list[Path]()
    project.underway.left(damaged)
    for file in damaged:
        loss = f"the work of run {file.stem} cannot go on; send its message again"
        detail = f"{str(file)!r} cannot be read"
        remedy, fix = _aside_at(file, loss)
        yield Finding(what="unfinished work", state="damaged", detail=detail, remedy=remedy, fix=fix)


def _audit(project: Project) -> Iterator[Finding]:
    audit = project.audit
    remedy = f"{_REPAIR} keeps it under another name and begins a new record"

    def fix() -> list[str]:
        return [f"audit log: the old one is now {path}" for path in audit.begin_again()]

    yield _tried("audit log", lambda: f"{numbered(len(audit.entries()), 'entry')}, as written", remedy, fix)


# Skills, settings and plugins


def _settings(project: Project) -> Iterator[Finding]:
    files = "navigator config path names the files"
    yield _tried("settings", lambda: numbered(len(project.settings.origins), "setting"), files)
    for text in project.settings.ignored:
        yield Finding(what="settings", state="note", detail=text, remedy="navigator config list names the settings")
    # Nobody else may loosen the rules of a policy file
    deps = project.lifecycle.deps
    for file in policy_files():
        what = f"policy {str(file)!r}"
        yield _tried(what, lambda: numbered(len(deps.rules), "file"), "nothing is installed until it can be read")
        owners = {0} if file == MACHINE_POLICY else {0, os.geteuid()}
        seen = [path.stat() for path in (file, file.parent) if os.access(path, os.F_OK)]
        if any(one.st_mode & 0o022 or one.st_uid not in owners for one in seen):
            detail, remedy = "others may write to it or to its folder", "let only its owner write: chmod go-w"
            yield Finding(what=what, state="damaged", detail=detail, remedy=remedy)
    yield _tried("model", lambda: project.settings.models.default or "none is set", "navigator model list names them")

    def encoder() -> str:
        from navigator_kernel.adapters.index.use_encoder import check

        if project.settings.encoder == "off":
            return "switched off; messages are matched by words only"
        try:
            check()
        except KernelError as error:
            raise type(error)(f"{error.message}; messages are matched by words only", hint=error.hint) from error
        return "messages are matched by words and meaning"

    yield _tried("encoder", encoder, "navigator config list names the settings")


def _skills(project: Project) -> Iterator[Finding]:
    catalogue, lifecycle = project.catalogue, project.lifecycle
    yield _tried("skills", lambda: numbered(len(catalogue.list_resources()), "resource"), "fix the named file")
    try:
        notes, skills = catalogue.diagnostics(), catalogue.list_resources()
        changed = [skill.name for skill in skills if catalogue.create_executor(skill.namespace).was_accepted]
    except KernelError:
        notes, changed = (), []
    for note in notes:
        state: State = "damaged" if note.level == "error" else "note"
        yield Finding(what=f"manifest {note.code}", state=state, detail=f"{note.path}: {note.message}")
    for name in changed:
        detail = f"{name} has changed since you accepted it; its model has no tools"
        yield Finding(what="trust", state="note", detail=detail, remedy=f"navigator skill trust {name}")
    yield _tried("records", lambda: f"{numbered(lifecycle.check(), 'skill')} recorded", _REPAIR)
    yield _tried(
        "receipts",
        lambda: f"{numbered(lifecycle.verify().count, 'skill')} as installed",
        "navigator skill verify names the files",
    )


def _plugins(project: Project) -> Iterator[Finding]:
    def look() -> str:
        agents = {agent.name for agent in project.agents.values()}
        if failures := project.failures():
            sentences = (f"{failure['plugin']} in {failure['hook']}: {failure['error']}" for failure in failures)
            raise KernelError("; ".join(sentences))
        return numbered(len(agents), "agent")

    yield _tried("plugins", look, "navigator plugin list names them")


def _hosts(project: Project) -> Iterator[Finding]:
    """Other machines that carry out packets, as a plugin's dispatcher describes them."""
    if (hosts := getattr(getattr(project.dispatcher, "held", None), "hosts", None)) is not None:
        lines, problems = hosts()
        yield from (Finding(what="hosts", state="ok", detail=line) for line in lines)
        remedy = "navigator cluster doctor shows it; --retry or --drop ends a task that was given up"
        yield from (Finding(what="hosts", state="damaged", detail=line, remedy=remedy) for line in problems)


def _tried(what: str, look: Callable[[], str], remedy: str, fix: Callable[[], list[str]] | None = None) -> Finding:
    """The finding of a check that raises if something is damaged. With `fix`, `remedy` says what that does."""
    try:
        return Finding(what=what, state="ok", detail=look())
    except KernelError as error:
        hint = remedy if fix else error.hint or remedy
        return Finding(what=what, state="damaged", detail=error.message, remedy=hint, fix=fix)
    except (OSError, ValueError) as error:
        return Finding(what=what, state="damaged", detail=str(error), remedy=remedy, fix=fix)


def _aside_at(file: Path, loss: str) -> tuple[str, Callable[[], list[str]]]:
    """The remedy and the repair of a file that a person can do without."""

    def set_aside() -> list[str]:
        kept = file.with_name(f"{file.name}.damaged-{secrets.token_hex(4)}")
        FolderWriter([file.parent]).move(file, kept)
        return [f"{file}: it is now {kept.name}"]

    return f"{_REPAIR} gives the file another name; then {loss}", set_aside


Check = Callable[["Project"], Iterator[Finding]]
OF_STATE: tuple[Check, ...] = (_project, _skills, _databases, _state_files, _runs, _audit)
CHECKS: tuple[Check, ...] = (
    _system,
    _sandbox,
    _threads,
    _folders,
    _locks,
    _settings,
    *OF_STATE,
    _plugins,
    _hosts,
    _rubbish,
)
