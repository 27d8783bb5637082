"""What one process may read, write, reach and use, from its row of the authority table (X-16, X-18)."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import navigator_kernel
from navigator_kernel.adapters.files.project_files import holds_secrets
from navigator_kernel.adapters.files.scratch import SHARED
from navigator_kernel.config.settings import user_state
from navigator_kernel.errors import Refused
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.job import OWN_TMP, WORK_FOLDERS

if TYPE_CHECKING:
    from navigator_kernel.values.job import Job


MIB = 1024 * 1024
MEMORY = 4096 * MIB  # bytes of memory for all processes, and of private memory that each may write to
FILE = 256 * MIB  # bytes of one file
DISK = 512 * MIB  # bytes of all files in the run's own folder
PROCESSES = 256
OPEN_FILES = 1024

KERNELS = "mybox"  # the project's folder of conversations, logs and other runs

# Files that programs need; no personal files, and no secrets
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/group",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/passwd",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
)
# Where version managers and installers keep programs in a home, and the parts of such a folder that programs need
MANAGERS = frozenset(
    """.asdf .bun .cargo .deno .fnm .goenv .jenv .juliaup .nodenv .nvm .pixi .pyenv .rbenv .rustup .rye .sdkman .volta
    anaconda3 mambaforge miniconda3 miniforge3""".split()
)
INSTALLED = "bin lib lib64 libexec share opt conf Cellar shims versions version installs".split()
NETWORKED = ("/etc/hosts", "/etc/resolv.conf", "/etc/services", "/etc/host.conf", "/etc/gai.conf")


class Confinement(NamedTuple):
    """`reads` may be read and never written to, except `hidden`, which may lie in them; `writes` is the folder for the
    results, `scratch` the process's own, `start` where it starts, by default `writes`. `limits` are those of
    getrlimit(2) by name; `disk`, `memory` and `processes` are for all processes together, and counted elsewhere. Not
    even the names in `unlisted`, one of `hidden`, may be seen. With `loopback` its processes may talk to each other
    over a network of their own, and have the folder `tmp` as `/tmp` and `writes` under the names `aliases`, too, if the
    sandbox can give them other paths."""

    reads: tuple[Path, ...]
    hidden: tuple[Path, ...]
    writes: Path
    scratch: Path | None
    network: bool
    limits: Mapping[str, int]
    disk: int = DISK
    memory: int = MEMORY
    processes: int = PROCESSES
    loopback: bool = False
    tmp: Path | None = None
    aliases: tuple[str, ...] = ()
    unlisted: Path | None = None
    start: Path | None = None


def confinement(job: Job) -> Confinement:
    """Allows the job's own folder, the paths that it names, and the files that a program needs to start; the network
    only if the job wants it, which the gate has asked about."""
    seconds = max(1, int(job.timeout) + 1)
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": seconds * (os.cpu_count() or 1),
        "RLIMIT_DATA": MEMORY,  # not RLIMIT_AS: Node, Java and browsers reserve addresses that they never use
        "RLIMIT_FSIZE": FILE,
        "RLIMIT_NOFILE": OPEN_FILES,
    }
    writes = Path(os.path.realpath(job.cwd))
    named = [Path(os.path.realpath(path)) for path in job.reads if path.exists()]
    root, hidden, box = project_of(job), tuple[Path, ...](), None
    if root is not None and covers(named, root):  # the job reads the whole project
        box = root / KERNELS if (root / KERNELS).is_dir() else None
        hidden = (box,) if box else ()
        hidden += secret_paths(root, (*hidden, *_system()))
    else:
        hidden = tuple(path for folder in job.folders for path in secret_paths(folder, _system()))
    reads = tuple(_outermost([*_system(), *named], hidden))
    shown = (*reads, *hidden, writes, *([job.start] if job.start else []))
    tmp, aliases = None, tuple[str, ...]()
    if job.actor == "tool" and job.scratch:
        tmp = None if any(path.is_relative_to(SHARED[0]) for path in shown) else writes / OWN_TMP
        aliases = tuple(name for name in WORK_FOLDERS if not any(path.is_relative_to(name) for path in shown))
    return Confinement(
        reads=reads,
        hidden=hidden,
        writes=writes,
        scratch=job.scratch,
        network="network" in job.wants,
        limits=limits,
        loopback=job.actor == "tool",
        tmp=tmp,
        aliases=aliases,
        unlisted=box if job.is_shared else None,
        start=job.start,
    )


def project_of(job: Job) -> Path | None:
    """The real root of the project that a job is for."""
    if job.project is not None:
        return Path(os.path.realpath(job.project))
    boxes = (folder for folder in Path(os.path.realpath(job.cwd)).parents if folder.name == KERNELS)
    return next((folder.parent for folder in boxes), None)


@cache
def _system() -> tuple[Path, ...]:
    """The system's files, the interpreter, the folder of the kernel's own package, and programs that the person
    installed: scripts are written for the interpreter and the package, and an import lists the folder."""
    own = Path(navigator_kernel.__file__).parents[1]
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), own}
    python = sorted(Path("/etc").glob("python3*"))  # Debian's Python reads its sitecustomize there at each start
    return (*(Path(path) for path in SYSTEM if os.path.lexists(path)), *python, *sorted(prefixes), *_installed())


def _installed() -> Iterator[Path]:
    """The programs of PATH that a version manager or an installer keeps in a folder of its own, such as
    `~/.nvm/versions/node/v20`, with what they are made of; not `~/.local/bin`, where the person's own scripts are."""
    home = Path(os.path.realpath(Path.home()))
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        folder = Path(os.path.realpath(entry))
        prefix = folder.parent
        below = prefix.relative_to(home).parts if prefix.is_relative_to(home) else ()
        is_managed = MANAGERS.intersection(below[:1]) or (below[:2] == (".local", "share") and len(below) > 2)
        is_managed = is_managed or not {Path("/opt"), Path("/home/linuxbrew")}.isdisjoint(prefix.parents)
        if folder.name in {"bin", "shims"} and is_managed:
            yield from (prefix / part for part in INSTALLED if (prefix / part).exists())


def covers(paths: Iterable[Path], inner: Path) -> bool:
    """Whether `inner` lies in one of `paths`, or is one."""
    return any(inner.is_relative_to(path) and not path.is_symlink() for path in paths)


def _outermost(paths: Iterable[Path], hidden: Sequence[Path]) -> list[Path]:
    """The paths that are not below another one; links stay beside their targets, and a path in `hidden` stays because
    it was named itself."""
    outermost: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        inside = [other for other in outermost if covers(hidden, other)]
        if not covers(inside if covers(hidden, path) else outermost, path):
            outermost.append(path)
    return outermost


# Files of secrets, found by name; a process with access to the project must not read them. The names are those that
# `@` refuses, `.git/config` if it contains a password, and the person's state folder. The search is bounded: folders
# that it does not reach are hidden as a whole.

ENTRIES = 200_000  # entries of folders that are examined
HIDDEN = 500  # paths that a sandbox hides
_CONFIG_LIMIT = 64 * 1024  # bytes; a longer config is hidden
_CREDENTIAL = lazy_compile(
    r"https?://[^/@\s]+@|://[^/@\s:]+:[^/@\s]+@|extraheader|(?:password|token)\s*=|helper\s*=\s*!"
)


def secret_paths(root: Path, skipped: Iterable[Path]) -> tuple[Path, ...]:
    """Secret files and folders below `root`, without `skipped` and links. Refused if there are over 500."""
    paths: list[Path] = []
    for path in _search(root, frozenset(map(str, skipped))):
        paths.append(path)
        if len(paths) > HIDDEN:
            message = f"{str(root)!r} holds over {HIDDEN} files of secrets, or more files than are looked at"
            raise Refused(message, hint="name the files to read instead", reason="secrets")
    return tuple(paths)


def _search(root: Path, skipped: frozenset[str]) -> Iterator[Path]:
    """Searches breadth first, so that the folders left at the bound are deep."""
    folders, remaining, state = deque([str(root)]), ENTRIES, os.path.realpath(user_state())
    while folders:
        folder = folders.popleft()
        if remaining <= 0:
            yield Path(folder)
            continue
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    remaining -= 1
                    if entry.is_symlink() or entry.path in skipped:
                        continue
                    if entry.path == state or _is_secret(entry):
                        yield Path(entry.path)
                    elif entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.name == "config" and _has_credential(entry):
                        yield Path(entry.path)
        except OSError:
            yield Path(folder)  # a folder that cannot be searched is hidden


def _is_secret(entry: os.DirEntry[str]) -> bool:
    """Whether the name is that of a secret. A `.git` folder or file is not: `git log` reads it, and only its settings
    may contain a password."""
    if entry.name.casefold() == ".git":
        return False
    inside = ("file",) if entry.is_dir(follow_symlinks=False) else ()  # file name patterns do not apply to folders
    return holds_secrets((entry.name, *inside))


def _has_credential(entry: os.DirEntry[str]) -> bool:
    """Whether the `config` of a git repository contains a password or names a program that provides one."""
    if not os.path.lexists(Path(entry.path).with_name("HEAD")):
        return False
    try:
        with Path(entry.path).open("rb") as file:
            data = file.read(_CONFIG_LIMIT + 1)
    except OSError:
        return True
    return len(data) > _CONFIG_LIMIT or _CREDENTIAL.search(data.decode("latin-1").lower()) is not None
