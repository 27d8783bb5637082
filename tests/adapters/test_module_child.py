"""A module in a child process: its time limit starts once it is ready, and it ends with the process that asks it."""

from __future__ import annotations

import json
import marshal
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import pytest

from navigator_kernel.adapters.processes.module_child import ModuleChild, call_module, start_module
from navigator_kernel.errors import KernelError

MEMORY = 1024**3  # bytes
WORK = 0.5  # seconds that an answer takes
MODULE = """
import time
from navigator_kernel.adapters.processes.module_child import serve

time.sleep({start})
serve(lambda seconds: time.sleep(seconds) or {{"slept": seconds}})
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], str]:
    """Writes a module that takes that many seconds to start, and answers after sleeping as long as it is asked to."""

    def written(start: float) -> str:
        (tmp_path / "sleeper.py").write_text(MODULE.format(start=start))
        return "sleeper"

    monkeypatch.syspath_prepend(tmp_path)
    return written


@pytest.fixture
def sleeper(module: Callable[[float], str]) -> Iterator[subprocess.Popen[bytes]]:
    """A process of that module, ready for questions."""
    with start_module(module(0), seconds=0, memory=MEMORY) as process:
        try:
            stream(process.stdout).read(1)
            yield process
        finally:
            process.kill()


def stream(of: IO[bytes] | None) -> IO[bytes]:
    assert of is not None
    return of


def ask(process: subprocess.Popen[bytes], seconds: float, *, since: int = 0) -> None:
    """Asks it to sleep; `since` leaves out the first bytes of the question if they were sent before."""
    stream(process.stdin).write(question(seconds)[since:])
    stream(process.stdin).flush()


def question(seconds: float) -> bytes:
    asked = marshal.dumps((60, seconds))
    return len(asked).to_bytes(8) + asked


def answer(process: subprocess.Popen[bytes]) -> Any:
    answers = stream(process.stdout)
    return json.loads(answers.read(int.from_bytes(answers.read(8))))


@pytest.mark.wide
def test_the_time_of_a_question_does_not_include_the_start(module: Callable[[float], str]) -> None:
    child = ModuleChild(module(1.5), memory=MEMORY)
    try:
        assert child.ask(0, seconds=1) == {"slept": 0}
    finally:
        child.close()


@pytest.mark.requirement("SAF-1")
def test_bytes_that_come_while_it_works_do_not_end_it(sleeper: subprocess.Popen[bytes]) -> None:
    ask(sleeper, WORK)
    time.sleep(WORK / 2)
    stream(sleeper.stdin).write(question(0)[:1])
    stream(sleeper.stdin).flush()
    assert answer(sleeper) == {"slept": WORK}
    ask(sleeper, 0, since=1)
    assert answer(sleeper) == {"slept": 0}
    stream(sleeper.stdin).close()
    assert sleeper.wait(10) == 0


@pytest.mark.requirement("SAF-1")
def test_it_ends_while_it_works_when_nobody_waits_for_its_answer(sleeper: subprocess.Popen[bytes]) -> None:
    ask(sleeper, 60)
    time.sleep(WORK)
    stream(sleeper.stdout).close()
    assert sleeper.wait(10) == -signal.SIGIO


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("printed", ["", "no JSON", "[1]", "{"])
def test_a_module_that_answers_no_object_is_an_error_of_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, printed: str
) -> None:
    (tmp_path / "talker.py").write_text(f"print({printed!r})\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(KernelError, match="it answered no object"):
        call_module("talker", {}, seconds=20, memory=MEMORY)
