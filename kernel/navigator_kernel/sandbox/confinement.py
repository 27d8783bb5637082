"""What one process may read, write, reach and use up, from the authority table's row for it (X-16, X-18)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import navigator_kernel

if TYPE_CHECKING:
    from navigator_kernel.values.job import Job

MIB = 1024 * 1024
MEMORY = 4096 * MIB  # of addresses, for each process
FILE = 256 * MIB  # bytes of one file
DISK = 512 * MIB  # bytes of everything in the run's own folder
PROCESSES = 256
OPEN_FILES = 1024

# What programs are made of; nothing of a person's, and no secrets
SYSTEM = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
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
    "/etc/pki",
    "/etc/ssl",
)
NETWORKED = ("/etc/hosts", "/etc/resolv.conf", "/etc/services", "/etc/host.conf", "/etc/gai.conf")


class Confinement(NamedTuple):
    """`reads` are seen as they are and never written to, `writes` is the one folder that is. `limits` are of
    getrlimit(2) by name, `disk` and `processes` are counted by others."""

    reads: tuple[Path, ...]
    writes: Path
    network: bool
    limits: Mapping[str, int]
    disk: int = DISK
    processes: int = PROCESSES


def confinement(job: Job) -> Confinement:
    """Its own folder, what the job names, and what a program needs to start; no network."""
    seconds = max(1, int(job.timeout) + 1)
    limits = {
        "RLIMIT_AS": MEMORY,
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": seconds * (os.cpu_count() or 1),
        "RLIMIT_FSIZE": FILE,
        "RLIMIT_NOFILE": OPEN_FILES,
    }
    if os.getuid() != 0:
        limits["RLIMIT_NPROC"] = _processes_of_user() + PROCESSES
    named = (path for path in job.reads if path.exists())
    return Confinement(
        reads=tuple(_outermost([*_system(), *(Path(os.path.realpath(path)) for path in named)])),
        writes=Path(os.path.realpath(job.cwd)),
        network=False,
        limits=limits,
    )


@cache
def _system() -> tuple[Path, ...]:
    """The interpreter and the kernel's own package are among what a program needs: scripts are written for both."""
    own = Path(navigator_kernel.__file__).parent
    prefixes = {Path(sys.prefix), Path(sys.base_prefix), own}
    return (*(Path(path) for path in SYSTEM if os.path.lexists(path)), *sorted(prefixes))


def _outermost(paths: Iterable[Path]) -> Iterable[Path]:
    """Each but those below another; links stay beside what they lead to."""
    kept: list[Path] = []
    for path in sorted(set(paths), key=lambda path: len(path.parts)):
        if not any(path.is_relative_to(other) and not other.is_symlink() for other in kept):
            kept.append(path)
    return kept


def _processes_of_user() -> int:
    """How many processes the person has: the system's limit counts those, too."""
    me, count = os.getuid(), 0
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                count += Path("/proc", name).stat().st_uid == me
            except OSError:
                continue
    return count
