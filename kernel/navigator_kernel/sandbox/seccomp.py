"""A seccomp filter as the kernel takes it: classic BPF over `struct seccomp_data` (seccomp(2), bpf(4)).

What is denied ends in EPERM, so that a program can say what it was not allowed to do; only another machine's system
calls kill it.
"""

from __future__ import annotations

import errno
import platform
import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}  # AUDIT_ARCH_*
_X32 = 0x40000000  # from here on, calls of another ABI with the same architecture
_KILL, _ALLOW, _ERRNO = 0x80000000, 0x7FFF0000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in `struct seccomp_data`
_NAMESPACES = 0x7E020080  # CLONE_NEW{CGROUP,UTS,IPC,USER,PID,NET,NS,TIME}
_TERMINAL_INPUT = 0x5412  # TIOCSTI
_SET_ID = 0o6000  # S_ISUID, S_ISGID
_RAW, _KIND = 3, 0xF  # SOCK_RAW; which bits of a socket's type say its kind
_FAMILIES = (2, 10, 16)  # AF_INET, AF_INET6 and AF_NETLINK, which looks up addresses

# of x86_64 and aarch64; 0 where there is none
_NUMBERS: Mapping[str, tuple[int, int]] = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "perf_event_open": (298, 241), "bpf": (321, 280), "userfaultfd": (323, 282),
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429),
    "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "kexec_load": (246, 104), "kexec_file_load": (320, 294),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106), "acct": (163, 89),
    "quotactl": (179, 60), "syslog": (103, 116), "settimeofday": (164, 170), "clock_settime": (227, 112),
    "clock_adjtime": (305, 266), "adjtimex": (159, 171), "sethostname": (170, 161), "setdomainname": (171, 162),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "iopl": (172, 0), "ioperm": (173, 0),
    "mknod": (133, 0), "mknodat": (259, 33), "fanotify_init": (300, 262), "quotactl_fd": (443, 443),
}  # fmt: skip
# What changes a file that can only be read: Landlock lets it pass
_MARKS: Mapping[str, tuple[int, int]] = {
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, 0),
    "fchown": (93, 55), "lchown": (94, 0), "fchownat": (260, 54), "utime": (132, 0), "utimes": (235, 0),
    "futimesat": (261, 0), "utimensat": (280, 88), "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
}  # fmt: skip
_CALLS: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199), "ioctl": (16, 29),
    "chmod": (90, 0), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
}  # fmt: skip


class _Op(NamedTuple):
    code: int
    value: int
    yes: int = 0  # instructions that are passed over where the test holds
    no: int = 0


def program(*, network: bool, marks: bool = True, machine: str | None = None) -> bytes | None:
    """The filter for this machine, or `machine`; None for one whose calls are not known.

    Without `network` no socket can be made but a pair; with it no raw one, and none of other families. Without `marks`
    nobody changes a file's mode, owner, times or attributes.
    """
    machine = machine or platform.machine()
    if machine not in _ARCHITECTURES:
        return None
    column = list(_ARCHITECTURES).index(machine)
    ops = [_Op(_LOAD, _ARCH), _Op(_EQUAL, _ARCHITECTURES[machine], yes=1), _Op(_RETURN, _KILL), _Op(_LOAD, _NUMBER)]
    if machine == "x86_64":
        ops += [_Op(_AT_LEAST, _X32, no=1), _Op(_RETURN, _KILL)]
    for numbers in (*_NUMBERS.values(), *(() if marks else _MARKS.values())):
        if numbers[column]:
            ops += [_Op(_EQUAL, numbers[column], no=1), _denied()]
    for name, check in _checks(network=network).items():
        if _CALLS[name][column]:
            ops += [_Op(_EQUAL, _CALLS[name][column], no=len(check)), *check]
    ops.append(_Op(_RETURN, _ALLOW))
    return b"".join(struct.pack("<HBBI", op.code, op.yes, op.no, op.value) for op in ops)


def _checks(*, network: bool) -> Mapping[str, Sequence[_Op]]:
    """What is done with a call once it is known to be that one; each ends in a return."""
    allowed = _Op(_RETURN, _ALLOW)
    families = [_Op(_EQUAL, family, yes=len(_FAMILIES) - at) for at, family in enumerate(_FAMILIES)]
    kind = [_argument(1), _Op(_AND, _KIND), _Op(_EQUAL, _RAW, no=1), _denied(), allowed]
    # behind the last family stands the denial; a family that fits jumps past it
    sockets = [_argument(0), *families, _denied(), *kind] if network else [_denied()]
    return {
        "clone": [_argument(0), _Op(_ANY_BIT, _NAMESPACES, no=1), _denied(), allowed],
        "clone3": [_denied(errno.ENOSYS)],  # its flags lie in memory that a filter cannot read; libc then takes clone
        "socket": sockets,
        "ioctl": [_argument(1), _Op(_EQUAL, _TERMINAL_INPUT, no=1), _denied(), allowed],
        **{name: _set_id(1) for name in ("chmod", "fchmod")},
        **{name: _set_id(2) for name in ("fchmodat", "fchmodat2")},
    }


def _set_id(at: int) -> list[_Op]:
    return [_argument(at), _Op(_ANY_BIT, _SET_ID, no=1), _denied(), _Op(_RETURN, _ALLOW)]


def _argument(at: int) -> _Op:
    """The lower half of an argument."""
    return _Op(_LOAD, _ARGUMENTS + 8 * at)


def _denied(number: int = errno.EPERM) -> _Op:
    return _Op(_RETURN, _ERRNO | number)
