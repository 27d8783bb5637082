"""What a built-in tool costs beside the same work in bare Python, and a command beside bare bubblewrap."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from tools.bench_of_tools import Toolbox, toolbox

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]

ROUNDS = 9
TWICE = (("line", "row"), ("row", "line"))
FILES = 10_000
SLOWER, EXTRA = 6.0, 0.150  # times bare Python, or seconds beyond it: a search starts its own limited process


@pytest.fixture(scope="module")
def box(tmp_path_factory: pytest.TempPathFactory) -> Toolbox:
    made = toolbox(tmp_path_factory.mktemp("tools").resolve())
    made.call("write", file_path="large.txt", content="a line of text\n" * 7_000)
    for number in range(FILES):
        path = made.workspace / f"many/{number % 100}/{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"number {number}\nsome more words\n")
    return made


def timed(ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each way, taken in turns, the first round left out."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            taken[name].append(time.perf_counter() - began)
    return {name: median(held[1:]) for name, held in taken.items()}


def grep(folder: Path) -> list[str]:
    wanted = re.compile("number 9999$", re.MULTILINE)
    return [str(path) for path in sorted(folder.rglob("*.txt")) if wanted.search(path.read_text())]


def replacing(old: str, new: str) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, "replace_all": True}


def rewrite(path: Path) -> None:
    """As the tool: the file is replaced as a whole, and is on the disk then."""
    for old, new in TWICE:
        text = path.read_text().replace(old, new)
        with path.with_suffix(".tmp").open("w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        path.with_suffix(".tmp").replace(path)


def say(what: str, seconds: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", "pass"], check=True)
    bare = time.perf_counter() - began
    figures = ", ".join(f"{name} {held * 1000:.1f} ms" for name, held in seconds.items())
    with capsys.disabled():
        print(f"\n{what}: {figures}; start of bare python {bare * 1000:.0f} ms, load {os.getloadavg()[0]:.1f}")


def test_a_tool_costs_little_more_than_the_work_itself(box: Toolbox, capsys: pytest.CaptureFixture[str]) -> None:
    box.call("write", file_path="edited.txt", content="a line of text\n" * 500)
    plain = box.root / "edited.txt"
    plain.write_text("a line of text\n" * 500)
    large, many = box.workspace / "large.txt", box.workspace / "many"
    pairs: dict[str, dict[str, Callable[[], object]]] = {
        "read 100 kB": {
            "bare python": large.read_text,
            "tool": lambda: box.call("read", file_path="large.txt"),
        },
        "grep 10,000 files": {
            "bare python": lambda: grep(many),
            "tool": lambda: box.call("grep", pattern="number 9999$", path="many"),
        },
        "two edits of 7 kB": {
            "bare python": lambda: rewrite(plain),
            "tool": lambda: [box.call("edit", file_path="edited.txt", **replacing(old, new)) for old, new in TWICE],
        },
    }
    for what, ways in pairs.items():
        seconds = timed(ways)
        say(what, seconds, capsys)
        assert seconds["tool"] <= max(SLOWER * seconds["bare python"], seconds["bare python"] + EXTRA), what


def test_a_command_costs_little_more_than_bare_bubblewrap(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = toolbox(tmp_path.resolve())
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        pytest.skip("bubblewrap is not installed")
    bare = [bwrap, "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "true"]
    seconds = timed(
        {
            "bare start": lambda: subprocess.run(["true"], check=True),
            "bare bubblewrap": lambda: subprocess.run(bare, check=True),
            "tool": lambda: box.agreed("run", argv=["true"]),
        }
    )
    say("run true", seconds, capsys)
    assert seconds["tool"] - seconds["bare bubblewrap"] <= EXTRA
