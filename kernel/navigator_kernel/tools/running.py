"""The tool `run`: runs a command or a script of the skill in the sandbox, with consent."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.files.inside import read_inside
from navigator_kernel.errors import KernelError, NotFound, Refused, UsageProblem
from navigator_kernel.text import lazy_compile
from navigator_kernel.tools.places import ROOT_NAMES, Places, rooted
from navigator_kernel.values.job import Job

if TYPE_CHECKING:
    from navigator_kernel.ports import Executor
    from navigator_kernel.values.allowed import Allowed
    from navigator_kernel.values.job import Outcome, Want
    from navigator_kernel.values.resource import SkillDef

SECONDS, MOST = 120.0, 600.0  # seconds for a command, and the most it can request
SHOWN = 16_000  # characters of its output for a model
LARGEST = 16 * 1024 * 1024  # bytes of a file that an approval covers
LINE = 3_000  # characters of a command, which is shown whole to the person
_SHELL = frozenset("|&;<>()$`*?[]{}~#!\n")
_INTERPRETERS = lazy_compile(r"python3?(?:\.\d+)?|bash|sh|node|deno|bun|ruby|perl|Rscript")
_ASSIGNMENT = lazy_compile(r"\w+=.*")

Needed = Callable[["SkillDef", "Path | None", Sequence[str]], tuple[str, ...]]


class Command(NamedTuple):
    """The command to run: its argv, and the skill's script that it runs, if any."""

    argv: tuple[str, ...]
    script: Path | None
    written: str


def command_of(arguments: Mapping[str, Any], places: Places, allowed: Allowed) -> Command:
    """The command from `argv`, or from the bash line `command`. A line of plain words needs no shell: each word that
    names a file of the skill, or one that the person named, becomes its path. Refused if `allowed-tools` does not allow
    it."""
    argv, line = arguments.get("argv"), str(arguments.get("command") or "")
    if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
        words, line = [rooted(word, places.folder) for word in argv], shlex.join(argv)
    elif line.strip():
        words = _plain_words(rooted(line, places.folder))
    else:
        raise UsageProblem("run needs a command", hint='{"command": "python script.py"}, or argv as a list of words')
    if len(line) > LINE or "\x00" in line:
        raise UsageProblem(f"the command is over {LINE:,} characters", hint="write a script, then run it")
    if not allowed.fits(line) or (allowed.commands and not words):
        hint = f"allowed-tools of this skill: {', '.join(allowed.commands)}; one command at a time"
        raise Refused("this skill may not run that command", hint=hint, reason="allowed-tools")
    if not words:
        return Command((shutil.which("bash") or "/bin/sh", "-c", line), None, line)
    found = tuple(_placed(word, places) for word in words)
    return Command(found, _own_script(found, places), line)


def job_of(
    command: Command,
    arguments: Mapping[str, Any],
    places: Places,
    executor: Executor,
    run: str,
    call: str,
    needed: Needed,
) -> Job:
    """The job for a command. The person is asked about a script of the skill once for these bytes of the skill, and
    about any other command each time, by the call and the bytes of the files that it names (JIT-12)."""
    named = [str(one) for one in arguments.get("packages") or ()]
    packages = needed(executor.skill, command.script, named)
    wants: tuple[Want, ...] = ("packages",) if packages else ()
    own = command.script is not None and not named
    digest = executor.digest if own else _digest(command, places, executor.digest, call, packages)
    return Job(
        actor="tool",
        subject=executor.skill.name,
        digest=digest,
        run=run,
        argv=command.argv,
        cwd=places.workspace,
        timeout=_seconds(arguments),
        origin=executor.origin if own else "",
        wants=wants,
        packages=packages,
        reads=(places.folder, *places.named, *places.earlier),
        project=places.project,
        env={**dict.fromkeys(ROOT_NAMES, str(places.folder)), "PATH": _path()},
    )


def described(outcome: Outcome, keep: Callable[[str], str]) -> str:
    """The outcome of a command for the model; `keep` stores a long output and returns its path."""
    out = outcome.stdout.decode("utf-8", "replace").rstrip()
    err = outcome.stderr.decode("utf-8", "replace").rstrip()
    parts = [out, f"stderr:\n{err}" if err else ""]
    whole = "\n".join(part for part in parts if part)
    if len(whole) > SHOWN:
        whole = f"{whole[: SHOWN // 2]}\n… the whole output is in {keep(whole)} …\n{whole[-SHOWN // 2 :]}"
    if outcome.timed_out:
        how = f"it was stopped after {outcome.elapsed:.0f} s"
    elif outcome.exceeded:
        how = f"it was stopped: too much {outcome.exceeded}"
    else:
        how = f"exit code {outcome.exit_code}"
    cut = "the output was cut" if outcome.truncated else ""
    left = f"wrote: {', '.join(outcome.wrote[:50])}" if outcome.wrote else ""
    return "\n".join(part for part in (how, cut, left, whole) if part)


def _seconds(arguments: Mapping[str, Any]) -> float:
    try:
        return min(max(float(arguments.get("timeout") or SECONDS), 1.0), MOST)
    except (TypeError, ValueError) as error:
        raise UsageProblem("timeout must be a number of seconds", hint=f"1 to {MOST:.0f}") from error


def _path() -> str:
    """Looks first for the kernel's own Python, as another one may be hidden from the sandbox."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _plain_words(line: str) -> list[str]:
    """The words of a line that needs no shell; empty if it needs one."""
    if not _SHELL.isdisjoint(line):
        return []
    try:
        words = shlex.split(line)
    except ValueError:
        return []
    return [] if not words or _ASSIGNMENT.fullmatch(words[0]) or words[0] in {"cd", "source", "export"} else words


def _placed(word: str, places: Places) -> str:
    """Replaces a relative path of a file outside the workspace by its full path."""
    if Path(word).is_absolute() or word.startswith("-") or os.path.lexists(places.workspace / word):
        return word
    try:
        place = places.find(word)
    except Refused:
        return word
    return str(place.path) if place.zone in {"skill", "named", "earlier"} and place.path.exists() else word


def _own_script(argv: Sequence[str], places: Places) -> Path | None:
    """The skill's own script that this runs, directly or by an interpreter without options."""
    if (script := places.own(argv[0])) is not None:
        return script if Path(argv[0]).is_absolute() else None
    if len(argv) > 1 and _INTERPRETERS.fullmatch(argv[0]) and Path(argv[1]).is_absolute():
        return places.own(argv[1])
    return None


def _digest(command: Command, places: Places, skill: str, call: str, packages: Sequence[str]) -> str:
    """The digest of this call: the command, the skill, the packages, and every file of the workspace that a word
    names."""
    files: dict[str, str] = {}
    for word in command.written.split():
        parts = os.path.normpath(word.strip("'\"")).split("/")
        if parts[0] not in {"", ".", ".."}:
            with suppress(KernelError):
                files[word] = hashlib.sha256(read_inside(places.workspace, parts, LARGEST)).hexdigest()
    body = json.dumps([call, list(command.argv), skill, files, list(packages)], sort_keys=True)
    return f"#{hashlib.sha256(body.encode()).hexdigest()}"


def refuse_missing(command: Command) -> None:
    """Raises NotFound, before anybody is asked, if the program is not installed."""
    if Path(command.argv[0]).is_absolute() or shutil.which(command.argv[0], path=_path()):
        return
    raise NotFound(f"no program is called {command.argv[0]!r}", hint="use Python, or say what has to be installed")
