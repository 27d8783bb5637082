"""The tool `run`: runs a command or a script of the skill in the sandbox, with consent."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.files.fingerprint import Fingerprint
from navigator_kernel.adapters.files.inside import read_inside
from navigator_kernel.errors import NotFound, Refused, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import escape_controls, lazy_compile, shown_lines
from navigator_kernel.tools.again import LONGEST
from navigator_kernel.tools.places import ROOT_NAMES, Places, rooted
from navigator_kernel.values.job import Job
from navigator_kernel.values.rights import PACKAGES, RUN, SCRIPTS, covering

if TYPE_CHECKING:
    from navigator_kernel.ports import Executor
    from navigator_kernel.text import Language
    from navigator_kernel.values.allowed import Allowed
    from navigator_kernel.values.job import Outcome, Want
    from navigator_kernel.values.resource import SkillDef
    from navigator_kernel.values.standing import Need

SECONDS, MOST = 120.0, 600.0  # seconds for a command, and the most it can request
SHOWN = 16_000  # characters of its output for a model
FOLDERS, MATCHES, STARS = 8, 200, 8  # folders that a line names, files of one pattern, and its stars
LONGEST_NAME = 1_000  # characters of a word that may name a file
LINE = 3_000  # characters of a command, which is shown whole to the person
_SHELL = frozenset("|&;<>()$`*?[]{}~#!\n")
_PIECE = lazy_compile(r"[^\s'\"`$()<>|&;{},=:@\\#+!]+")
_QUOTED = lazy_compile(r"'([^'\n]{1,200})'|\"([^\"\n]{1,200})\"")
_STARS = lazy_compile(r"\*+")
_MODULE = lazy_compile(r"\w+(?:\.\w+)*")
# Files that are programs by their name, and those that a program reads although no word names them
_PROGRAMS = frozenset(
    ".py .pyw .sh .bash .zsh .js .mjs .cjs .ts .rb .pl .pm .r .R .lua .php .awk .sed .mk .tcl .jl .go .rs .c".split()
)
_UNASKED = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",),
    "pytest": ("conftest.py",),
    "just": ("justfile",),
}
_OF_SHELLS = frozenset(". : alias cd command eval exec export set source trap ulimit umask unset".split())
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
    also: tuple[Need, ...] = (),
) -> Job:
    """The job for a command. A yes for once is to the call and the bytes that it can reach (JIT-12); one for longer is
    a right of these bytes of the skill: to its own scripts, to commands, or to commands with the same packages. Reads
    every file of the workspace."""
    named = [str(one) for one in arguments.get("packages") or ()]
    packages = needed(executor.skill, command.script, named)
    wants: tuple[Want, ...] = ("packages",) if packages else ()
    own, name = command.script is not None and not named, executor.skill.name
    words = [SCRIPTS] if own else [f"{PACKAGES}{','.join(sorted(packages))}"] if packages else []
    words += [] if packages else [RUN]
    lasting, *unless = covering(words, name, executor.digest)
    return Job(
        actor="tool",
        subject=name,
        digest=_digest(command, places, executor.digest, call, packages),
        run=run,
        argv=command.argv,
        cwd=places.workspace,
        timeout=_seconds(arguments),
        lasting=lasting,
        unless=tuple(unless),
        is_script=command.script is not None,
        also=also,
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
    return [] if not words or _ASSIGNMENT.fullmatch(words[0]) or words[0] in _OF_SHELLS else words


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
    """The digest of this call: the command, the skill, the packages, everything in the workspace, and the files that
    the person named and that earlier turns wrote: other bytes are another call."""
    held = Fingerprint()
    files = [held.of_folder(places.workspace), held.of_files(places.named), held.of_files(places.earlier)]
    body = json.dumps([call, list(command.argv), skill, files, list(packages)], sort_keys=True)
    return f"#{hashlib.sha256(body.encode()).hexdigest()}"


def files_shown(command: Command, places: Places, language: Language) -> str:
    """The files of the workspace and of earlier turns that a command names, and the programs that these name, whole: a
    model or an earlier command may have written them. UsageProblem if they are too long for a person."""
    shown: dict[Path, str] = {}
    left = [("\n".join([command.written, *command.argv]), False)]
    while left:
        text, only_programs = left.pop(0)
        for path in named_files(text, places):
            if path in shown or (only_programs and path.suffix not in _PROGRAMS):
                continue
            content = _text_of(path)
            shown[path] = _shown_file(path, content, places, language)
            left.append((content or "", True))
            if sum(map(len, shown.values())) > LONGEST:
                hint = "split them, or let a short script open the long ones, so that the command does not name them"
                raise UsageProblem("the files that the command names are too long to show to the person", hint=hint)
    return "\n".join(shown.values())


def named_files(text: str, places: Places) -> list[Path]:
    """The real paths of the files of the workspace and of earlier turns that a command line or a script names: by path,
    in quotes, after a redirection, as a module, by a pattern, in a folder that it names, or as what a program reads
    unasked (`make`)."""
    text = text.replace(f"{places.workspace}/", "")
    quoted = [word for hit in _QUOTED.finditer(text) for word in hit.groups() if word]
    words = dict.fromkeys([*_shell_words(text), *quoted, *_PIECE.findall(text)])
    folders = [word for word in words if word.strip("./") and _is_folder(places.workspace / word)]
    found: dict[Path, None] = {}
    for base in (places.workspace, *(places.workspace / folder for folder in folders[:FOLDERS])):
        for word in words:
            found |= dict.fromkeys(_reached(word, base, places))
    return list(found)


def _reached(word: str, base: Path, places: Places) -> Iterator[Path]:
    for name in _names_in(word):
        matches = islice(base.glob(name), MATCHES) if set(name) & set("*?[") else (base / name,)
        for path in matches:
            if os.path.lexists(path):
                real = Path(os.path.realpath(path))
                if real.is_file() and (real.is_relative_to(places.workspace) or real in places.earlier):
                    yield real


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that is too long for a path
        return False


def _names_in(word: str) -> Iterator[str]:
    """The paths that a word may mean."""
    if not word or len(word) > LONGEST_NAME or "\x00" in word:
        return
    is_pattern = set(word) & set("*?[")
    if not is_pattern:
        yield word
    elif word.count("*") <= STARS and not word.startswith("/") and ".." not in word:
        yield _STARS.sub("*", word)
    if word.startswith("-") and word[2:]:
        yield from _names_in(word[2:])
    yield from _UNASKED.get(word.rpartition("/")[2], ())
    if not is_pattern:
        yield from (f"{word}/{name}" for name in ("__main__.py", "__init__.py", "index.js"))
    if _MODULE.fullmatch(word):
        parts = word.split(".")
        for count in range(1, min(len(parts), 8) + 1):
            path = "/".join(parts[:count])
            yield from (f"{path}.py", f"{path}/__init__.py", f"{path}/__main__.py")


def _shell_words(text: str) -> list[str]:
    """The words of a line with their quotes removed; up to the place where it is not a line of a shell."""
    words = shlex.shlex(text[:LINE], posix=True, punctuation_chars=True)
    words.commenters, words.whitespace_split, found = "", True, []
    with suppress(ValueError):
        for word in words:
            found.append(word)  # noqa: PERF402 - those before an error count
    return found


def _text_of(path: Path) -> str | None:
    """The content with bytes that are not UTF-8 as escapes; None if it is not text, or is too long to show."""
    data = read_inside(path.parent, (path.name,), 4 * LONGEST + 1)  # what is longer has too many characters
    lost = len(data) - len(data.decode("utf-8", "ignore").encode()) + data.count(0)
    is_text = lost * 10 <= len(data) or path.suffix in _PROGRAMS or data.startswith(b"#!")
    return data.decode("utf-8", "backslashreplace") if is_text else None


def _shown_file(path: Path, content: str | None, places: Places, language: Language) -> str:
    inside = path.is_relative_to(places.workspace)
    name = escape_controls(str(path.relative_to(places.workspace) if inside else path))
    size = f"{path.stat().st_size:,}"
    if content is None:
        digest = Fingerprint().of_file(path.parent, (path.name,))
        return say("ask.file_of_bytes", language, path=name, size=size, digest=digest)
    return say("ask.file", language, path=name, size=size, text=shown_lines(content.removesuffix("\n")))


def refuse_missing(command: Command) -> None:
    """Raises NotFound, before anybody is asked, if the program is not installed."""
    if Path(command.argv[0]).is_absolute() or shutil.which(command.argv[0], path=_path()):
        return
    raise NotFound(f"no program is called {command.argv[0]!r}", hint="use Python, or say what has to be installed")
