"""A module of the kernel in a child process: its time begins when it can be asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.processes.module_child import ModuleChild

MEMORY = 1024**3  # bytes
MODULE = """
import time
from navigator_kernel.adapters.processes.module_child import serve

time.sleep(1.5)
serve(lambda question: {"answer": question})
"""


@pytest.fixture
def slow_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that takes more than a second to start."""
    (tmp_path / "slow_start.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "slow_start"


@pytest.mark.wide
def test_the_time_of_a_question_does_not_include_the_start(slow_start: str) -> None:
    child = ModuleChild(slow_start, memory=MEMORY)
    try:
        assert child.ask("x", seconds=1) == {"answer": "x"}
    finally:
        child.close()
