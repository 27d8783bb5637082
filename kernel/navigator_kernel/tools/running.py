"""The tool `run`: runs a command or a script of the skill in the sandbox, with consent."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from navigator_kernel.adapters.files.tree import Fingerprint, read_inside, walk_inside
from navigator_kernel.errors import KernelError, NotFound, Refused, UsageProblem
from navigator_kernel.language.wording import say
from navigator_kernel.text import Language, escape_controls, lazy_compile, shown_lines
from navigator_kernel.tools.guarded import LONGEST
from navigator_kernel.tools.places import COPY, ROOT_NAMES, Places, is_obeyed, meant_place, rooted
from navigator_kernel.values.allowed import Allowed, Simple, Unclear, Word, commands_in
from navigator_kernel.values.job import OF_TMP, OWN_TMP, WORK_FOLDERS, Job, Outcome, Want
from navigator_kernel.values.rights import PACKAGES, RUN, SCRIPTS, covering

if TYPE_CHECKING:
    from navigator_kernel.ports import Executor
    from navigator_kernel.values.resource import SkillDef
    from navigator_kernel.values.standing import Need

SECONDS, MOST = 120.0, 600.0  # seconds for a command, and the most it can request
SHOWN = 16_000  # characters of its output for a model
FOLDERS, MATCHES, STARS = 8, 200, 8  # folders that a line names, files of one pattern, and its stars
LONGEST_NAME = 1_000  # characters of a word that may name a file
SCRIPT = 1_000_000  # bytes of a script whose text is looked at
LEAVES = 200  # files below a folder of a skill that get a name each
LINE = 3_000  # characters of a command, which is shown whole to the person
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
_OF_SHELLS = frozenset(
    ". : [ alias bg break builtin cd command continue declare dirs echo eval exec exit export false fg getopts hash "
    "jobs kill let local mapfile popd printf pushd pwd read readonly return set shift shopt source test time times "
    "trap true type ulimit umask unalias unset wait".split()
)
_LOOKERS = frozenset("cat cd cmp cut diff echo file grep head ls nl pwd rg stat tail tree true wc".split())
_PATH = lazy_compile(r"[\w./-]+")
_REFUSED = lazy_compile(r"Read-only file system|Permission denied|Operation not permitted|EROFS|EACCES|EPERM")
_ELSEWHERE = lazy_compile(rf"(?<![\w./-])(?:{'|'.join(WORK_FOLDERS)})/")
_PATH_WORD, _CD = lazy_compile(r"[~$\w{}./-]+"), lazy_compile(r"(\b(?:cd|pushd) {1,8}['\"]?)(?:\./|/)?([\w.-]+)")
# The last command of a line if it goes on without the line: nothing after it but waiting and telling
_BACKGROUND = lazy_compile(r"[^\s&|>]\s*&(?:\s|$)\s*(?:(?:sleep|echo|disown)\b[^\n;&|]{0,200}(?:;|&&|\n|$)\s*)*$")
_NO_SERVER = lazy_compile(r"Connection refused|ECONNREFUSED|Failed to connect to (?:localhost|127\.)")
_GONE = lazy_compile(r"No such file|ENOENT")
_INTERPRETERS = lazy_compile(r"python3?(?:\.\d+)?|bash|sh|node|deno|bun|ruby|perl|Rscript")
# What starts a script that is not executable and has no `#!` line
_STARTED = {".py": "python3", ".sh": "bash", ".bash": "bash", ".rb": "ruby", ".pl": "perl"}
_STARTED |= dict.fromkeys((".js", ".mjs", ".cjs"), "node")
_STARTERS = lazy_compile(r"#!\s*(?:/usr/bin/env (?:-S )?)?(?:/[\w./-]*/)?(\w[\w.+-]*)")

_OF_NODE = frozenset("node npm npx pnpm yarn tsx deno bun".split())
_REQUIRED = lazy_compile(r"(?:\brequire\(|\bfrom |\bimport[ (])['\"`]([\w@.][\w@./-]{0,100})['\"`]")
_NO_PACKAGE = lazy_compile(r"Cannot find (?:module|package) '([@\w][\w@.-]{0,100}(?<!\.js)(?:/[\w.-]{1,100})?)'")
_BESIDE = lazy_compile(r"__dirname|import\.meta|__file__|\$0|BASH_SOURCE")
_WRITING = lazy_compile(
    r"writeFile|appendFile|mkdir|createWriteStream|copyFile|unlink|rename|write_text|write_bytes|makedirs|shutil\."
    r"|open\([^)\n]{0,200},\s*(?:mode\s*=\s*)?['\"][wax]|>\s|\btee\b|npm install|npm i\b"
)
COPIED = 1_000  # the most files of a skill that are copied
_DATA = frozenset(".txt .md .csv .tsv .json .jsonl .log .png .jpg .jpeg .webp .svg .pdf .html .xml .db .sqlite".split())
# How packages are installed by a command: the words that begin it, and the kind of the packages
_INSTALLS = {
    ("pip", "install"): "", ("pip", "download"): "", ("uv", "add"): "", ("uv", "sync"): "", ("uvx",): "",
    ("uv", "pip", "install"): "", ("uv", "tool", "run"): "", ("pipx",): "", ("poetry", "add"): "",
    ("conda", "install"): "", ("npm", "install"): "npm:", ("npm", "i"): "npm:", ("npm", "ci"): "npm:",
    ("npm", "add"): "npm:", ("npm", "exec"): "npm:", ("pnpm", "add"): "npm:", ("pnpm", "install"): "npm:",
    ("pnpm", "dlx"): "npm:", ("yarn", "add"): "npm:", ("yarn", "install"): "npm:", ("bun", "add"): "npm:",
    ("bun", "install"): "npm:", ("npx",): "npm:", ("bunx",): "npm:", ("playwright", "install"): None,
    ("apt", "install"): None, ("apt-get", "install"): None, ("brew", "install"): None, ("apk", "add"): None,
    ("uv", "run"): None,
}  # fmt: skip
# Files that list packages, and options of installers whose next word is not a package
_LISTS = (".txt", ".toml", "package.json", "package-lock.json")
_WITH_VALUE = frozenset("-r --requirement -c --constraint -e --editable -i --index-url --extra-index-url".split())
_WITH_VALUE |= frozenset("--find-links -t --target --prefix --root --registry --python --group --cache-dir".split())
_OF_SKILL = "those of the skill's requirements.txt or package.json are there without it when its script runs"
_NPX = lazy_compile(r"(?<![\w./-])npx (?:-y |--yes |--no-install |--no )*(?=[@\w])")
# Options of grep for folders, after options without a value
_RECURSIVE = lazy_compile(r"--recursive|-[EFGHILPTUVZabchilnoqsuvwxyz0]*+r[a-zA-Z]*")
# `uv run` before a program, or with group 1 empty before a script, `-m` or `-`: uv asks an index, and is not needed
_UV_RUN = lazy_compile(
    r"(?<![\w./'\"=-])uv run (?:(?:-[sq]|--(?:script|quiet|no-project|isolated|offline|no-sync|frozen|locked)) ){0,9}"
    r"(?:(?=-m |- |['\"]?[\w./${}-]{1,200}\.py\b)|(?=(\w)))"
)
_OFFLINE = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "UV_OFFLINE": "1", "npm_config_offline": "true"}

Needed = Callable[["SkillDef", Sequence[Path], Sequence[str], bool], tuple[str, ...]]


class Command(NamedTuple):
    """The command to run: its argv, the skill's own script that it runs, if it is only that, the line as written, and
    the commands in it; none if that is not certain."""

    argv: tuple[str, ...]
    script: Path | None
    written: str
    parts: tuple[Simple, ...] = ()


def command_of(arguments: Mapping[str, Any], places: Places, allowed: Allowed) -> Command:
    """The command from the bash line `command`, or from `argv`, which is a line of quoted words.

    Every line is run by bash in the workspace, where `names_for` makes the skill's files and those of the person
    reachable by the names that the model uses. Two things are changed. A line that is only a call of one of the skill's
    own scripts is started with the script's full path: the consent for it is to these bytes, whatever the workspace
    contains. A script that is not executable gets its interpreter. Refused if `allowed-tools` does not allow a command
    in the line."""
    argv, line = arguments.get("argv"), str(arguments.get("command") or "")
    if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
        line = shlex.join(rooted(word, places.folder) for word in argv)
    elif not line.strip():
        raise UsageProblem("run needs a command", hint='{"command": "python script.py"}, or argv as a list of words')
    if len(line) > LINE or "\x00" in line:
        raise UsageProblem(f"the command is over {LINE:,} characters", hint="write a script, then run it")
    line = _PATH_WORD.sub(lambda hit: _in_skill(hit[0], places), line)
    own = "" if _is_there(places.folder.name, places) else places.folder.name
    line = _CD.sub(lambda hit: f"{hit[1]}$SKILL_ROOT" if hit[2] == own else hit[0], line)
    if why := allowed.refused(_moved(_moved(line, places.folder, Path()), places.workspace, Path())):
        hint = f"{why}; allowed-tools of this skill: {', '.join(allowed.commands)}"
        raise Refused("this skill may not run that command", hint=hint, reason="allowed-tools")
    line = _UV_RUN.sub(lambda hit: "" if hit[1] else "python ", line)
    full = rooted(line, places.folder)
    try:
        parts = commands_in(full)
    except Unclear:
        parts = ()
    if argv := _of_own_script(parts, full, places):
        return Command(argv, Path(argv[0] if places.own(argv[0]) else argv[1]), line, parts)
    bash, is_safe = shutil.which("bash") or "/bin/sh", shlex.quote(str(places.folder)) == str(places.folder)
    return Command((bash, "-c", _startable(parts, full, places) if is_safe else line), None, line, parts)


def _in_skill(word: str, places: Places) -> str:
    """A path of the skill in the folder of another agent as one in its own folder: `~/.claude/skills/pdf/forms.md`."""
    name, parts = places.folder.name, word.split("/")
    is_path = parts[0] in {"", "skills"} or parts[0][0] in ".~$"
    for at, part in enumerate(parts if is_path and not word.startswith("//") else ()):
        if part == name and "skills" in parts[max(at - 2, 0) : at] and not _is_there(word, places):
            return "/".join(["$SKILL_ROOT", *parts[at + 1 :]])
    return word


def _is_there(word: str, places: Places) -> bool:
    return any(os.path.lexists(folder / word) for folder in (places.workspace, places.folder))


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
    refuse_installing(command, named)
    programs = {part.words[0].text for part in command.parts}
    is_node = bool(programs & _OF_NODE) and not any(name.startswith(("python", "pip", "uv")) for name in programs)
    scripts = scripts_of(command, places)
    packages = needed(executor.skill, (*scripts, *_package_of_skill(command, scripts, places)), named, is_node)
    wants: tuple[Want, ...] = ("packages",) if packages else ()
    own, name = command.script is not None and not named, executor.skill.name
    links, copies = names_for(places)
    argv, root = command.argv, places.folder
    if (held := _copy_for(scripts, places)) is not None:
        root, more = held
        copies |= more
        links |= {f"{root.name}/{key}": path for key, path in links.items() if not path.is_relative_to(places.folder)}
        for path in named_files(command.written, places):
            if path.is_relative_to(places.workspace) and not path.is_relative_to(root):
                links.setdefault(f"{root.name}/{path.relative_to(places.workspace)}", path)
        links = {
            key: root / path.relative_to(places.folder) if path.is_relative_to(places.folder) else path
            for key, path in links.items()
        }
        argv = tuple(_moved(word, places.folder, root) for word in argv)
    elif command.script is None:  # in the workspace, a folder of the skill has the files of the person, too
        for begin in ("cd ", 'cd "', "cd '"):
            argv = (*argv[:2], _moved(argv[2], f"{begin}{places.folder}", f"{begin}{places.workspace}"))
    if command.script is None and "npx" in programs:  # the programs of packages are on PATH, and npx asks a registry
        argv = (*argv[:2], _NPX.sub("", argv[2]))
    words = [SCRIPTS] if own else [f"{PACKAGES}{','.join(sorted(packages))}"] if packages else []
    words += [] if packages else [RUN]
    lasting, *unless = covering(words, name, executor.digest)
    return Job(
        actor="tool",
        subject=name,
        digest=_digest(command, places, executor.digest, call, packages),
        run=run,
        argv=argv,
        cwd=places.workspace,
        timeout=_seconds(arguments),
        lasting=lasting,
        unless=tuple(unless),
        is_script=command.script is not None,
        also=also,
        wants=wants,
        packages=packages,
        reads=(places.folder, *places.named, *places.folders, *places.earlier),
        folders=places.folders,
        project=places.project,
        links=links,
        copies=copies,
        env={**dict.fromkeys(ROOT_NAMES, str(root)), "PATH": _path(), **_OFFLINE},
    )


def names_for(places: Places) -> tuple[dict[str, Path], dict[str, Path]]:
    """The names that a command finds in the workspace beside its own files: those of the skill's files, in folders of
    the workspace so that `..` leads to it, and of the files that the person named, as links, and those of the files of
    earlier turns, as copies that it may change.

    They are the names that `Places.find` knows. A link gives no right: the sandbox shows a file or does not, whatever
    links to it, and writes to none of these. So a path of the project that nobody named stays closed. `lent` makes the
    names just before the command and removes them afterwards."""
    links: dict[str, Path] = {}
    copies: dict[str, Path] = {}
    if places.folder != places.workspace:
        entries = [path for path in sorted(places.folder.iterdir()) if not path.name.startswith(".")]
        links |= {path.relative_to(places.folder).as_posix(): path for entry in entries for path in _leaves(entry)}
        for copy in places.copies():
            links |= {name: copy / name for name in _data_in(copy, places) or ()}
    for path in places.named:
        inside = path.is_relative_to(places.project) and not path.is_relative_to(places.box)
        parts = path.relative_to(places.project).parts if inside else ()
        if parts and not any(part.startswith(".") for part in parts):
            links.setdefault("/".join(parts), path)
        links.setdefault(path.name, path)
    for folder in places.folders:
        links |= {leaf.relative_to(places.project).as_posix(): leaf for leaf in _leaves(folder)} | links
    for path in places.earlier:
        parts = path.relative_to(places.box).parts[1:] if path.is_relative_to(places.box) else ()
        for name in ("/".join(parts), path.name):
            if name and (not name.startswith(".") or parts[0] == OWN_TMP) and name not in links:
                copies.setdefault(name, path)
    return links, copies


def _leaves(entry: Path) -> list[Path]:
    """The files below a folder of the skill; the entry itself if it is a file, or has no files, or too many for a link
    each."""
    if entry.is_symlink() or not entry.is_dir():
        return [entry]
    found = (Path(at, name) for at, folders, names in os.walk(entry) for name in (*names, *folders))
    files = list(islice((path for path in found if path.is_symlink() or not path.is_dir()), LEAVES + 1))
    return sorted(files) if 0 < len(files) <= LEAVES else [entry]


def described(outcome: Outcome, job: Job, keep: Callable[[str], str]) -> str:
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
    wrote = [f"/{path[1:]}" if path.startswith(f"{OWN_TMP}/") else path for path in outcome.wrote[:50]]
    left = f"wrote: {', '.join(wrote)}" if wrote else ""
    disarmed = ""
    if outcome.disarmed:  # what was renamed, and how a command can use it again
        shown = ", ".join(f"{before} -> {after or '(removed: too deep)'}" for before, after in outcome.disarmed[:50])
        more = f" and {len(outcome.disarmed) - 50:,} more" if len(outcome.disarmed) > 50 else ""
        disarmed = f"renamed, because programs of the person would run or obey it unasked: {shown}{more}; "
        disarmed += "a command may rename it back for its own time (git needs .git and .git/HEAD)"
    notes = (how, cut, left, disarmed, whole, _advice("\n".join((out[-SHOWN:], err[-SHOWN:])), job))
    return "\n".join(note for note in notes if note)


def _advice(output: str, job: Job) -> str:
    """What to do instead, if the command tried to write to a file that is not its own, found no file, server or Node
    package, or left a server behind."""
    lines = output.splitlines()
    refused = [line for line in lines if _REFUSED.search(line)]
    words = [Path(word.removeprefix("./")) for line in refused for word in _PATH.findall(line)]
    named = {str(path) for word in words for path in (word, *word.parents)}
    for name, target in job.links.items():
        if name in named or any(str(target) in line for line in refused):
            return f"note: {name} is read-only here, it belongs to the skill or the person: write under another name"
    if absent := _NO_PACKAGE.search(output):
        return f'note: give run the package that has it: "packages": ["npm:{absent[1]}"]'
    if _BACKGROUND.search(job.argv[-1]) or any(map(_NO_SERVER.search, lines)):
        return "note: what a command starts ends with it: start a server and what asks it in one line"
    gone = [Path(word) for line in lines if _GONE.search(line) for word in _PATH.findall(line) if word.strip("./")]
    walked = (Path(at, name) for at, _, names in os.walk(job.cwd) for name in names) if gone else ()
    places = [*(job.cwd / name for name in (*job.links, *job.copies)), *islice(walked, COPIED)]
    for path in gone:
        near = {place for place in places if place.name.casefold() == path.name.casefold()}
        if len(near) == 1:
            return f"note: {path.name} is here as {near.pop()}"
    seen = "note: a command sees its workspace, the skill's files and those that the person named; read opens others"
    return seen if gone else ""


def _seconds(arguments: Mapping[str, Any]) -> float:
    try:
        return min(max(float(arguments.get("timeout") or SECONDS), 1.0), MOST)
    except (TypeError, ValueError) as error:
        raise UsageProblem("timeout must be a number of seconds", hint=f"1 to {MOST:.0f}") from error


def _path() -> str:
    """Looks first for the kernel's own Python, as another one may be hidden from the sandbox."""
    return os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])


def _of_own_script(parts: Sequence[Simple], line: str, places: Places) -> tuple[str, ...]:
    """The argv of a line that is only a call of the skill's own script, directly or by an interpreter without options,
    with the script's full path; empty for any other line."""
    if len(parts) != 1 or not parts[0].is_bare or not all(word.is_plain for word in parts[0].words):
        return ()
    words = parts[0].texts
    if shlex.split(line, comments=True) != list(words):  # there is a `&`, `!` or `time`
        return ()
    if (script := _own(words[0], places)) is not None:
        return (*_starter(script), str(script), *words[1:])
    if len(words) > 1 and _INTERPRETERS.fullmatch(words[0]) and (script := _own(words[1], places)) is not None:
        return (words[0], str(script), *words[2:])
    return ()


def _own(word: str, places: Places) -> Path | None:
    script = None if word.startswith("-") else _script_of(word, places)
    return script if script is not None and script.is_relative_to(places.folder) else None


def _startable(parts: Sequence[Simple], line: str, places: Places) -> str:
    """The line with the full path of a file that the skill has under another path (`meant_place`), and an interpreter
    before each script that cannot be started without one; `chmod` of the skill's own files does nothing."""
    follows = {word.start: option for part in parts for word, option in _following_links(part)}
    words = {word.start: (word, number == 0) for part in parts for number, word in enumerate(part.words)}
    needless = {part.words[0].start for part in parts if _is_chmod_of_skill(part, places)}
    for at, (word, is_program) in sorted(words.items(), reverse=True):
        if at in needless and line.startswith("chmod", at):
            line = f"{line[:at]}:{line[at + len('chmod') :]}"
        if at >= 0 and at in follows and line.startswith(word.text, at):
            line = f"{line[:at]}{follows[at]}{line[at + len(word.text) :]}"
            continue
        if at < 0 or "/" not in word.text or (script := _script_of(word.text, places)) is None:
            continue
        end = at + len(word.text)
        bases = (places.workspace, places.folder, *places.copies())
        is_there = any(os.path.lexists(folder / word.text) for folder in bases)
        path = line[at:end] if is_there or line[at:end] != word.text else str(script)
        starter = _starter(script) if is_program else ()
        line = "".join([line[:at], *(f"{name} " for name in starter), path, line[end:]])
    return line


def _following_links(command: Simple) -> Iterator[tuple[Word, str]]:
    """The words of a search through folders, with what makes it read the files of the skill and of the person, which
    are links here (`names_for`)."""
    program, *others = command.words
    if program.text in {"grep", "egrep", "fgrep"}:
        for word in others:
            if _RECURSIVE.fullmatch(word.text):
                yield word, "-R" if word.text == "--recursive" else word.text.replace("r", "R")
    elif program.text in {"rg", "du", "find"} and not any(
        word.text in {"-L", "-P", "-H", "--follow"} for word in others
    ):
        yield program, f"{program.text} -L"


def _is_chmod_of_skill(command: Simple, places: Places) -> bool:
    _mode, *files = [word.text for word in command.words[1:] if not word.text.startswith("-")] or [""]
    if command.words[0].text != "chmod" or not files:
        return False
    try:
        there = [meant_place(places, file.partition("*")[0] or ".") for file in files]
    except Refused:
        return False
    return all(place.zone == "skill" and place.path.exists() for place in there)


def _script_of(word: str, places: Places) -> Path | None:
    """The file of the workspace or of the skill that a word names."""
    try:
        place = meant_place(places, word) if "/" in word else places.find(word)
    except Refused:
        return None
    return place.path if place.zone in {"workspace", "skill"} and place.path.is_file() else None


def _starter(script: Path) -> tuple[str, ...]:
    """The program that must start the script: none if it is executable and has a `#!` line, or is another file."""
    if script.is_symlink():
        return ()
    first = read_inside(script.parent, (script.name,), 200).partition(b"\n")[0].decode("utf-8", "replace")
    hit = _STARTERS.match(first)
    if os.access(script, os.X_OK) and (hit or script.suffix not in _STARTED):
        return ()
    name = hit[1] if hit else _STARTED.get(script.suffix, "")
    return (name,) if name else ()


def scripts_of(command: Command, places: Places) -> tuple[Path, ...]:
    """The scripts of the skill and of the workspace that the line runs, as far as its words tell."""
    found: dict[Path, None] = {}
    for part in command.parts:
        words = [word.text for word in part.words if word.is_plain and not word.text.startswith("-")]
        for word in words[1:2] if words and _INTERPRETERS.fullmatch(words[0]) else words[:1]:
            script = _script_of(word, places)
            if script is not None and not script.is_symlink() and script.stat().st_size <= SCRIPT:
                found[script] = None
    return tuple(found)


def _package_of_skill(command: Command, scripts: Sequence[Path], places: Places) -> tuple[Path, ...]:
    """A path beside the skill's `package.json`, if the line or a script of the workspace requires a package of it, or a
    file of the skill, which may require one."""
    package = places.folder / "package.json"
    if not package.is_file() or any(script.is_relative_to(places.folder) for script in scripts):
        return ()
    listed = "".join(_texts([package]))
    for name in _REQUIRED.findall("\n".join((command.written, *_texts(scripts)))):
        words = name.split("/")
        is_own = name.startswith(".") and any(places.own(f"{name}{end}") for end in ("", ".js", ".mjs", ".cjs"))
        if is_own or f'"{"/".join(words[: 2 if name.startswith("@") else 1])}"' in listed:
            return (package.with_name("index.js"),)
    return ()


def may_script(command: Command, places: Places) -> bool:
    """Whether the line may run a script of the skill: it names one and does more than look at it, or it is not certain
    what it does."""
    programs = {part.words[0].text for part in command.parts}
    if command.script is not None or not programs or programs <= _LOOKERS:
        return command.script is not None or not programs
    of_skill = Places(workspace=places.folder, folder=places.folder, named=(), project=places.project)
    files = named_files("\n".join((rooted(command.written, places.folder), *command.argv)), of_skill)
    return any(path.suffix in _PROGRAMS or os.access(path, os.X_OK) for path in files)


def refuse_installing(command: Command, named: Sequence[str]) -> None:
    """Raises UsageProblem for a command that would install packages, which hangs or fails without a network: they are
    given to `run` itself, and are set up after one question."""
    if lists := [name for name in named if name.endswith(_LISTS)]:
        hint = f'packages takes names; {_OF_SKILL}; of another list, give the names: "packages": ["NAME"]'
        raise UsageProblem(f"{escape_controls(lists[0])} is a file, not a package", hint=hint)
    for part in command.parts:
        pairs = zip(part.texts, ("", *part.texts), strict=False)
        words = [word for word, before in pairs if not word.startswith("-") and before not in _WITH_VALUE]
        if words[:1] and words[0].startswith("python") and part.texts[1:2] == ("-m",):
            words = words[1:]
        words[:1] = [word.rstrip("0123456789.") for word in words[:1]]
        begun = next((begin for begin in _INSTALLS if tuple(words[: len(begin)]) == begin), None)
        if begun is None:
            continue
        kind, rest = _INSTALLS[begun], words[len(begun) :]
        if kind is None:
            hint = "use what is there, or tell the person what to install"
            if words[0] == "uv":
                hint = f'start the script with python, and name its packages in run: "packages": ["NAME"]; {_OF_SKILL}'
            raise UsageProblem("programs cannot be installed by a command", hint=hint)
        if words[0] == "npx" and named:
            continue  # `job_of` leaves npx out
        rest = [word for word in rest[: 1 if len(begun) == 1 else None] if not word.endswith(_LISTS)]
        written = [f"{kind}{word}" for word in rest if not word.startswith((".", "/"))]
        example = json.dumps(written or [f"{kind}NAME"])
        more = f'give run "packages": {example}'
        hint = f"leave that command out and {more}; {_OF_SKILL}" if rest else f"leave it out: {_OF_SKILL}; else {more}"
        raise UsageProblem("packages are not installed by a command", hint=hint)


def _copy_for(scripts: Sequence[Path], places: Places) -> tuple[Path, dict[str, Path]] | None:
    """A folder of the workspace for a copy of the skill, one from before if it only has data in it, and the names of
    the files in it, if one of its scripts seems to write beside itself: the skill's own folder is read-only. None for a
    skill of more than COPIED files."""
    own = [script for script in scripts if script.is_relative_to(places.folder) and places.folder != places.workspace]
    texts = (_text_of(script) or "" for script in own)
    if not any(_BESIDE.search(text) and _WRITING.search(text) for text in texts):
        return None
    files = [Path(entry.path) for entry in walk_inside(places.folder, ()) if not entry.is_folder]
    if len(files) > COPIED:
        return None
    roots = (places.workspace / f"{COPY}{number}" for number in range(1, COPIED))
    root = next(root for root in roots if not os.path.lexists(root) or _data_in(root, places) is not None)
    return root, {f"{root.name}/{path}": places.folder / path for path in files}


def _data_in(root: Path, places: Places) -> list[str] | None:
    """The paths of the files that scripts left in a copy of the skill; None if one may be a program, a link or a file
    of the skill, which a command may have planted there: that copy is not used again."""
    paths = [Path(top, name) for top, folders, files in os.walk(root) for name in (*folders, *files)]
    left = [path.relative_to(root) for path in paths if not path.is_dir()]
    is_data = all(path.suffix in _DATA and not is_obeyed((path.name,)) for path in left)
    is_new = not any(os.path.lexists(places.folder / path) for path in left)
    has_links = any(path.is_symlink() for path in (root, *paths))
    return list(map(str, left)) if is_data and is_new and not has_links else None


def _moved(word: str, folder: Path | str, root: Path | str) -> str:
    """The word or line with paths in the skill's folder as paths in its copy."""
    for end in ("/", *" \n;&|)\"'<>"):
        word = word.replace(f"{folder}{end}", f"{root}{end}")
    return f"{word.removesuffix(str(folder))}{root}" if word.endswith(str(folder)) else word


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
    text = _ELSEWHERE.sub("", OF_TMP.sub(f"{OWN_TMP}/", text.replace(f"{places.workspace}/", "")))
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


def _texts(paths: Iterable[Path]) -> list[str]:
    """The texts of the files that can be read: not through a link that a killed command left."""
    texts: list[str] = []
    for path in paths:
        with suppress(KernelError):
            texts.append(_text_of(path) or "")
    return texts


def _shown_file(path: Path, content: str | None, places: Places, language: Language) -> str:
    inside = path.is_relative_to(places.workspace)
    name = escape_controls(str(path.relative_to(places.workspace) if inside else path))
    size = f"{path.stat().st_size:,}"
    if content is None:
        digest = Fingerprint().of_file(path.parent, (path.name,))
        return say("ask.file_of_bytes", language, path=name, size=size, digest=digest)
    return say("ask.file", language, path=name, size=size, text=shown_lines(content.removesuffix("\n")))


def refuse_missing(command: Command, packages: Sequence[str]) -> None:
    """Raises NotFound, before anybody is asked, if the program that the line starts first is not installed, and cannot
    be one of the `packages`."""
    if packages or "||" in command.written:
        return
    first = command.argv[0] if command.script else next((part.words[0].text for part in command.parts), "")
    if first and "/" not in first and first not in _OF_SHELLS and shutil.which(first, path=_path()) is None:
        hint = "use Python, name the packages that it comes from in packages, or say what has to be installed"
        raise NotFound(f"no program is called {first!r}", hint=hint)
