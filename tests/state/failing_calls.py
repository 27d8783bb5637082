"""Runs `navigator` while chosen system calls fail, as on a broken disk: FAILS is a JSON list of [call, error number].

The failures are real ones of the kernel (seccomp(2)), so SQLite meets them too. `fcntl` fails only for locks.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import platform
import struct

NUMBERS = {
    "x86_64": {"flock": 73, "fcntl": 72, "pread64": 17, "pwrite64": 18, "fsync": 74, "fdatasync": 75, "ftruncate": 77},
    "aarch64": {"flock": 32, "fcntl": 25, "pread64": 67, "pwrite64": 68, "fsync": 82, "fdatasync": 83, "ftruncate": 46},
}
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06  # instructions of BPF: a word of the call's data, a jump, the verdict
ALLOW, ERRNO = 0x7FFF0000, 0x00050000


def fail(calls: list[tuple[str, int]]) -> None:
    """Makes the calls of this process fail from now on."""
    numbers = NUMBERS[platform.machine()]
    steps = []
    for name, error in calls:
        steps.append((LOAD, 0, 0, 0))
        if name == "fcntl":  # skips what follows unless the call sets a lock
            locks = (fcntl.F_SETLK, fcntl.F_SETLKW)
            steps += [(EQUAL, 0, 4, numbers[name]), (LOAD, 0, 0, 24)]
            steps += [(EQUAL, 1, 0, locks[0]), (EQUAL, 0, 1, locks[1])]
        else:
            steps.append((EQUAL, 0, 1, numbers[name]))
        steps.append((RETURN, 0, 0, ERRNO | error))
    code = b"".join(struct.pack("HBBI", *step) for step in [*steps, (RETURN, 0, 0, ALLOW)])
    held = ctypes.create_string_buffer(code)
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held)))
    libc, none = ctypes.CDLL(None, use_errno=True), ctypes.c_ulong(0)
    one, two = ctypes.c_ulong(1), ctypes.c_ulong(2)
    if libc.prctl(38, one, none, none, none) or libc.prctl(22, two, program, none, none):
        raise OSError(ctypes.get_errno(), "no seccomp")


if __name__ == "__main__":
    from navigator_kernel.adapters.stores import sqlite
    from navigator_kernel.cli.main import main

    sqlite.WAIT = float(os.environ.get("WAIT", "30"))
    fail(json.loads(os.environ["FAILS"]))
    main()
