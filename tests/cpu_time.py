"""Measures processor time, which does not depend on the other load of the machine."""

from __future__ import annotations

import gc
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from tempfile import TemporaryFile
from typing import Any, NamedTuple


class Ran(NamedTuple):
    code: int
    out: str
    seconds: float


def thread_seconds(work: Callable[[], object], tries: int = 3) -> float:
    """Returns the fewest processor seconds that `work` takes in this thread, without the garbage collector."""
    collects, taken = gc.isenabled(), []
    gc.disable()
    try:
        for _ in range(tries):
            began = time.thread_time()
            work()
            taken.append(time.thread_time() - began)
    finally:
        if collects:
            gc.enable()
    return min(taken)


def ran(argv: Sequence[str], **given: Any) -> Ran:
    """Runs a program; returns its exit code, its output and the processor time of it and the children it waited for."""
    with TemporaryFile() as out, subprocess.Popen(argv, stdout=out, **given) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return Ran(process.returncode, out.read().decode(), used.ru_utime + used.ru_stime)
