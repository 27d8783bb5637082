"""The sandbox backends, best first: bubblewrap, then Landlock.

The table in `docs/concepts/sandbox.md` lists the guarantees of each.
"""

from __future__ import annotations

import base64
import marshal
import os
import shutil
import struct
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.scratch import HOSTS
from navigator_kernel.adapters.processes import launcher
from navigator_kernel.errors import NoSandbox
from navigator_kernel.sandbox.confinement import NETWORKED, Confinement, covers
from navigator_kernel.sandbox.seccomp import program, stopped_calls

LEAST_ABI = 4  # the first ABI version of Landlock that can refuse TCP

# Landlock's rights over files (linux/landlock.h)
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 6, 1 << 11, 1 << 13, 1 << 14, 1 << 15
_ALL = (1 << 15) - 1  # all rights of ABI 3
_LOOKED_AT = _EXECUTE | _READ_FILE | _READ_DIR
_OF_FILES = _EXECUTE | _READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEVICE
_TCP, _SCOPES = 0b11, 0b11  # bits: bind and connect; abstract sockets and signals
# As a module, launcher.py is not compiled at each start, which takes as long as all that it does
_FOLDER = str(Path(launcher.__file__).parent)
_START = f"import sys; sys.path.append({_FOLDER!r}); import launcher; launcher.main()  # launcher.py"
_LAUNCHER = (sys.executable, "-I", "-S", "-c", _START)
_DEVICES = ("/dev/full", "/dev/null", "/dev/random", "/dev/urandom", "/dev/zero")

Wrap = Callable[[Sequence[str], Confinement], dict[str, Any]]


class SandboxBackend(NamedTuple):
    """`wrap` says how the launcher starts an argv, whose first word is a path, in the sandbox."""

    name: str
    wrap: Wrap


def rungs() -> tuple[SandboxBackend, ...]:
    """The backends that seem available on this machine; `contain.trial` tries one."""
    found = []
    if bwrap := shutil.which("bwrap"):
        found.append(SandboxBackend("bubblewrap", lambda argv, held: _bubblewrap(bwrap, argv, held)))
    if landlock_abi() >= LEAST_ABI and program(network=False) is not None:
        found.append(SandboxBackend("landlock", _landlock))
    return tuple(found)


def launch(spec: dict[str, Any]) -> tuple[tuple[str, ...], int]:
    """The launcher's argv, and the file from which it reads `spec`; the caller must close the file. Only this process
    can start it: the program is killed when its starter is dead."""
    fd = os.memfd_create("spec")
    os.write(fd, marshal.dumps({"kernel": os.getpid(), **spec}))
    os.lseek(fd, 0, os.SEEK_SET)
    return (*_LAUNCHER, str(fd)), fd


def inline(spec: dict[str, Any]) -> tuple[str, ...]:
    """The same for a caller that cannot pass a file: `spec` is a word of the argv."""
    return (*_LAUNCHER, base64.b64encode(marshal.dumps({"kernel": os.getpid(), **spec})).decode())


@cache
def landlock_abi() -> int:
    """The ABI version of Landlock; 0 if the kernel has none, or does not allow its use."""
    import ctypes  # 5 ms, needed only to run a program

    found: int = ctypes.CDLL(None, use_errno=True).syscall(launcher.CREATE_RULESET, None, 0, 1)
    return max(found, 0)


def _bubblewrap(bwrap: str, argv: Sequence[str], held: Confinement) -> dict[str, Any]:
    """Separate namespaces for everything, and a root with nothing else in it. Without `network` the only interface is a
    loopback of its own."""
    words = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"]
    words += ["--share-net"] if held.network else []
    late = [path for path in held.reads if covers(held.hidden, path)]
    for path in held.reads:
        told = str(path)
        if path not in late:
            words += ["--symlink", str(path.readlink()), told] if path.is_symlink() else ["--ro-bind", told, told]
    folders = [path for path in held.hidden if path.is_dir()]
    for path in held.hidden:
        words += ["--tmpfs", str(path)] if path in folders else ["--ro-bind", "/dev/null", str(path)]
    for path in late:
        words += ["--ro-bind", str(path), str(path)]
    for name in NETWORKED if held.network else ():
        words += ["--ro-bind-try", os.path.realpath(name), name]
    if held.scratch and not held.network:
        words += ["--ro-bind-try", str(held.scratch / HOSTS), "/etc/hosts"]
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(held.writes), str(held.writes)]
    words += ["--bind", str(held.scratch), str(held.scratch)] if held.scratch else []
    for mount in (
        *map(str, folders),
        "/proc",
        "/dev",
        "/",
    ):  # root can write to much of /proc, and /dev/shm is memory
        words += ["--remount-ro", mount]
    words += ["--chdir", str(held.start or held.writes), "--", *argv]
    return {"argv": words, "landlock": None, "seccomp": program(network=held.network or held.loopback)}


def _landlock(argv: Sequence[str], held: Confinement) -> dict[str, Any]:
    """Rights by path. With `loopback` the launcher tries to give the program a network of its own."""
    if held.unlisted is not None:  # a right to list a folder is one to list all folders in it
        message = f"Landlock alone cannot hide which files others have in {held.unlisted.name!r}"
        raise NoSandbox(message, hint="name the files to read instead, or install bubblewrap on the server")
    abi = landlock_abi()
    every = _ALL | (_IOCTL_DEVICE if abi >= 5 else 0)
    size = 24 if abi >= 6 else 16
    attributes, without_tcp = (
        struct.pack("=QQQ", every, tcp, _SCOPES if abi >= 6 else 0)[:size] for tcp in (0 if held.network else _TCP, 0)
    )
    networked = map(Path, NETWORKED if held.network else ())
    rules = [rule for path in _real([*held.reads, *networked]) for rule in _around(path, held.hidden)]
    rules += [(path, _READ_FILE | _WRITE_FILE) for path in _DEVICES]
    owned = every & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEVICE)
    folders = [path for path in (held.writes, held.scratch) if path]
    rules += [(str(path), owned) for path in folders]
    loopback = (without_tcp, program(network=True, marks=False), str((held.scratch or held.writes) / HOSTS))
    return {
        "argv": list(argv),
        "loopback": loopback if held.loopback and not held.network else None,
        "landlock": (attributes, rules),
        "seccomp": program(network=held.network, marks=False),
        "marks": (stopped_calls(), [os.fsencode(os.path.realpath(path)) for path in folders]),
    }


def _real(paths: Iterable[Path]) -> list[Path]:
    return list(dict.fromkeys(Path(os.path.realpath(path)) for path in paths if path.exists()))


def _around(path: Path, hidden: Sequence[Path]) -> list[tuple[str, int]]:
    """Rules for all of `path` except the hidden paths in it: rights apply to everything below, so each entry beside a
    hidden one gets its own rule. Names stay visible; links are never followed."""
    within = [other for other in hidden if other.is_relative_to(path)]
    if path in within:
        return []
    if not within:
        return [(str(path), _rights(path, _LOOKED_AT))]
    return [
        (str(path), _READ_DIR),
        *(rule for one in sorted(path.iterdir()) if not one.is_symlink() for rule in _around(one, within)),
    ]


def _rights(path: Path, rights: int) -> int:
    return rights if path.is_dir() else rights & _OF_FILES
