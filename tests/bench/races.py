"""Runs a command of ours and one of a peer in turns, each in a new project, and measures both."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count as numbers
from pathlib import Path
from statistics import median
from tempfile import TemporaryFile

import pytest

import navigator_kernel
from bench.peers import QUIET, Peer

ROUNDS = 5
_LEFT = ("PYTHONDONTWRITEBYTECODE", "NAVIGATOR_ENCODER")  # variables of the tests that measured commands do not get


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of one run, its children's included; its project, and its cache of repositories."""

    cpu: float
    wall: float
    project: Path
    cache: Path
    said: str = field(default="", repr=False)

    def __str__(self) -> str:
        return f"{self.cpu * 1000:.0f} ms CPU, {self.wall * 1000:.0f} ms wall"


Command = Sequence[str]


class Stopwatch:
    """Runs commands, each in a new project and with an empty cache of repositories, and measures them. `seed` is a
    project to copy instead, `cache` a cache."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self._folder, self._env, self._number = folder, env, numbers()

    def run(
        self, words: Command, seed: Path | None = None, *, here: Path | None = None, cache: Path | None = None
    ) -> Cost:
        """In a new project, a copy of `seed`, or `here` itself."""
        number = next(self._number)
        project, own = here or self._folder / f"project-{number}", self._folder / f"cache-{number}"
        if cache is not None:
            shutil.copytree(cache, own, symlinks=True)
        if here is not None:
            pass
        elif seed is None:
            project.mkdir()
        else:
            shutil.copytree(seed, project, symlinks=True)
        with TemporaryFile() as output:
            began = time.perf_counter()
            env = {**self._env, "XDG_CACHE_HOME": str(own)}
            child = subprocess.Popen(
                words, cwd=project, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            _, status, usage = os.wait4(child.pid, 0)
            wall = time.perf_counter() - began
            child.returncode = os.waitstatus_to_exitcode(status)
            output.seek(0)
            said = output.read().decode(errors="replace")
        expected = {0, 1} if "--all" in words else {0}  # 1: some skills of a repository cannot be installed
        assert child.returncode in expected, said[-2_000:]
        return Cost(cpu=usage.ru_utime + usage.ru_stime, wall=wall, project=project, cache=own, said=said)

    def medians(
        self, *commands: Command, seed: Path | None = None, cache: Path | None = None, rounds: int = ROUNDS
    ) -> list[Cost]:
        """Of each command, measured in turns after a round that does not count; with the last run's project."""
        runs = [[self.run(words, seed, cache=cache) for words in commands] for _ in range(rounds + 1)][1:]
        return [_median(column) for column in zip(*runs, strict=True)]


def _median(runs: Sequence[Cost]) -> Cost:
    last = runs[-1]
    cpu, wall = median(run.cpu for run in runs), median(run.wall for run in runs)
    return Cost(cpu=cpu, wall=wall, project=last.project, cache=last.cache, said=last.said)


def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Both compile once and keep it, as they do at home; ours beside the other temporary files."""
    compiled = tmp_path_factory.getbasetemp() / "compiled"
    kept = {name: value for name, value in os.environ.items() if name not in _LEFT}
    kernel = str(Path(navigator_kernel.__file__).parents[1])
    return {**kept, **QUIET, "PYTHONPYCACHEPREFIX": str(compiled), "PYTHONPATH": kernel}


def navigator(*words: str) -> list[str]:
    """As the README has it; with `-m` the project's folder would be on Python's path, a new one in each run."""
    return [sys.executable, str(Path(navigator_kernel.__file__).parents[2] / "bin" / "skill_manager.py"), *words]


@dataclass(frozen=True, slots=True)
class Race:
    """Ours and, where it can be had, the peer's."""

    ours: Cost
    theirs: Cost | None
    bare: Cost


def told(text: str, bare: Cost, capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\n{text}; bare python {bare}, load {os.getloadavg()[0]:.1f}")


def within(done: Race, share: float) -> None:
    """Skips, everything else being well, where there was nothing to compare with."""
    if done.theirs is None:
        pytest.skip("the npm package `skills` cannot be had; our own figures are printed")
    shares = {"CPU": done.ours.cpu / done.theirs.cpu, "wall": done.ours.wall / done.theirs.wall}
    assert {name: round(part, 3) for name, part in shares.items() if part > share} == {}, "of the peer's time"


Runner = Callable[[str, Command, Callable[[Peer], Command]], Race]
