"""Entering a stranger's repository executes nothing: its `agents/` folder waits until every byte is trusted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.cli.main import run

CODE = """
import pathlib
from navigator_kernel.hookspecs import hookimpl

pathlib.Path(__file__).with_name("ran").write_text("x")

class Guest:
    name, aliases, description = "guest", (), "A guest"
    async def handle(self, prompt):
        return {"state": "success"}

@hookimpl
def kernel_register_agents(ports):
    return [Guest()]
"""


@pytest.fixture
def agents(root: Path) -> Path:
    """The project's own `agents/`, with one agent that leaves a mark outside the folder when it is imported."""
    folder = root / "agents" / "guest"
    folder.mkdir(parents=True)
    code = CODE.replace('pathlib.Path(__file__).with_name("ran")', f"pathlib.Path({str(root / 'ran')!r})")
    (folder / "agent.py").write_text(code)
    return root / "agents"


@pytest.fixture
def said(root: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs one command line with `--json` on the project and returns its document."""

    def command(*words: str) -> Any:
        run(["--root", str(root), *words, "--json"])
        return json.loads(capsys.readouterr().out)

    return command


@pytest.mark.parametrize(
    "words",
    [("agent", "list"), ("plugin", "list"), ("ask", "hello"), ("route", "hello"), ("skill", "list"), ("doctor",)],
)
def test_entering_a_project_runs_nothing_of_its_agents(
    root: Path, agents: Path, said: Any, words: tuple[str, ...]
) -> None:
    said(*words)
    assert not (root / "ran").exists()


def test_an_untrusted_folder_is_listed_as_untrusted_and_not_loaded(agents: Path, said: Any) -> None:
    listed = said("plugin", "list")
    assert (listed["untrusted"], "project:guest" in listed["plugins"]) == ([str(agents)], False)


def test_a_trusted_folder_is_loaded(root: Path, agents: Path, said: Any) -> None:
    said("plugin", "trust", str(agents))
    listed = said("plugin", "list")
    assert (listed["untrusted"], "project:guest" in listed["plugins"], (root / "ran").exists()) == ([], True, True)


@pytest.mark.parametrize("change", ["byte", "new file", "mode", "other file"])
def test_trust_ends_when_anything_in_the_folder_changes(root: Path, agents: Path, said: Any, change: str) -> None:
    (agents / "guest" / "helper.py").write_text("x = 1\n")
    said("plugin", "trust", str(agents))
    file = agents / "guest" / "agent.py"
    match change:
        case "byte":
            file.write_text(file.read_text().replace("A guest", "a guest"))
        case "new file":
            (agents / "guest" / "new.py").write_text("")
        case "mode":
            file.chmod(0o755)
        case "other file":
            (agents / "guest" / "helper.py").write_text("x = 2\n")
    assert said("plugin", "list")["untrusted"] == [str(agents)]
    assert not (root / "ran").exists()


def test_loading_an_agent_leaves_its_folder_as_it_was_and_so_trusted(agents: Path, said: Any) -> None:
    (agents / "guest" / "brief.md").write_text("# guest\n")
    said("plugin", "trust", str(agents))
    before = sorted(path.name for path in agents.rglob("*"))
    assert [said("plugin", "list")["untrusted"] for _ in range(3)] == [[], [], []]
    assert sorted(path.name for path in agents.rglob("*")) == before


def test_trust_in_a_folder_does_not_extend_to_a_copy(
    root: Path, agents: Path, said: Any, tmp_path: Path, capsys: Any
) -> None:
    said("plugin", "trust", str(agents))
    other = tmp_path / "other"
    shutil.copytree(agents, other / "agents")
    run(["--root", str(other), "plugin", "list", "--json"])
    assert json.loads(capsys.readouterr().out)["untrusted"] == [str(other / "agents")]


def test_trust_can_be_taken_back(agents: Path, said: Any) -> None:
    said("plugin", "trust", str(agents))
    said("plugin", "distrust", str(agents))
    assert said("plugin", "list")["untrusted"] == [str(agents)]


def test_a_project_cannot_bring_its_own_trust(root: Path, agents: Path, said: Any, home: Path) -> None:
    said("plugin", "trust", str(agents))
    held = home / ".local" / "state" / "navigator" / "trust.json"
    for place in (root / "mybox" / "state", root / ".navigator", root):
        place.mkdir(parents=True, exist_ok=True)
        (place / "trust.json").write_bytes(held.read_bytes())
    held.unlink()
    assert said("plugin", "list")["untrusted"] == [str(agents)]


def test_a_folder_that_is_not_there_cannot_be_trusted(root: Path, said: Any) -> None:
    assert said("plugin", "trust", str(root / "nothing"))["exit_code"] == 4
