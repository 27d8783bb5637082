"""A seccomp filter in the form that the kernel takes: classic BPF over `struct seccomp_data` (seccomp(2), bpf(4)).

It is an allow-list. A call that is not on it fails with EPERM, so that a program can say what it was not allowed to do,
or with ENOSYS if it is newer than the list, so that libc uses an older one. Only system calls of another machine kill
the process.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from navigator_kernel.sandbox.system_calls import ALLOWED, ATTRIBUTES, CHECKED, MARKS, NONE

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
_X32 = 0x40000000  # numbers from here on belong to another ABI of the same architecture
_KILL, _ALLOW, _ERRNO, _STOP = 0x80000000, 0x7FFF0000, 0x00050000, 0x7FC00000  # SECCOMP_RET_*
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
_NAMESPACES = 0x7E020080  # CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS,TIME}
_TERMINAL_INPUT, _CONSOLE = 0x5412, 0x541C  # TIOCSTI, TIOCLINUX: they type input for another program
_SET_ID = 0o6000  # S_ISUID, S_ISGID
_DATAGRAM, _RAW, _KIND = 2, 3, 0xF  # SOCK_DGRAM, SOCK_RAW; mask for the kind in a socket's type
_UNIX = 1  # AF_UNIX
_BY_PROCESS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
NEWER = 451  # unlisted calls from here on are newer than the list, on every architecture
_FAMILIES = (2, 10, 16)  # AF_INET, AF_INET6 and AF_NETLINK, which looks up addresses


class _Op(NamedTuple):
    code: int
    value: int
    yes: int = 0  # instructions to skip if the test holds
    no: int = 0


def program(*, network: bool, marks: bool = True, machine: str | None = None) -> bytes | None:
    """The filter for this machine, or `machine`; None if its calls are not known.

    Without `network` no socket can be made except a pair; with it, no raw socket and none of other families. Without
    `marks` a file seems to have no attributes, and the launcher is asked to change its mode, owner and times.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    column = list(_ARCHITECTURES).index(machine)
    ops = [_Op(_LOAD, _ARCH), _Op(_EQUAL, _ARCHITECTURES[machine], yes=1), _Op(_RETURN, _KILL), _Op(_LOAD, _NUMBER)]
    if machine == "x86_64":
        ops += [_Op(_AT_LEAST, _X32, no=1), _Op(_RETURN, _KILL)]
    allowed = _Op(_RETURN, _ALLOW)
    marked, attributes = (allowed, allowed) if marks else (_Op(_RETURN, _STOP), _denied(errno.ENOTSUP))
    checks = _checks(marked, network=network)
    for calls, action in ((ALLOWED, allowed), (MARKS, marked), (ATTRIBUTES, attributes)):
        for name, numbers in calls.items():
            if numbers[column] != NONE and name not in checks:
                ops += [_Op(_EQUAL, numbers[column], no=1), action]
    for name, check in checks.items():
        if CHECKED[name][column] != NONE:
            ops += [_Op(_EQUAL, CHECKED[name][column], no=len(check)), *check]
    ops += [_Op(_AT_LEAST, NEWER, no=1), _denied(errno.ENOSYS), _denied()]
    return b"".join(struct.pack("<HBBI", op.code, op.yes, op.no, op.value) for op in ops)


def stopped_calls() -> dict[int, str]:
    """The calls that the launcher is asked to make without `marks`, by their numbers on this machine."""
    column = list(_ARCHITECTURES).index(platform.machine())
    return {numbers[column]: name for name, numbers in MARKS.items() if numbers[column] != NONE}


def _checks(marked: _Op, *, network: bool) -> Mapping[str, Sequence[_Op]]:
    """The instructions for each checked call, after its number matched; each list ends in a return. `marked` ends those
    of a mode."""
    allowed = _Op(_RETURN, _ALLOW)
    families = [_Op(_EQUAL, family, yes=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)]
    kind = [_argument(1), _Op(_AND, _KIND), _Op(_EQUAL, _RAW, no=1), _denied(), allowed]
    # the denial follows the last family; a family that matches jumps past it
    sockets = [_argument(0), *families, _denied(), *kind] if network else [_denied()]
    return {
        "clone": [_argument(0), _Op(_ANY_BIT, _NAMESPACES, no=1), _denied(), allowed],
        "clone3": [_denied(errno.ENOSYS)],  # a filter cannot read its flags, which are in memory; libc then uses clone
        "socket": sockets,
        "socketpair": _pairs(),
        "ioctl": [_argument(1), *_unless(_TERMINAL_INPUT), *_unless(_CONSOLE), allowed],
        **{name: _set_id(1, marked) for name in ("chmod", "fchmod")},
        **{name: _set_id(2, marked) for name in ("fchmodat", "fchmodat2")},
        **{name: _only((0, 0)) for name in _BY_PROCESS},  # the first argument is a process; 0 is the caller itself
        "setpriority": _only((0, 0), (1, 0)),
        "ioprio_set": _only((0, 1), (1, 0)),
    }


def _pairs() -> list[_Op]:
    """Allows pairs of Unix sockets, connected to each other for good; a datagram socket could send to any other."""
    kind = [_argument(1), _Op(_AND, _KIND), _Op(_EQUAL, _DATAGRAM, no=1), _denied(), _Op(_EQUAL, _RAW, no=1), _denied()]
    return [_argument(0), _Op(_EQUAL, _UNIX, yes=1), _denied(), *kind, _Op(_RETURN, _ALLOW)]


def _only(*wanted: tuple[int, int]) -> list[_Op]:
    """Allows a call if each of these arguments has its value."""
    ops: list[_Op] = []
    for at, value in wanted:
        ops += [_argument(at), _Op(_EQUAL, value, yes=1), _denied()]
    return [*ops, _Op(_RETURN, _ALLOW)]


def _unless(value: int) -> list[_Op]:
    return [_Op(_EQUAL, value, no=1), _denied()]


def _set_id(at: int, otherwise: _Op) -> list[_Op]:
    return [_argument(at), _Op(_ANY_BIT, _SET_ID, no=1), _denied(), otherwise]


def _argument(at: int) -> _Op:
    """Loads the lower half of an argument."""
    return _Op(_LOAD, _ARGUMENTS + 8 * at)


def _denied(number: int = errno.EPERM) -> _Op:
    return _Op(_RETURN, _ERRNO | number)
