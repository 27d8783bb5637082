"""Runs command lines in processes forked from one that has imported the kernel, and kills each at a given point.

Each line of standard input is a request, `{args, cwd, env, out, counted, at}`; it answers with the process id, then
with the exit code. A point is an operation that can change a file: a file is opened for writing, renamed, removed or
linked, a folder is made or removed, a database is opened, a process is started. At point number `at` the whole process
group gets SIGKILL.
"""

from __future__ import annotations

import json
import os
import runpy
import signal
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from cli.command_server import ASKING, MAIN, become, preload

POINTS = frozenset({"os.rename", "os.remove", "os.link", "os.mkdir", "os.rmdir", "sqlite3.connect", "subprocess.Popen"})
WRITES = os.O_WRONLY | os.O_RDWR


def watch(at: int, counted: int) -> None:
    """Kills the process group at point `at`, and writes to the file `counted` how many points were passed."""
    passed = 0

    def hook(event: str, args: tuple[object, ...]) -> None:
        nonlocal passed
        if event in POINTS or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
            passed += 1
            os.pwrite(counted, str(passed).encode(), 0)
            if passed == at:
                os.killpg(0, signal.SIGKILL)

    sys.addaudithook(hook)


def main() -> list[str]:
    """Forks a process for each request; returns only in the forked process, with its command line."""
    for line in sys.stdin:
        asked = json.loads(line)
        out, counted = (os.open(asked[name], os.O_RDWR | os.O_CREAT | os.O_TRUNC) for name in ("out", "counted"))
        pid = os.fork()
        if pid == 0:
            os.setpgid(0, 0)
            become(asked, [os.open(os.devnull, os.O_RDONLY), out, os.open(os.devnull, os.O_WRONLY)])
            watch(asked["at"], counted)
            return list(asked["args"])
        os.setpgid(pid, pid)
        os.close(out)
        os.close(counted)
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    preload(ASKING)
    sys.argv = [MAIN, *main()]
    runpy.run_module(MAIN, run_name="__main__", alter_sys=True)
