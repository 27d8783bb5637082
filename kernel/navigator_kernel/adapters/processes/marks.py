"""Changes modes, owners and times for a program under Landlock, of files in the folders that it may write to.

Landlock does not cover these calls, so the seccomp filter stops each one, and the launcher makes it in the program's
place (seccomp_unotify(2)). The path and the times are read once, and the call is made on a descriptor, so a program
that changes them or renames files meanwhile gains nothing. The filter refuses modes with a set-id bit.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import select
import signal
import struct

TYPE_CHECKING = False  # importing `typing` takes 4 ms
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# The arguments of each call: d the descriptor of a folder or file, p a path, l a path whose last link is not followed,
# m a mode, u a user, g a group, x flags; times in the form of utimensat (n), utimes (v) or utime (s)
ARGUMENTS = {
    "chmod": "pm", "fchmod": "dm", "fchmodat": "dpm", "fchmodat2": "dpmx", "chown": "pug", "fchown": "dug",
    "lchown": "lug", "fchownat": "dpugx", "utime": "ps", "utimes": "pv", "futimesat": "dpv", "utimensat": "dpnx",
}  # fmt: skip
RECEIVE, SEND, IS_VALID = 0xC0502100, 0xC0182101, 0x40082102  # SECCOMP_IOCTL_NOTIF_*
NO_FOLLOW, EMPTY_PATH, CURRENT_FOLDER = 0x100, 0x1000, -100  # AT_*
CAPABILITIES = 0x20080522  # _LINUX_CAPABILITY_VERSION_3
PATH_MAX = 4096


def answer(listener: int, events: select.poll, calls: Mapping[int, str], folders: Sequence[bytes]) -> None:
    """Makes or refuses each call that `listener` reports, for files in the real paths `folders`; `calls` has their
    names by number, and `events` waits for the listener. Returns when the last process of the program has ended."""
    libc = ctypes.CDLL(None, use_errno=True)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())  # they are for the main thread
    libc.capset(struct.pack("=Ii", CAPABILITIES, 0), bytes(24))  # this thread has no more rights than the program
    while events.poll()[0][1] & select.POLLIN:
        notice = bytearray(80)
        try:
            fcntl.ioctl(listener, RECEIVE, notice)
            call, task, _, number, _, _, *values = struct.unpack("=QIIiIQ6Q", notice)
            given = dict(zip(ARGUMENTS[calls[number]], values, strict=False))
            error = change(libc, listener, call, task, given, folders)
            fcntl.ioctl(listener, SEND, struct.pack("=QqiI", call, 0, -error, 0))
        except FileNotFoundError:  # the thread that made the call is dead
            continue


def change(
    libc: ctypes.CDLL, listener: int, call: int, task: int, given: Mapping[str, int], folders: Sequence[bytes]
) -> int:
    """Makes the call of the thread `task`; returns 0, or the number of the error."""
    file = -1
    try:
        times = times_of(task, given)
        file = opened(task, given)
        fcntl.ioctl(listener, IS_VALID, struct.pack("=Q", call))  # else `task` may be another thread by now
        target = b"/proc/self/fd/%d" % file
        real = os.readlink(target)  # noqa: PTH115 - a name may be any bytes
        if not any(real == folder or real.startswith(folder + b"/") for folder in folders):
            return errno.EPERM
        if "m" in given:
            failed = libc.chmod(target, given["m"])
        elif "u" in given:
            failed = libc.chown(target, given["u"], given["g"])
        else:
            failed = libc.utimensat(CURRENT_FOLDER, target, times, 0)
        return ctypes.get_errno() if failed else 0
    except OSError as error:
        return error.errno or errno.EPERM
    finally:
        if file >= 0:
            os.close(file)


def opened(task: int, given: Mapping[str, int]) -> int:
    """A descriptor of the file that the call is for, which permits nothing but to name it."""
    flags, start = given.get("x", 0) & 0xFFFFFFFF, ctypes.c_int(given.get("d", CURRENT_FOLDER)).value
    if flags & ~(NO_FOLLOW | EMPTY_PATH):
        raise OSError(errno.EINVAL, "flags")
    address = given.get("p", given.get("l"))
    if address is None or (address == 0 and start >= 0 and not flags and "m" not in given and "u" not in given):
        path, flags = b"", EMPTY_PATH  # the call is for the descriptor itself
    else:
        path, end, _ = read(task, address, PATH_MAX).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, "path")
    how = os.O_PATH | os.O_CLOEXEC | (os.O_NOFOLLOW if flags & NO_FOLLOW or "l" in given else 0)
    if path.startswith(b"/proc/self/"):
        path = b"/proc/%d/%s" % (task, path[11:])
    if path.startswith(b"/"):
        return os.open(path, how)
    try:
        folder = os.open(
            f"/proc/{task}/" + ("cwd" if start == CURRENT_FOLDER else f"fd/{start}"), os.O_PATH | os.O_CLOEXEC
        )
    except FileNotFoundError as error:
        raise OSError(errno.EBADF, "descriptor") from error
    if not path and flags & EMPTY_PATH:
        return folder
    try:
        return os.open(path, how, dir_fd=folder)
    finally:
        os.close(folder)


def times_of(task: int, given: Mapping[str, int]) -> bytes | None:
    """Two timespecs, of the last access and the last change; None for the present."""
    if address := given.get("n"):
        return read(task, address, 32)
    if address := given.get("s"):
        accessed, changed = struct.unpack("=2q", read(task, address, 16))
        return struct.pack("=4q", accessed, 0, changed, 0)
    if address := given.get("v"):
        accessed, first, changed, second = struct.unpack("=4q", read(task, address, 32))
        if not (0 <= first < 1_000_000 and 0 <= second < 1_000_000):
            raise OSError(errno.EINVAL, "microseconds")
        return struct.pack("=4q", accessed, first * 1000, changed, second * 1000)
    return None


def read(task: int, address: int, most: int) -> bytes:
    """Up to `most` bytes of the thread's memory; fewer if it ends before, but for times, which must be whole."""
    fd = os.open(f"/proc/{task}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        found = os.pread(fd, most, address) if address < 1 << 63 else b""
    except OSError:
        found = b""
    finally:
        os.close(fd)
    if not found or (most < PATH_MAX and len(found) < most):
        raise OSError(errno.EFAULT, "address")
    return found
