"""The sandbox backends, best first: bubblewrap, then Landlock.

The table in `docs/concepts/sandbox.md` lists the guarantees of each.
"""

from __future__ import annotations

import base64
import errno
import marshal
import os
import platform
import shutil
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from navigator_kernel.adapters.files.scratch import HOSTS, SHARED
from navigator_kernel.adapters.processes import launcher
from navigator_kernel.errors import NoSandbox
from navigator_kernel.sandbox.confinement import NETWORKED, Confinement, covers
from navigator_kernel.values.job import OF_TMP

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
    backends = []
    if bwrap := shutil.which("bwrap"):
        backends.append(SandboxBackend("bubblewrap", lambda argv, allowed: _bubblewrap(bwrap, argv, allowed)))
    if landlock_abi() >= LEAST_ABI and program(network=False) is not None:
        backends.append(SandboxBackend("landlock", _landlock))
    return tuple(backends)


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

    version: int = ctypes.CDLL(None, use_errno=True).syscall(launcher.CREATE_RULESET, None, 0, 1)
    return max(version, 0)


def _bubblewrap(bwrap: str, argv: Sequence[str], allowed: Confinement) -> dict[str, Any]:
    """Separate namespaces for everything, and a root with nothing else in it. Without `network` the only interface is a
    loopback of its own."""
    words = [bwrap, "--unshare-all", "--die-with-parent", "--cap-drop", "ALL", "--hostname", "sandbox"]
    words += ["--share-net"] if allowed.network else []
    words += ["--bind", str(allowed.tmp), SHARED[0]] if allowed.tmp else []
    for name in allowed.aliases:
        words += ["--symlink", str(allowed.writes), name]
    late = [path for path in allowed.reads if covers(allowed.hidden, path)]
    for path in allowed.reads:
        source = str(path)
        if path not in late:
            words += ["--symlink", str(path.readlink()), source] if path.is_symlink() else ["--ro-bind", source, source]
    folders = [path for path in allowed.hidden if path.is_dir()]
    for path in allowed.hidden:
        words += ["--tmpfs", str(path)] if path in folders else ["--ro-bind", "/dev/null", str(path)]
    for path in late:
        words += ["--ro-bind", str(path), str(path)]
    for name in NETWORKED if allowed.network else ():
        words += ["--ro-bind-try", os.path.realpath(name), name]
    if allowed.scratch and not allowed.network:
        words += ["--ro-bind-try", str(allowed.scratch / HOSTS), "/etc/hosts"]
    words += ["--proc", "/proc", "--dev", "/dev", "--bind", str(allowed.writes), str(allowed.writes)]
    words += ["--bind", str(allowed.scratch), str(allowed.scratch)] if allowed.scratch else []
    for mount in (
        *map(str, folders),
        "/proc",
        "/dev",
        "/",
    ):  # root can write to much of /proc, and /dev/shm is memory
        words += ["--remount-ro", mount]
    words += ["--chdir", str(allowed.start or allowed.writes), "--", *argv]
    return {"argv": words, "landlock": None, "seccomp": program(network=allowed.network or allowed.loopback)}


def _landlock(argv: Sequence[str], allowed: Confinement) -> dict[str, Any]:
    """Rights by path. With `loopback` the launcher tries to give the program a network of its own. No path can have
    another name, so that `/tmp/` in the argv becomes the folder that stands for it."""
    if allowed.unlisted is not None:  # a right to list a folder is one to list all folders in it
        message = f"Landlock alone cannot hide which files others have in {allowed.unlisted.name!r}"
        raise NoSandbox(message, hint="name the files to read instead, or install bubblewrap on the server")
    abi = landlock_abi()
    every = _ALL | (_IOCTL_DEVICE if abi >= 5 else 0)
    size = 24 if abi >= 6 else 16
    attributes, without_tcp = (
        struct.pack("=QQQ", every, tcp, _SCOPES if abi >= 6 else 0)[:size]
        for tcp in (0 if allowed.network else _TCP, 0)
    )
    networked = map(Path, NETWORKED if allowed.network else ())
    readable = dict.fromkeys(Path(os.path.realpath(path)) for path in [*allowed.reads, *networked] if path.exists())
    rules = [rule for path in readable for rule in _around(path, allowed.hidden)]
    rules += [(path, _READ_FILE | _WRITE_FILE) for path in _DEVICES]
    owned = every & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEVICE)
    folders = [path for path in (allowed.writes, allowed.scratch) if path]
    rules += [(str(path), owned) for path in folders]
    loopback = (without_tcp, program(network=True, marks=False), str((allowed.scratch or allowed.writes) / HOSTS))
    return {
        "argv": [OF_TMP.sub(lambda _: f"{allowed.tmp}/", word) if allowed.tmp else word for word in argv],
        "loopback": loopback if allowed.loopback and not allowed.network else None,
        "landlock": (attributes, rules),
        "seccomp": program(network=allowed.network, marks=False),
        "marks": (stopped_calls(), [os.fsencode(os.path.realpath(path)) for path in folders]),
    }


def _around(path: Path, hidden: Sequence[Path]) -> list[tuple[str, int]]:
    """Rules for all of `path` except the hidden paths in it: rights apply to everything below, so each entry beside a
    hidden one gets its own rule. Names stay visible; links are never followed."""
    within = [other for other in hidden if other.is_relative_to(path)]
    if path in within:
        return []
    if not within:
        return [(str(path), _LOOKED_AT if path.is_dir() else _LOOKED_AT & _OF_FILES)]
    return [
        (str(path), _READ_DIR),
        *(rule for entry in sorted(path.iterdir()) if not entry.is_symlink() for rule in _around(entry, within)),
    ]


# The seccomp filter, in the form that the kernel takes: classic BPF over `struct seccomp_data` (seccomp(2), bpf(4)).
# It is an allow-list. A call that is not on it fails with EPERM, so that a program can say what it was not allowed to
# do, or with ENOSYS if it is newer than the list, so that libc uses an older one. Only system calls of another
# machine kill the process.

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
    # Allows pairs of Unix sockets, connected to each other for good; a datagram socket could send to any other
    pair = [_argument(1), _Op(_AND, _KIND), _Op(_EQUAL, _DATAGRAM, no=1), _denied(), _Op(_EQUAL, _RAW, no=1), _denied()]
    return {
        "clone": [_argument(0), _Op(_ANY_BIT, _NAMESPACES, no=1), _denied(), allowed],
        "clone3": [_denied(errno.ENOSYS)],  # a filter cannot read its flags, which are in memory; libc then uses clone
        "socket": sockets,
        "socketpair": [_argument(0), _Op(_EQUAL, _UNIX, yes=1), _denied(), *pair, _Op(_RETURN, _ALLOW)],
        "ioctl": [_argument(1), *_unless(_TERMINAL_INPUT), *_unless(_CONSOLE), allowed],
        **{name: _set_id(1, marked) for name in ("chmod", "fchmod")},
        **{name: _set_id(2, marked) for name in ("fchmodat", "fchmodat2")},
        **{name: _only((0, 0)) for name in _BY_PROCESS},  # the first argument is a process; 0 is the caller itself
        "setpriority": _only((0, 0), (1, 0)),
        "ioprio_set": _only((0, 1), (1, 0)),
    }


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


# The system calls that programs in a sandbox need, by name, with their numbers of x86_64 and aarch64.
#
# The list has the calls that scripts of public skills used in a measurement (`tests/sandbox/measure_system_calls.py`),
# and calls of the same family. All others are denied.

NONE = -1  # the architecture has no such call


# Allowed with any arguments; the most frequent calls come first
ALLOWED: Mapping[str, tuple[int, int]] = {
    "read": (0, 63), "write": (1, 64), "close": (3, 57), "fstat": (5, 80), "newfstatat": (262, 79),
    "lseek": (8, 62), "mmap": (9, 222), "munmap": (11, 215), "futex": (202, 98), "openat": (257, 56),
    "poll": (7, NONE), "ppoll": (271, 73), "epoll_wait": (232, NONE), "epoll_pwait": (281, 22), "recvfrom": (45, 207),
    "sendto": (44, 206),
    # files
    "readv": (19, 65), "writev": (20, 66), "pread64": (17, 67), "pwrite64": (18, 68), "preadv": (295, 69),
    "pwritev": (296, 70), "preadv2": (327, 286), "pwritev2": (328, 287), "open": (2, NONE), "openat2": (437, 437),
    "creat": (85, NONE), "close_range": (436, 436), "stat": (4, NONE), "lstat": (6, NONE), "statx": (332, 291),
    "access": (21, NONE), "faccessat": (269, 48), "faccessat2": (439, 439), "getdents": (78, NONE),
    "getdents64": (217, 61), "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "rename": (82, NONE),
    "renameat": (264, 38), "renameat2": (316, 276), "mkdir": (83, NONE), "mkdirat": (258, 34), "rmdir": (84, NONE),
    "link": (86, NONE), "linkat": (265, 37), "unlink": (87, NONE), "unlinkat": (263, 35), "symlink": (88, NONE),
    "symlinkat": (266, 36), "readlink": (89, NONE), "readlinkat": (267, 78), "truncate": (76, 45),
    "ftruncate": (77, 46), "fallocate": (285, 47), "fsync": (74, 82), "fdatasync": (75, 83), "sync": (162, 81),
    "syncfs": (306, 267), "sync_file_range": (277, 84), "fadvise64": (221, 223), "readahead": (187, 213),
    "copy_file_range": (326, 285), "sendfile": (40, 71), "splice": (275, 76), "tee": (276, 77),
    "vmsplice": (278, 75), "dup": (32, 23), "dup2": (33, NONE), "dup3": (292, 24), "fcntl": (72, 25),
    "flock": (73, 32), "umask": (95, 166), "statfs": (137, 43), "fstatfs": (138, 44), "getxattr": (191, 8),
    "lgetxattr": (192, 9), "fgetxattr": (193, 10), "listxattr": (194, 11), "llistxattr": (195, 12),
    "flistxattr": (196, 13), "cachestat": (451, 451),
    # memory
    "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233), "brk": (12, 214), "msync": (26, 227),
    "mincore": (27, 232), "mlock": (149, 228), "mlock2": (325, 284), "munlock": (150, 229), "mlockall": (151, 230),
    "munlockall": (152, 231), "memfd_create": (319, 279), "pkey_alloc": (330, 289), "pkey_free": (331, 290),
    "pkey_mprotect": (329, 288), "get_mempolicy": (239, 236), "set_mempolicy": (238, 237), "mbind": (237, 235),
    "membarrier": (324, 283), "remap_file_pages": (216, 234),
    # processes
    "fork": (57, NONE), "vfork": (58, NONE), "execve": (59, 221), "execveat": (322, 281), "exit": (60, 93),
    "exit_group": (231, 94), "wait4": (61, 260), "waitid": (247, 95), "kill": (62, 129), "tkill": (200, 130),
    "tgkill": (234, 131), "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getpgid": (121, 155),
    "getpgrp": (111, NONE), "setpgid": (109, 154), "getsid": (124, 156), "setsid": (112, 157), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getresuid": (118, 148),
    "getresgid": (120, 150), "getgroups": (115, 158), "setuid": (105, 146), "setgid": (106, 144),
    "setreuid": (113, 145), "setregid": (114, 143), "setresuid": (117, 147), "setresgid": (119, 149),
    "setgroups": (116, 159), "setfsuid": (122, 151), "setfsgid": (123, 152), "capget": (125, 90),
    "capset": (126, 91), "prctl": (157, 167), "arch_prctl": (158, NONE), "personality": (135, 92),
    "getrusage": (98, 165), "times": (100, 153), "sysinfo": (99, 179), "uname": (63, 160), "getcpu": (309, 168),
    "getrlimit": (97, 163), "setrlimit": (160, 164), "getpriority": (140, 141), "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123), "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
    "sched_getattr": (315, 275), "sched_get_priority_max": (146, 125), "sched_get_priority_min": (147, 126),
    "sched_rr_get_interval": (148, 127), "set_tid_address": (218, 96), "set_robust_list": (273, 99),
    "get_robust_list": (274, 100), "rseq": (334, 293), "futex_waitv": (449, 449), "restart_syscall": (219, 128),
    "seccomp": (317, 277), "landlock_create_ruleset": (444, 444), "landlock_add_rule": (445, 445),
    "landlock_restrict_self": (446, 446), "pidfd_open": (434, 434), "ioprio_get": (252, 31),
    # signals
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139), "rt_sigpending": (127, 136),
    "rt_sigsuspend": (130, 133), "rt_sigtimedwait": (128, 137), "sigaltstack": (131, 132), "pause": (34, NONE),
    "signalfd": (282, NONE), "signalfd4": (289, 74),
    # waiting
    "select": (23, NONE), "pselect6": (270, 72), "epoll_create": (213, NONE), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_ctl_old": (214, NONE), "epoll_wait_old": (215, NONE), "epoll_pwait2": (441, 441),
    "eventfd": (284, NONE), "eventfd2": (290, 19), "pipe": (22, NONE), "pipe2": (293, 59),
    # time
    "time": (201, NONE), "gettimeofday": (96, 169), "clock_gettime": (228, 113), "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115), "nanosleep": (35, 101), "alarm": (37, NONE), "getitimer": (36, 102),
    "setitimer": (38, 103), "timer_create": (222, 107), "timer_settime": (223, 110), "timer_gettime": (224, 108),
    "timer_getoverrun": (225, 109), "timer_delete": (226, 111), "timerfd_create": (283, 85),
    "timerfd_settime": (286, 86), "timerfd_gettime": (287, 87), "getrandom": (318, 278),
    # sockets
    "bind": (49, 200), "connect": (42, 203), "listen": (50, 201), "accept": (43, 202), "accept4": (288, 242),
    "getsockname": (51, 204), "getpeername": (52, 205), "getsockopt": (55, 209), "setsockopt": (54, 208),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "sendmmsg": (307, 269), "recvmmsg": (299, 243),
    "shutdown": (48, 210),
}  # fmt: skip
# Calls that change a mode, an owner or a time: Landlock does not cover them
MARKS: Mapping[str, tuple[int, int]] = {
    "chmod": (90, NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "chown": (92, NONE),
    "fchown": (93, 55), "lchown": (94, NONE), "fchownat": (260, 54), "utime": (132, NONE), "utimes": (235, NONE),
    "futimesat": (261, NONE), "utimensat": (280, 88),
}  # fmt: skip
# Calls that change an attribute: Landlock does not cover them, either
ATTRIBUTES: Mapping[str, tuple[int, int]] = {
    "setxattr": (188, 5), "lsetxattr": (189, 6),
    "fsetxattr": (190, 7), "setxattrat": (463, 463), "removexattr": (197, 14), "lremovexattr": (198, 15),
    "fremovexattr": (199, 16), "removexattrat": (466, 466),
}  # fmt: skip
# Allowed with some arguments only
CHECKED: Mapping[str, tuple[int, int]] = {
    "clone": (56, 220), "clone3": (435, 435), "socket": (41, 198), "socketpair": (53, 199), "ioctl": (16, 29),
    "chmod": (90, NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452), "prlimit64": (302, 261),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119), "sched_setparam": (142, 118), "sched_setattr": (314, 274),
}  # fmt: skip
