"""A process to run, and its outcome."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

from navigator_kernel.text import lazy_compile
from navigator_kernel.values.rights import PAGES, SCRIPTS, right_of
from navigator_kernel.values.standing import Need

Actor = Literal["type_a", "shell", "script", "mcp_server", "tool"]  # rows of the authority table that start processes

Want = Literal[
    "network", "packages", "project"
]  # rights that a job can request beyond its own folder and its input files
ASKED: tuple[Want, ...] = ("network", "packages")  # those that need a person's approval

Exceeded = Literal["", "disk", "memory"]  # a limit that ends a process before its time-out

OUTPUT_LIMIT = 1024 * 1024  # bytes to keep of each stream
OWN_TMP = ".tmp"  # the folder of a workspace that the commands of a model have as /tmp
OF_TMP = lazy_compile(r"(?<![\w.-])/tmp/(?!navigator-run)")  # the beginning of a path there, in a line
# Folders in which other agents work, and which their skills name: for the commands of a model they are the workspace
WORK_FOLDERS = ("/mnt/user-data/outputs", "/mnt/user-data/uploads", "/mnt/data", "/workspace", "/home/claude")
NPM = "npm:"  # prefix of a Node package: npm:NAME@VERSION


class Job(Struct, frozen=True, kw_only=True):
    """`argv` is never joined into a shell line. A consent is bound to `digest` and `origin`; `shipped` work needs none
    for itself, but one for each of `wants` that is asked about.

    `project` is the root of the person's project, by default the one in whose `mybox` its `cwd` lies. `cwd` is the
    folder for its results, `scratch` its own for its home, temporary files and bytecode; it writes nowhere else. It
    starts in `start`, by default in `cwd`. `reads` are the other paths that it may see, without the secrets in
    those of `folders`, `packages` the packages that it needs. `links` and `copies` are names that its `cwd` has
    while it runs, for paths that it may see: a copy is its own to change. `is_shared` says that the project has
    files of others, of which it must not even learn the names. `lasting` is a subject that a consent for longer is
    for, `unless` are others that cover it, too; `for_order` says that one consent holds for all such jobs of the
    run; `also` are further consents that it needs. `is_script` says that a tool runs a script of its skill.
    """

    actor: Actor
    subject: str
    digest: str
    run: str
    argv: tuple[str, ...]
    cwd: Path
    timeout: float
    shipped: bool = False
    origin: str = ""
    wants: tuple[Want, ...] = ()
    packages: tuple[str, ...] = ()
    reads: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    links: Mapping[str, Path] = field(default_factory=dict)
    copies: Mapping[str, Path] = field(default_factory=dict)
    start: Path | None = None
    scratch: Path | None = None
    project: Path | None = None
    is_shared: bool = False
    lasting: str = ""
    unless: tuple[str, ...] = ()
    for_order: bool = False
    is_script: bool = False
    also: tuple[Need, ...] = ()

    @property
    def consent(self) -> str:
        """The subject of consent to this job."""
        return consent_subject(self.actor, self.subject, self.digest, self.origin, self.wants)


def consent_subject(actor: Actor, name: str, digest: str, origin: str = "", wants: Collection[Want] = ()) -> str:
    """`type_a:word-count@https://host/x.git#<commit>:<folder>@+network@sha256:…`: the kind and name, the source,
    further wants, and the digest of every byte. Other bytes, another source or another commit are another subject."""
    more = [f"+{want}" for want in ASKED if want in wants]
    return "@".join(part for part in (f"{actor}:{name}", origin, *more, digest) if part)


def is_lasting(subject: str) -> bool:
    """Whether a yes to `subject` can be for more than once: if it is bound to bytes, or to the words of a command. The
    digest of a project's script covers none of the modules that it imports, so a script is asked about each time."""
    return "@sha256:" in subject and not subject.startswith("script:")


def is_permanent(subject: str) -> bool:
    """Whether a yes to `subject` can be for ever: not to `!commands`, nor to a right, unless it is to the skill's own
    scripts, whose bytes it names, or to the pages of a host."""
    right = right_of(subject)
    is_ever = right is None or right.word == SCRIPTS or right.word.startswith(PAGES)
    return is_ever and is_lasting(subject) and not subject.startswith("shell:")


class Outcome(Struct, frozen=True, kw_only=True):
    """`exit_code` is 128 and more for a signal, as in a shell, and None if the process did not end by itself: time ran
    out, or `exceeded` names the limit that it went over. `truncated` says that output was cut, `wrote` lists the new
    and changed files in its own folder, `disarmed` what was renamed there because other programs would run or obey it
    unasked, before and after."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    elapsed: float
    timed_out: bool = False
    truncated: bool = False
    exceeded: Exceeded = ""
    wrote: tuple[str, ...] = ()
    disarmed: tuple[tuple[str, str], ...] = ()
