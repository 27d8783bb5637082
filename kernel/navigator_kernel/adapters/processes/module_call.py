"""Runs a module of the kernel in a child process, once, with limits of time and memory."""

from __future__ import annotations

import json
import marshal
import os
import subprocess
import sys
from contextlib import suppress
from typing import Any

from navigator_kernel.adapters.processes.process import MARK, kill_tree
from navigator_kernel.errors import KernelError, TimedOut
from navigator_kernel.text import clean, shorten

_SAID = 300  # characters from the end of a failed child's stderr


def call_module(module: str, question: dict[str, Any], *, seconds: int, memory: int) -> dict[str, Any]:
    """Runs `python -m module` with `question` marshalled on stdin, and returns the JSON object that it answers.
    `memory` is in bytes of address space. TimedOut after `seconds`, with its process group dead; KernelError if it
    fails, or if its answer is not an object."""
    mark = os.urandom(16).hex()
    process = start_module(module, seconds=seconds, memory=memory, mark=mark, errors=subprocess.PIPE)
    try:
        out, err = process.communicate(marshal.dumps(question), timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"it took longer than {seconds} seconds", hint="leave the plugin out") from error
    finally:
        kill_tree(process.pid, mark)
        with suppress(ValueError, OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=1)  # reads the rest of the pipes, which another process may hold open
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(OSError):
                stream.close()
    if process.returncode:
        said = shorten(clean(err.decode("utf-8", "replace")[-_SAID:]), _SAID)
        raise KernelError(f"it ended with {process.returncode}: {said}", hint="leave the plugin out")
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise KernelError("it answered no object", hint="leave the plugin out")
    return answer


def start_module(
    module: str, *, seconds: int, memory: int, mark: str = "", errors: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Starts `python -m module` in a fresh interpreter and a session of its own, with no open files but its streams. It
    may use `seconds` of processor time and one more, 0 for no limit; `mark` is for `kill_tree`."""
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, str(memory), str(seconds), module, json.dumps(sys.path)],
        env={**os.environ, MARK: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )


# Sets the limits before it imports any code of a plugin, with the same import path as this process
_START = """
import json, resource, runpy, sys
memory, seconds, module = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
limits = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)]
for which, value in limits + [(resource.RLIMIT_CPU, seconds + 1)] * (seconds > 0):
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
sys.path[:] = json.loads(sys.argv[4])
runpy.run_module(module, run_name="__main__")
"""
