"""Runs one program as the kernel would, and prints the outcome: `contained.py RUNG FOLDER TIMEOUT [LIMIT=BYTES…] < code`.

`room=N` among the limits lets the user have N threads more than this program has; `tool=1` runs it as a model's tool does.

It is a separate program so that a user other than the tester can run it, with another interpreter.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.launcher import threads_of_user
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.errors import KernelError
from navigator_kernel.sandbox import contain
from navigator_kernel.sandbox.backends import rungs
from navigator_kernel.sandbox.confinement import confinement
from navigator_kernel.values.job import Job


def main(rung: str, folder: Path, timeout: float, *limits: str) -> dict[str, Any]:
    memory = folder.parent / f"memory-{os.getuid()}"
    smaller: dict[str, Any] = {name: int(size) for name, _, size in (limit.partition("=") for limit in limits)}
    room, is_tool = smaller.pop("room", None), smaller.pop("tool", 0)
    job = Job(
        actor="tool" if is_tool else "type_a",
        subject="attempt",
        digest="sha256:0",
        run="run",
        argv=(sys.executable, "-c", sys.stdin.read()),
        cwd=folder,
        timeout=timeout,
    )
    runner: Any = ProcessRunner()
    if rung != "none":
        contain.rungs = lambda: tuple(found for found in rungs() if found.name == rung)  # type: ignore[attr-defined]  # only this one is tried
        runner = contain.ContainedRunner(ProcessRunner(), memory / "sandbox.json", lambda: FolderWriter([memory]))
        if runner.rung() is None:
            return {"there": False}
        contain.confinement = lambda job: confinement(job)._replace(**smaller)  # type: ignore[attr-defined]  # a test cannot wait for 4 GiB
    loop = asyncio.new_event_loop()  # not closed: that would start one more thread
    try:
        done = loop.run_until_complete(run(runner, job, room))
    except KernelError as error:
        return {"there": True, "error": error.message, "hint": error.hint}
    return {
        "there": True,
        "code": done.exit_code,
        "out": done.stdout[-2_000:].decode("utf-8", "replace"),
        "size": len(done.stdout),
        "err": done.stderr[-2_000:].decode("utf-8", "replace"),
        "elapsed": done.elapsed,
        "limit": "time" if done.timed_out else done.exceeded or ("output" if done.truncated else ""),
    }


async def run(runner: Any, job: Job, room: int | None) -> Any:
    if room is not None:
        threads = 8
        together = threading.Barrier(threads)
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(threads))
        await asyncio.gather(*(asyncio.to_thread(together.wait) for _ in range(threads)))  # no thread is started later
        while threads_of_user() > threading.active_count():  # the trial of the sandbox ends
            time.sleep(0.01)  # noqa: ASYNC251 - nothing else runs
        most = threading.active_count() + room
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    return await runner.run(job)


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])))
