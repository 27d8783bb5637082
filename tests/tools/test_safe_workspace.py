"""Neither a tool nor a command leaves in a workspace what the person's own programs run or obey unasked (X-43)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from navigator_kernel.adapters.processes import line_diff
from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.values.chat import ToolCall
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.requirement("X-43")


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


def status(folder: Path) -> int:
    """What a prompt does on entering a folder."""
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(["git", "status"], cwd=folder, env=env, capture_output=True, check=False).returncode


@pytest.mark.parametrize(
    "path",
    ["pkg/.git/config", "pkg/.GIT/HEAD", ".envrc", "a/.vscode/tasks.json", "sitecustomize.py", "x.pth", ".mise.toml",
     "CLAUDE.md", "venv/bin/activate"],
)  # fmt: skip
def test_a_file_that_a_program_obeys_unasked_is_not_written_and_the_model_learns_why(box: Toolbox, path: str) -> None:
    answer = box.call("write", file_path=path, content="x")
    assert answer.failed and "unasked" in answer.text and "use another name" in answer.text
    assert not (box.workspace / path).exists()


@pytest.mark.parametrize("place", ["workspace", "project"])
def test_a_repository_is_not_written_piece_by_piece(box: Toolbox, place: str) -> None:
    base = box.workspace if place == "workspace" else box.root / "docs"
    names = ["config", "objects/x", "refs/x", "HEAD"]
    answers = [
        box.agreed("write", number, file_path=f"{base}/pkg/{name}", content="ref: refs/heads/main\n")
        for number, name in enumerate(names)
    ]
    assert [answer.failed for answer in answers] == [False, False, False, True]
    assert "git repository" in answers[-1].text


def test_the_edit_of_a_file_of_an_earlier_turn_copies_nothing_that_programs_obey(box: Toolbox) -> None:
    from msgspec.structs import replace

    earlier = box.root / "mybox/workspace/run-0/.envrc"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("a\n")
    box.work = replace(box.work, earlier=(str(earlier),))
    assert box.call("edit", file_path=".envrc", old_string="a", new_string="b").failed
    assert not (box.workspace / ".envrc").exists()


@pytest.mark.ci
def test_a_command_may_use_git_and_its_repository_is_disarmed_at_the_end(box: Toolbox) -> None:
    line = (
        "git init -q repo && cd repo && echo one > a.txt && git add . && echo two > a.txt && git diff && "
        "git config core.fsmonitor 'touch ../../pwned' && mkdir .vscode && echo x > .envrc"
    )
    answer = box.agreed("run", command=line)
    assert "+two" in answer.text
    assert "repo/.git -> repo/.git.disarmed" in answer.text and "repo/.envrc -> repo/.envrc.disarmed" in answer.text
    assert status(box.workspace / "repo") != 0 and not list(box.root.rglob("pwned"))
    line = "cd repo && mv .git.disarmed .git && mv .git/HEAD.disarmed .git/HEAD && git -c core.fsmonitor= status -s"
    assert "a.txt" in box.agreed("run", 2, command=line).text
    assert status(box.workspace / "repo") != 0


@pytest.mark.ci
def test_a_command_that_fails_leaves_nothing_armed_either(box: Toolbox) -> None:
    answer = box.agreed("run", command="mkdir .hg .idea && touch .envrc && sleep 60", timeout=1)
    assert "stopped" in answer.text and ".hg -> .hg.disarmed" in answer.text
    assert sorted(path.name for path in box.workspace.iterdir()) == [
        ".envrc.disarmed",
        ".hg.disarmed",
        ".idea.disarmed",
    ]


def test_stop_ends_the_comparison_for_a_question(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = box.root.parent / "programs"
    programs.mkdir()
    (programs / "git").write_text(f"#!/bin/sh\necho $$ > {programs}/pid\nexec sleep 60\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(line_diff, "SECONDS", 60.0)
    arguments = {"file_path": "notes.txt", "content": "other\n"}

    async def stopped() -> float:
        task = asyncio.ensure_future(box.tools.call(box.work, ToolCall(id="c", name="write", arguments=""), arguments))
        pid = programs / "pid"
        while not pid.exists() or not pid.read_text().strip():  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        began = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return began

    began = asyncio.run(stopped())  # it waits for its threads, too
    assert time.monotonic() - began < 2
    assert not Path(f"/proc/{(programs / 'pid').read_text().strip()}").exists()


@pytest.mark.parametrize(
    "text", ["a\n" * 100_000, "a\nb\n" * 50_000, "\n" * 200_000], ids=["same", "alternating", "empty"]
)
def test_the_worst_texts_are_compared_in_time(box: Toolbox, text: str) -> None:
    (box.root / "notes.txt").write_text(text)
    began = time.monotonic()
    with pytest.raises(ConsentNeeded):
        box.call("write", file_path="notes.txt", content=f"b\n{text[: len(text) // 2]}x\n{text[len(text) // 2 :]}")
    assert time.monotonic() - began < 5


@pytest.mark.ci
def test_the_persons_pytest_runs_nothing_that_a_command_left_in_a_workspace(box: Toolbox) -> None:
    line = 'mkdir -p tests && echo \'open("pwned", "w")\' | tee conftest.py test_x.py tests/x_test.py'
    assert "wrote" in box.agreed("run", command=line).text
    (box.root / "test_own.py").write_text("def test_own() -> None:\n    assert True\n")
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull]
    done = subprocess.run([*argv, "--rootdir", "."], cwd=box.root, capture_output=True, text=True, check=False)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
    assert not list(box.root.rglob("pwned"))
