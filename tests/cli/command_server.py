"""Runs command lines in processes forked from one that has imported the kernel, so that tests do not start Python.

A forked process behaves as `python -m navigator_kernel.cli.main` or a script of `bin/` does, with its own streams,
folder, environment and exit code. Only the start-up time differs, so tests of start-up time, imports and encodings
start Python themselves.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import posix
import runpy
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MAIN = "navigator_kernel.cli.main"
# Packages of extras; numpy starts threads, and a process with threads must not fork
LEFT_OUT = {"numpy", "mcp", "pydantic_ai", "langgraph", "sqlalchemy"}
PLAIN = ("git", "tantivy", "tinydb", "yaml", "jinja2", "rich.table", "rich.progress", "tempfile", "sqlite3")
# Only for commands that ask a model or a server: with these imported, a process takes 10 ms longer to fork and to end
ASKING = ("mcp", "sqlalchemy", "pydantic_ai.direct", "pydantic_ai.models.openai", "genai_prices.data")
MOST = 1 << 20  # bytes of one request


def preload(more: Sequence[str]) -> None:
    """Imports what commands import, and `more`; a module that needs a left-out package is imported on use."""
    import navigator_kernel

    left_out = LEFT_OUT - {name.partition(".")[0] for name in more}
    sys.modules.update(dict.fromkeys(left_out))  # type: ignore[arg-type]  # from now on an import of these fails
    for found in pkgutil.walk_packages(navigator_kernel.__path__, "navigator_kernel.", onerror=bool):
        if found.name != MAIN:
            with suppress(ImportError):
                importlib.import_module(found.name)
    for name in (*PLAIN, *more):
        importlib.import_module(name)
    for name in left_out:
        del sys.modules[name]
    gc.freeze()  # garbage collections in forked processes skip these objects
    assert len(os.listdir("/proc/self/task")) == 1, "a module starts a thread: leave it out"


def serve(requests: socket.socket) -> list[str]:
    """Answers each request with the pid, then the exit code. Returns in the forked process only: the script ("" for the
    command line itself) and its arguments."""
    while True:
        data, streams, _, _ = socket.recv_fds(requests, MOST, 3)
        if not data:
            requests.close()
            sys.exit(0)
        asked = json.loads(data)
        pid = os.fork()
        if pid == 0:
            requests.close()
            become(asked, streams)
            return [asked["script"], *asked["args"]]
        for stream in streams:
            os.close(stream)
        requests.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def become(asked: dict[str, Any], streams: list[int]) -> None:
    for target, stream in enumerate(streams):
        os.dup2(stream, target)
        os.close(stream)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin, sys.stdout, sys.stderr = (
        io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), encoding="utf-8"),
        io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8"),
        io.TextIOWrapper(io.FileIO(2, "w", closefd=False), encoding="utf-8", errors="backslashreplace", write_through=True),
    )  # fmt: skip


if __name__ == "__main__":
    preload(ASKING if sys.argv[2] == "asking" else ())
    os._exit = posix._exit  # coverage's version would also save, in each forked process, the data of this one
    script, *args = serve(socket.socket(fileno=int(sys.argv[1])))
    sys.argv = [script or MAIN, *args]
    if script:
        sys.path[0] = str(Path(script).parent)
        runpy.run_path(script, run_name="__main__")
    else:
        runpy.run_module(MAIN, run_name="__main__", alter_sys=True)
