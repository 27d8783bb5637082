"""The skill commands that change installed skills, and the report of an install."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

import click
from msgspec import UNSET, Struct, to_builtins
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.cli import skill_names
from navigator_kernel.cli.app import json_option, pass_app
from navigator_kernel.cli.output import is_asked, lines, note, say_lines, table
from navigator_kernel.cli.skill.work import (
    accept_option,
    accepting,
    busy,
    dry_option,
    filter_options,
    grown_option,
    note_lines,
    place_options,
    reach_options,
    show_json,
    take_option,
    taking,
    verbose_option,
)
from navigator_kernel.errors import ConsentNeeded, Damaged, FetchFailed, Interrupted, UsageProblem
from navigator_kernel.language.chinese import in_language
from navigator_kernel.language.wording import APART, BETWEEN, COLON, SEMICOLON, say, worded
from navigator_kernel.skills.install.selection import GROWN, reason_of
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.skills.scan.finding import told as shown_finding
from navigator_kernel.text import Language, clean, numbered

if TYPE_CHECKING:
    from navigator_kernel.cli.project import App
    from navigator_kernel.skills.install.changes import SkillChange
    from navigator_kernel.skills.install.conflict import Side
    from navigator_kernel.skills.install.install import InstalledSkill, InstallResult
    from navigator_kernel.skills.install.plans import PlannedSkill
    from navigator_kernel.skills.install.restore import RestoredSkill, RestoreResult
    from navigator_kernel.skills.install.update import OutdatedResult, UpdatedSkill, UpdateResult
    from navigator_kernel.skills.lifecycle import Lifecycle, RepairResult


LARGE = 200  # new skills from which the first question would wait a second or more for its index


@click.command("install")
@click.argument(  # a line for another program may be pasted without quotes
    "source", nargs=-1, metavar="[SOURCE]", callback=lambda _context, _parameter, words: " ".join(words) or None
)
@click.option(
    "--skill",
    "skills",
    multiple=True,
    help="A skill of the source, by name, folder, path or glob; may be repeated.",
    shell_complete=skill_names.of_source,
)
@click.option("--all", "everything", is_flag=True, help="Every skill of the source.")
@click.option(
    "--exclude", multiple=True, help="With --all: leave out this skill, by its exact name or path; may be repeated."
)
@click.option("--ref", help="Branch, tag or commit.")
@click.option("--as", "rename", help="Install the skill under this name.")
@click.option(
    "--frozen", is_flag=True, help="Restore exactly what skills.lock.json says, or nothing; for CI: nothing is removed."
)
@click.option(
    "--force", is_flag=True, help="Without SOURCE: replace skills that were edited here; a copy of them is kept."
)
@click.option(
    "--trust-lock", is_flag=True, help="Without SOURCE: agree to all skills of the lock, as if you installed each."
)
@grown_option
@accept_option
@click.option(
    "--link", is_flag=True, help="With --target agents: install in .claude/skills, and link from .agents/skills."
)
@click.option("-q", "--quiet", is_flag=True, help="Print errors only.")
@verbose_option
@dry_option
@reach_options
@place_options
@json_option
@pass_app
def install(
    app: App,
    /,
    *,
    source: str | None,
    skills: tuple[str, ...],
    rename: str | None,
    ref: str | None,
    frozen: bool,
    as_json: bool,
    **given: Any,
) -> int:
    """Install from SOURCE: owner/repo, a URL, file://…, an archive, a folder; else what skills.lock.json lists."""
    quiet, verbose = given.pop("quiet"), given.pop("verbose")
    options = InstallOptions(**given, rename=rename or "", ref=ref or "", root=app.root_flag or "")
    if frozen or not source:
        chosen = (given["everything"], given["exclude"], ref, rename, given["accept"], given["grown"])
        if source or any(chosen):
            hint = "--skill NAME restores one of its skills; leave the source and its options out"
            what = "--frozen restores" if frozen else "an install without a source restores"
            raise UsageProblem(f"{what} what skills.lock.json says", hint=hint)
        with busy(app, "frozen", quiet=bool(quiet or as_json)) as lifecycle:
            restored = lifecycle.restore(skills, replace(options, root=""), frozen=frozen)
        if as_json:
            show_json(restored, exit_code=0)
        elif not quiet:
            _show_restored(app, restored, every=verbose)
            is_trusting = options.trust_lock and not options.dry_run
            trusted = [skill.name for skill in restored.skills if is_trusting and skill.action != "removed"]
            lines(say("rollback.trusted", app.spoken, names=BETWEEN[app.spoken].join(trusted)) if trusted else ())
        return 0
    if options.force or options.trust_lock:
        hint = "navigator install --force undoes edits, navigator update --force NAME replaces them"
        raise UsageProblem("--force and --trust-lock are about the lock, and take no source", hint=hint)
    started = monotonic()
    result = _installed(app, source, skills, options, quiet=as_json or quiet, choosing=not as_json and is_asked())
    seconds = monotonic() - started
    if as_json:
        show_json(result, seconds=round(seconds, 2))
    else:
        Report(app.spoken, quiet=quiet, verbose=verbose).write(result, seconds)
        is_large = not quiet and not options.dry_run and result.counts.installed >= LARGE
        if is_large and is_asked() and not os.environ.get("CI") and app.settings.index != "off":
            from navigator_kernel.daemon.client import begin

            # Builds the index in a separate process; a question that comes meanwhile waits for it
            with suppress(OSError):
                begin(os.path.realpath(app.root), "route", "--index")
    return result.exit_code


def _installed(
    app: App, source: str, skills: Sequence[str], options: InstallOptions, *, quiet: bool, choosing: bool
) -> InstallResult:
    """Installs, and returns the result; if a source has several skills and none is named, the person marks some."""

    def install(names: Sequence[str], options: InstallOptions) -> InstallResult:
        came: set[str] = set()  # installed before the person was asked about the others

        def run(lifecycle: Lifecycle, options: InstallOptions) -> InstallResult:
            result = lifecycle.install(source, names, options)
            skills = [replace(skill, changed=skill.changed or skill.name in came) for skill in result.skills]
            came.update(skill.name for skill in skills if skill.changed)
            counts = replace(result.counts, installed=len(came), there=len(skills) - len(came))
            return replace(result, changed=bool(came), counts=counts, skills=skills)

        ask = not options.everything
        result = accepting(app, "install", options, run, source=source, quiet=quiet, ask=ask)
        pending = [one for one in result.left_out if one["reason"] == GROWN]
        for one in () if quiet else pending:
            lines(_changes(one["name"], one["change"], app.spoken))
        if quiet or options.dry_run or not is_asked():
            return result
        agreed = [one["digest"] for one in pending if _agrees(app, one["name"])]
        options = replace(options, agreed=agreed)
        return accepting(app, "install", options, run, source=source, quiet=quiet, ask=ask) if agreed else result

    try:
        return install(skills, replace(options, choosing=choosing))
    except UsageProblem as problem:
        choices = problem.data.get("choices")
        if not choices:
            raise
    return install(_picked(app, choices, source), options)


def _picked(app: App, choices: Sequence[tuple[str, str]], source: str) -> list[str]:
    from navigator_kernel.cli.picker import pick

    picked = pick(say("pick.title", app.spoken, count=len(choices), source=source), choices, app.spoken)
    if picked is None:
        raise Interrupted("nothing was installed", hint="--skill NAME or --all chooses without asking")
    return picked


@click.command("uninstall")
@click.argument("names", nargs=-1, shell_complete=skill_names.installed)
@click.option("--repo", help="Every skill that came from this source.")
@dry_option
@place_options
@json_option
@pass_app
def uninstall(app: App, /, *, names: tuple[str, ...], repo: str | None, as_json: bool, **given: Any) -> None:
    """Remove installed skills."""
    if not names and not repo:
        raise UsageProblem("no skill is named", hint="navigator skill uninstall NAME, or --repo SOURCE")
    with busy(app, "uninstall", quiet=as_json) as lifecycle:
        result = lifecycle.uninstall(names, InstallOptions(**given), repo=repo or "")
    if as_json:
        show_json(result, exit_code=0)
        return
    key = "uninstall.would" if result.dry_run else "uninstall.done"
    for skill in result.skills:
        links = (say("uninstall.link", app.spoken, link=link) for link in skill.links)
        lines([say(key, app.spoken, name=skill.name) + "".join(links)])


@click.command("update")
@click.argument("names", nargs=-1, shell_complete=skill_names.installed)
@click.option("--check", is_flag=True, help="Only show what is new; the same as outdated.")
@click.option("--force", is_flag=True, help="Replace skills that were edited here; a copy of them is kept.")
@grown_option
@accept_option
@verbose_option
@dry_option
@reach_options
@place_options
@json_option
@pass_app
def update(app: App, /, *, names: tuple[str, ...], check: bool, verbose: bool, as_json: bool, **given: Any) -> int:
    """Update installed skills from their sources; ask first where one can do more than before."""
    options = InstallOptions(**given, root=app.root_flag or "")
    if check:
        with busy(app, "update", quiet=as_json) as lifecycle:
            return _show_outdated(app, lifecycle.outdated(names, options), as_json=as_json)

    def updated(names: Sequence[str], options: InstallOptions) -> UpdateResult:
        def run(lifecycle: Lifecycle, options: InstallOptions) -> UpdateResult:
            return lifecycle.update(names, options, diffs=verbose)

        return accepting(app, "update", options, run, quiet=as_json)

    result = updated(names, options)
    waiting = [skill for skill in result.skills if skill.action == "pending"]
    code = ConsentNeeded.exit_code if waiting and not options.dry_run else _reached(result)
    if as_json:
        show_json(result, exit_code=code)
        return code
    # Prints what changes in each skill, and what was done; skills that stay as they are only as a number
    for one in (skill for skill in result.skills if skill.action != "kept"):
        if one.change is not None and one.action in {"updated", "pending"}:
            lines(_changes(one.name, one.change, app.spoken))
            lines(str(one.diff).splitlines() if one.diff is not UNSET else ())
        done = "would" if result.dry_run and one.action == "updated" else one.action
        backup = say("update.backup", app.spoken, path=one.backup) if one.backup else ""
        lines([say(f"update.{done}", app.spoken, name=one.name, why=in_language(one.problem, app.spoken)) + backup])
    lines(_counted((("action", skill.action) for skill in result.skills), app.spoken))
    Report(app.spoken).unscanned(result.skills)
    if not waiting or options.dry_run:
        return code
    if not is_asked():
        note(
            say(
                "update.ask_later",
                app.spoken,
                command=options.command("update", *(one.name for one in waiting), "--yes"),
            )
        )
        return code
    agreed = [one for one in waiting if _agrees(app, one.name)]
    if not agreed:
        return code
    result = updated([one.name for one in agreed], replace(options, agreed=[one.digest for one in agreed]))
    lines(say("update.updated", app.spoken, name=skill.name) for skill in result.skills if skill.action == "updated")
    return code if len(agreed) < len(waiting) else _reached(result)


def _agrees(app: App, name: str) -> bool:
    return click.confirm(say("update.agree", app.spoken, name=name), err=True)


def _changes(name: str, change: SkillChange, language: Language) -> list[str]:
    """The lines about what an update changes in a skill."""
    added, removed = sum(file.added for file in change.files), sum(file.removed for file in change.files)
    shown = [say("change.files", language, name=name, count=len(change.files), added=added, removed=removed)]
    shown += [
        say(f"change.{file.change}", language, path=file.path, added=file.added, removed=file.removed)
        for file in change.files
    ]
    shown += [
        say(f"change.note.{kind}", language, before=before or "-", after=after or "-")
        for kind, before, after in change.notes
    ]
    shown += [
        say(f"change.can.{kind}", language, names=BETWEEN[language].join(names)) for kind, names in change.can.items()
    ]
    shown += [say("change.finding", language, text=shown_finding(finding, name)) for finding in change.findings]
    return shown


@click.command("outdated")
@click.argument("names", nargs=-1, shell_complete=skill_names.installed)
@click.option(
    "--pr",
    "folder",
    type=click.Path(path_type=Path, resolve_path=True),
    help="Also write a JSON file for each update into this new or empty folder: what a bot needs for a pull request.",
)
@reach_options
@place_options
@json_option
@pass_app
def outdated(app: App, /, *, names: tuple[str, ...], folder: Path | None, as_json: bool, **given: Any) -> int:
    """List installed skills that have updates; changes none of them."""
    if folder is not None and folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageProblem(
            f"{str(folder)!r} is not an empty folder",
            hint="name a new folder: files of an earlier time may be in this one",
        )
    plans: dict[str, PlannedSkill] | None = None if folder is None else {}
    with busy(app, "outdated", quiet=as_json) as lifecycle:
        result = lifecycle.outdated(names, InstallOptions(**given), diffs=folder is not None, plans=plans)
    if folder is not None and plans is not None:
        count = _write_updates(app, result, plans, folder)
        note(f"{numbered(count, 'file')} written to {str(folder)!r}")
    return _show_outdated(app, result, as_json=as_json)


def _show_outdated(app: App, result: OutdatedResult, *, as_json: bool) -> int:
    """Prints the skills that differ from their source, and the counts; returns the exit code, which is not 0 if a skill
    of the lock is missing here."""
    missing = [skill for skill in result.skills if skill.lock == "missing"]
    code, language = _reached(result) or int(bool(missing)), app.spoken
    if as_json:
        show_json(result, exit_code=code)
        return code
    rows = []
    for one in (skill for skill in result.skills if skill.state != "current" or skill.lock != "same"):
        state = worded("news", one.state, language)
        why = in_language(one.problem, language) or BETWEEN[language].join(one.edited)
        if one.lock != "same":
            why = APART[language].join(filter(None, (worded("here", one.lock, language), why)))
        rows.append((one.name, state, one.since[:12], one.to[:12], why))
    if rows:
        table(("skill", "state", "here", "there", "note"), rows, spare=("there", "here"), language=language)
    ways = (
        ("news", skill.state) if skill.state != "current" or skill.lock == "same" else ("here", skill.lock)
        for skill in result.skills
    )
    lines(_counted(ways, language))
    if code == FetchFailed.exit_code:
        note(say("outdated.unreached", language))
    elif missing:
        note(say("outdated.missing", language, count=say("count.skills", language, count=len(missing))))
    return code


def _write_updates(app: App, result: OutdatedResult, plans: Mapping[str, PlannedSkill], folder: Path) -> int:
    """Writes `NAME.json` for each skill with an update, and returns how many. `evals` are the figures of the update's
    own evals with its new description, null if it has none; `problem` says why the update would be refused."""
    from navigator_kernel.cli.skill.eval import tried
    from navigator_kernel.evals.cases import cases_in
    from navigator_kernel.evals.score import score

    writer = FolderWriter([folder])
    writer.make_folder(folder)
    updates = [update for update in result.skills if update.state in {"changed", "moved"} and update.name in plans]
    for update in updates:
        plan, here, figures = plans[update.name], app.bare.catalogue.find(update.name), None
        with TemporaryDirectory(prefix="navigator-") as scratch:
            evals, index, inner = Path(scratch) / "evals", Path(scratch) / "index", FolderWriter([Path(scratch)])
            inner.make_folder(index)
            for path, data in plan.contents.items():
                above, _, file = path.rpartition("/")
                if above == "evals" and file.endswith(".json"):
                    inner.write(evals / file, data)
            cases, _ = cases_in(update.name, evals)
            if cases and here is not None:
                place = {"path": here.path, "folder": here.folder, "level": here.level, "enabled": here.enabled}
                skill = replace(plan.skill, name=update.name, **place)
                figures = score(tried(app.bare, cases, app.settings, [skill], index)).to_dict()
        source = clean(plan.receipt.source, lines=False)
        more = {"source": source, "ref": plan.receipt.ref, "digest": plan.receipt.digest, "evals": figures}
        body = {"v": 1, **to_builtins(update), **more}
        text = json.dumps(body, ensure_ascii=False, indent=1)
        writer.write(folder / f"{update.name}.json", f"{text}\n".encode("utf-8", errors="backslashreplace"))
    return len(updates)


@click.command("rollback")
@click.option("--to", help="The stamp of an earlier lock, or its beginning; by default the last one.")
@click.option("--force", is_flag=True, help="Replace skills that were edited here; a copy of them is kept.")
@dry_option
@reach_options
@place_options
@json_option
@pass_app
def rollback(app: App, /, *, to: str | None, as_json: bool, **given: Any) -> None:
    """Return to an earlier skills.lock.json, byte for byte."""
    with busy(app, "rollback", quiet=as_json) as lifecycle:
        result = lifecycle.rollback(to or "", InstallOptions(**given))
    show_json(result, exit_code=0) if as_json else _show_restored(app, result)


@click.command("repair")
@take_option
@dry_option
@filter_options
@json_option
@pass_app
def repair(app: App, /, *, take: Sequence[str], as_json: bool, **given: Any) -> int:
    """Merge a lock file that git could not merge; rebuild an unreadable lock file, receipt or skills.db."""

    def run(take: Mapping[str, Side]) -> RepairResult:
        with busy(app, "repair", quiet=as_json) as lifecycle:
            return lifecycle.repair(InstallOptions(**given), take)

    result = taking(app, take, run, quiet=as_json)
    code = Damaged.exit_code if any(level.unreadable for level in result.levels) else 0
    if as_json:
        show_json(result, exit_code=code)
        return code
    for one in result.levels:
        which = one.level if one.target == "claude" else f"{one.level}, .agents"
        skills, files = numbered(one.skills, "skill"), numbered(len(one.rewritten), "file")
        say_lines(f"{which}: {skills}, {files} rewritten, {one.swept} swept")
        say_lines([f"  missing: {name}" for name in one.missing])
        say_lines([f"  unreadable: {name}: {why}" for name, why in one.unreadable.items()])
        done = "would remove" if result.dry_run else "removed"
        say_lines([f"  {done} {link}, which leads to nothing" for link in one.unlinked])
    return code


def _reached(result: OutdatedResult | UpdateResult) -> int:
    """The exit code: 7 if no source could be reached, 1 if some could not or were refused, or if a receipt could not
    be read."""
    states = {skill.state for skill in result.skills}
    if states == {"unreachable"}:
        return FetchFailed.exit_code
    return int(bool(states & {"refused", "unreachable", "unreadable"}))


def _counted(codes: Iterable[tuple[str, str]], language: Language) -> str:
    """`2 changed, 14 current`, in the order of the English words; each code has its kind before it."""
    counts = sorted(Counter(codes).items(), key=lambda held: worded(held[0][0], held[0][1], "en"))
    words = [
        say("count.of", language, count=count, word=worded(kind, code, language)) for (kind, code), count in counts
    ]
    return APART[language].join(words) or say("count.none", language)


def _show_restored(app: App, result: RestoreResult, *, every: bool = False) -> None:
    """Prints what changed in the restored skills and the findings of new ones, what was restored and removed by name,
    and how many skills are as they were."""
    for one in result.skills:
        lines(_changes(one.name, one.change, app.spoken) if one.change is not None else ())
    Report(app.spoken, verbose=every).findings([skill for skill in result.skills if skill.change is None])
    would = "would." if result.dry_run else ""
    for action in ("restored", "removed", "kept"):
        skills = [skill for skill in result.skills if skill.action == action]
        if not every and len(skills) > (1 if action == "kept" else FEW):
            skills = [skill for skill in skills if skill.backup]
            count = sum(skill.action == action for skill in result.skills) - len(skills)
            lines(say(f"rollback.{would}{action}", app.spoken, name=say("count.skills", app.spoken, count=count)))
        for one in skills:
            backup = say("update.backup", app.spoken, path=one.backup) if one.backup and not would else ""
            lines(say(f"rollback.{would}{action}", app.spoken, name=one.name) + backup)


COMMANDS: Mapping[str, click.Command] = {
    "install": install,
    "outdated": outdated,
    "repair": repair,
    "rollback": rollback,
    "uninstall": uninstall,
    "update": update,
}


FEW = 10  # most skills with a line each
FEW_NOTES = 5  # most findings, or skills left out, with a line each
NAMED = 5  # names shown for a group


class Report(Struct, frozen=True):
    """Writes in one language. `quiet` shows only what went wrong, `verbose` a line for everything."""

    language: Language
    quiet: bool = False
    verbose: bool = False

    def write(self, result: InstallResult, seconds: float) -> None:
        skills, left = result.skills, result.left_out
        failures = [one for one in left if one["failure"]]
        if self.quiet:
            self._left_out(failures)
            self.unscanned(skills)
            return
        for skill in skills if self.verbose or len(skills) <= FEW else ():
            done = "same" if not skill.changed else "to_do" if result.dry_run else "done"
            commit = result.commit or self._say("install.no_commit")
            line = self._say(f"install.{done}", name=skill.name, commit=commit)
            lines(line + "".join(self._say("install.linked", link=link) for link in skill.links))
        if len(skills) + len(left) > 1:  # `837 installed, 3 skipped, 2 blocked in 9.1 s`
            counts = {"would" if result.dry_run else "installed": result.counts.installed}
            others = {name: getattr(result.counts, name) for name in ("there", "skipped", "blocked")}
            counts |= {name: count for name, count in others.items() if count}
            counted = [self._say(f"install.{name}", count=count) for name, count in counts.items()]
            lines(self._say("install.summary", parts=APART[self.language].join(counted), seconds=f"{seconds:.1f}"))
        sys.stdout.flush()  # so that the notes on stderr come after these lines
        meant = [one for one in left if not one["failure"]]
        self._left_out(meant) if self.verbose else self._groups(meant)
        self._left_out(failures)
        # Prints how to add the MCP servers that the plugins bring, and their other parts
        for plugin in result.plugins:
            for server, command in plugin.servers.items():
                note(self._say("install.server", plugin=plugin.plugin, server=server, command=command))
            for (why, _), parts in _grouped(((why, ""), part) for part, why in plugin.left_out.items()):
                note(self._say("install.parts", plugin=plugin.plugin, parts=self._some(parts), why=why))
        self.findings(skills)
        self.unscanned(skills)

    def unscanned(self, skills: Sequence[InstalledSkill] | Sequence[UpdatedSkill]) -> None:
        """Prints a line about skills that were not scanned completely."""
        if names := [skill.name for skill in skills if skill.verdict == "not_scanned"]:
            note(self._say("install.unscanned", names=self._some(names)))

    def _say(self, key: str, **values: Any) -> str:
        return say(key, self.language, **values)

    def _left_out(self, left: Sequence[Mapping[str, Any]]) -> None:
        if len(left) > FEW_NOTES and not self.verbose:
            self._groups(left)
            return
        for one in left:
            why, hint = (in_language(text, self.language) for text in (one["msg"], one["hint"]))
            is_choice = one.get("blocked_by") or one["state"] == "pending"
            accept = f"{SEMICOLON[self.language]}{hint}" if is_choice else ""
            name, state = one["path"] or one["name"], self._say(f"left.{one['state']}")
            note(f"{state} {name}{COLON[self.language]}{why}{accept}")

    def _groups(self, left: Sequence[Mapping[str, Any]]) -> None:
        pairs = []
        for one in left:  # the reason, with the codes that state it more exactly
            reason, english = (reason_of(one["reason"], one["path"], language) for language in (self.language, "en"))
            pairs.append(((one["state"], reason + str(one["why"]).removeprefix(english)), one["name"]))
        for (state, why), names in _grouped(pairs):
            facts = {"state": self._say(f"left.{state}"), "count": len(names), "why": why}
            note(self._say("install.group", **facts, names=self._some(names)))

    def findings(self, skills: Sequence[InstalledSkill] | Sequence[RestoredSkill]) -> None:
        """Prints findings as `scan` does, or by rule if there are many. Notes only with `verbose`."""
        every = ((skill.name, finding) for skill in skills for finding in skill.findings)
        seen = [(name, finding) for name, finding in every if self.verbose or finding["level"] != "note"]
        if self.verbose or len(seen) <= FEW_NOTES:
            for one in skills:
                note_lines(one.name, one.findings, notes=self.verbose)
            return
        for (level, code), names in _grouped(((finding["level"], finding["code"]), name) for name, finding in seen):
            level, shown = self._say(f"level.{level}"), self._some(dict.fromkeys(names))
            colon = COLON[self.language]
            note(f"{level}{colon}{len(names)} × {code}{colon}{shown}")

    def _some(self, names: Iterable[str]) -> str:
        every = list(names)
        shown = BETWEEN[self.language].join(every[:NAMED])
        return self._say("install.some", names=shown) if len(every) > NAMED else shown


def _grouped(pairs: Iterable[tuple[tuple[str, str], str]]) -> list[tuple[tuple[str, str], list[str]]]:
    """The names by key, the largest group first."""
    groups: dict[tuple[str, str], list[str]] = {}
    for key, name in pairs:
        groups.setdefault(key, []).append(name)
    return sorted(groups.items(), key=lambda group: (-len(group[1]), group[0]))
