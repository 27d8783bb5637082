"""What containing a process costs: over the same launcher without a sandbox, and over a bare start."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.process import Contained, ProcessRunner
from navigator_kernel.sandbox import contain
from navigator_kernel.sandbox.backends import SandboxBackend, launch, rungs
from navigator_kernel.sandbox.contain import ContainedRunner
from navigator_kernel.values.job import Job

pytestmark = pytest.mark.bench

ROUNDS = 41
OVER_LAUNCHER, OVER_START = 0.015, 0.030  # seconds; the second for root, which needs a control group


@pytest.mark.parametrize("rung", rungs(), ids=lambda rung: rung.name)
def test_a_sandbox_costs_at_most_15_ms(
    rung: SandboxBackend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contain, "rungs", lambda: (rung,))
    kept = tmp_path / "kept"
    runner = ContainedRunner(ProcessRunner(), kept / "sandbox.json", lambda: FolderWriter([kept]))
    work = tmp_path / "run"
    work.mkdir()
    job = Job(actor="type_a", subject="b", digest="", run="r", argv=("/bin/true",), cwd=work, timeout=20)
    ways: dict[str, Callable[[], object]] = {
        "bare": lambda: asyncio.run(ProcessRunner().run(job)),
        "launcher": lambda: asyncio.run(_launched(job)),
        "contained": lambda: asyncio.run(runner.run(job)),
    }
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - began)
    bare, launcher, contained = (median(taken[name][1:]) * 1000 for name in ways)
    with capsys.disabled():
        figures = f"{contained:.1f} ms, launcher alone {launcher:.1f} ms, bare start {bare:.1f} ms"
        print(f"\n/bin/true under {rung.name}: {figures}; load {os.getloadavg()[0]:.1f}")
    assert contained - launcher <= OVER_LAUNCHER * 1000
    assert os.getuid() != 0 or contained - bare <= OVER_START * 1000


async def _launched(job: Job) -> object:
    """Through the launcher, which restricts nothing and becomes the program."""
    spec: dict[str, Any] = {"gate": None, "threads": 0, "seconds": None, "limits": {}}
    argv, fd = launch({**spec, "argv": list(job.argv), "landlock": None, "seccomp": None})
    try:
        return await ProcessRunner().run(job, Contained(argv, (fd,), lambda _: None, lambda: ""))
    finally:
        os.close(fd)
