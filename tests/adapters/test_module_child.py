"""A module of the kernel in a child process: its time begins when it can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.processes.module_child import ModuleChild
from navigator_kernel.errors import TimedOut

MEMORY = 1024**3  # bytes
MODULE = """
import time
from navigator_kernel.adapters.processes.module_child import serve

time.sleep(2)


def answer(seconds):
    time.sleep(seconds)
    return {"slept": seconds}


serve(answer)
"""


@pytest.fixture
def slow_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that takes two seconds to start."""
    (tmp_path / "slow_start.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "slow_start"


def test_the_time_of_a_question_does_not_include_the_start(slow_start: str) -> None:
    child = ModuleChild(slow_start, memory=MEMORY)
    try:
        assert child.ask(0, seconds=1) == {"slept": 0}
        with pytest.raises(TimedOut, match="longer than 1 seconds"):
            child.ask(60, seconds=1)
        assert child.ask(0, seconds=1) == {"slept": 0}
    finally:
        child.close()
