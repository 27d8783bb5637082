"""What a coding agent waits for at each message: 1,000 messages to a warm process, each by a hook of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

import pytest

from cli.support import MODULE, environment
from hosts.test_prompt_hook import ARGV
from tables import table

pytestmark = pytest.mark.bench

MESSAGES = table(__file__, "MESSAGES")
ROUNDS = 1000


@pytest.mark.parametrize("skills", [1000, 10_000])
def test_the_hook_answers_1000_messages_in_under_100_ms_each(
    many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str], skills: int
) -> None:
    project, env = many_skills(skills), environment()
    argv = [*MODULE, "--root", str(project), "route", "--serve", "--json"]
    taken: list[float] = []
    bare: list[float] = []
    answered = failed = 0
    with subprocess.Popen(argv, cwd=project, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        for number in range(ROUNDS):
            data = json.dumps({"prompt": MESSAGES[number % len(MESSAGES)], "cwd": str(project)}).encode()
            began = time.perf_counter()
            done = subprocess.run(ARGV, input=data, capture_output=True, cwd=project, env=env)
            taken.append((time.perf_counter() - began) * 1000)
            failed += done.returncode != 0 or done.stderr != b""
            answered += done.stdout != b""
            if number % 20 == 0:
                began = time.perf_counter()
                subprocess.run([sys.executable, "-c", ""], env=env, check=True)
                bare.append((time.perf_counter() - began) * 1000)
        process.terminate()
    cuts = quantiles(taken, n=20)
    with capsys.disabled():
        start = f"bare python p50 {quantiles(bare, n=2)[0]:.0f} ms, load {os.getloadavg()[0]:.1f}"
        print(
            f"\n{ROUNDS} messages, {skills} skills: p50 {cuts[9]:.0f} ms, p95 {cuts[-1]:.0f} ms, {answered} with a hint; {start}"
        )
    assert failed == 0
    assert answered >= ROUNDS // len(MESSAGES)  # one of the messages clearly fits one skill
    assert cuts[-1] < 100
