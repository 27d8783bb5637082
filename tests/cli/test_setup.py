"""Setting up and maintaining a project: init, gc, doctor, completion, help and the lists."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

import click
import pytest

from cli.support import MODULE, Place, environment, place_in
from navigator_kernel import __version__
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.cli.registry import COMMANDS, navigator
from navigator_kernel.config.settings import user_cache
from navigator_kernel.values.request import Session

pytestmark = pytest.mark.sample(2)

PAGES = ["commands.md", "filesystem.md", "skills-mapping.md"]
GROUPS = [name for name in COMMANDS if isinstance(navigator.get_command(click.Context(navigator), name), click.Group)]
OLD = time.time() - 40 * 86_400


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def empty(tmp_path: Path) -> Place:
    """A folder that is not a project yet."""
    root = tmp_path / "empty"
    root.mkdir()
    return Place(root=root)


@pytest.fixture
def full(here: Place) -> Place:
    """A project with something in every folder of mybox, old and new."""
    aged = ["logs/runs/old.jsonl", "workspace/old/out.txt", "temp/old.txt", "workflows/w.json", "state/s.json"]
    here.write({f"mybox/{name}": "x" for name in aged})
    here.write({"mybox/logs/runs/new.jsonl": "x", "mybox/workspace/new/out.txt": "x", "mybox/temp/deep/new.txt": "x"})
    here.write({"mybox/README.md": "x", "skills.lock.json": "{}"})
    for name in [*aged, "workspace/old"]:
        os.utime(here.root / "mybox" / name, (OLD, OLD))
    return here


KEPT = {
    "mybox/README.md",
    "mybox/logs/runs/new.jsonl",
    "mybox/state/s.json",
    "mybox/workflows/w.json",
    "mybox/workspace/new/out.txt",
    "skills.lock.json",
}


@pytest.mark.requirement("X-42")
@pytest.mark.parametrize(
    ("words", "more"), [([], []), (["--workstation"], [f"docs/{page}" for page in PAGES])], ids=["plain", "workstation"]
)
def test_init_writes_pages_for_host_agents_only_where_they_are_asked_for(
    empty: Place, words: list[str], more: list[str]
) -> None:
    out, written = empty.said("init", *words), {"mybox/.gitignore", *more}
    assert set(empty.files()) == written
    assert set(out.splitlines()[:-1]) == written


def test_a_second_init_writes_nothing(empty: Place) -> None:
    empty.said("init")
    before = {path: path.stat().st_mtime_ns for path in empty.root.rglob("*")}
    assert empty.json("init")["written"] == []
    assert {path: path.stat().st_mtime_ns for path in empty.root.rglob("*")} == before


def test_init_leaves_a_page_of_the_persons_own_alone(empty: Place) -> None:
    empty.write({"docs/commands.md": "mine\n"})
    empty.said("init", "--workstation")
    assert empty.files()["docs/commands.md"] == b"mine\n"


def test_a_dry_run_of_init_lists_the_files_and_writes_nothing(empty: Place) -> None:
    told = empty.json("init", "--dry-run")["written"]
    assert list(empty.root.iterdir()) == []
    empty.said("init")
    assert set(told) == set(empty.files())


@pytest.mark.parametrize("page", PAGES)
def test_the_pages_bear_no_marks_of_their_generator(empty: Place, page: str) -> None:
    empty.said("init", "--workstation")
    text = (empty.root / "docs" / page).read_text("utf-8")
    assert re.search(r"\[\[\[|\]\]\]|\bcog\b|import sys", text) is None
    assert text.strip()


def test_init_works_in_the_folder_that_root_names(empty: Place, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    empty.said("--root", str(other), "init")
    assert (other / "mybox" / ".gitignore").is_file()
    assert list(empty.root.iterdir()) == []


def test_gc_removes_temporary_files_and_old_runs_and_nothing_else(full: Place) -> None:
    full.said("gc", "--results")
    assert set(full.files()) == KEPT


def test_gc_keeps_results_that_are_nowhere_else_and_says_how_much_they_take(full: Place) -> None:
    done = full.run("gc")
    assert set(full.files()) == KEPT | {"mybox/workspace/old/out.txt"}
    assert "1 old run kept with results that are not in the project (1 byte): old" in done.err
    assert "navigator gc --results" in done.err
    told = full.json("gc")
    assert (told["results"], told["results_bytes"]) == (["mybox/workspace/old"], 1)


def test_gc_removes_a_workspace_whose_results_are_in_the_project(full: Place) -> None:
    full.said("files", "old", "out.txt", "--to", "docs/")
    os.utime(full.root / "mybox/workspace/old", (OLD, OLD))
    assert "mybox/workspace/old" in full.json("gc")["removed"]
    assert full.files()["docs/out.txt"] == b"x"


def test_gc_keeps_a_result_that_was_delivered_and_undone(full: Place) -> None:
    full.said("files", "old", "out.txt", "--to", "docs/")
    full.said("undo")
    os.utime(full.root / "mybox/workspace/old", (OLD, OLD))
    assert full.json("gc")["results"] == ["mybox/workspace/old"]


def test_gc_removes_an_old_workspace_with_the_kernels_own_files_only(here: Place) -> None:
    for name in ("old/step-1.json", "old/output-0123abcd.txt", "attached-0123456789ab/mine.txt"):
        here.write({f"mybox/workspace/{name}": "x"})
        os.utime((here.root / "mybox/workspace" / name).parent, (OLD, OLD))
    assert sorted(here.json("gc")["removed"]) == ["mybox/workspace/attached-0123456789ab", "mybox/workspace/old"]


def test_gc_reports_the_removed_paths(full: Place) -> None:
    gone = full.json("gc", "--results")["removed"]
    assert sorted(gone) == ["mybox/logs/runs/old.jsonl", "mybox/temp/deep", "mybox/temp/old.txt", "mybox/workspace/old"]


def test_a_dry_run_of_gc_reports_the_same_paths_and_removes_nothing(full: Place) -> None:
    before = full.files()
    told = full.json("gc", "--results", "--dry-run")
    assert (full.files(), told["dry_run"]) == (before, True)
    assert full.json("gc", "--results")["removed"] == told["removed"]


def test_gc_with_no_days_removes_every_run_and_keeps_state(full: Place) -> None:
    full.said("gc", "--days", "0", "--results")
    assert set(full.files()) == KEPT - {"mybox/logs/runs/new.jsonl", "mybox/workspace/new/out.txt"}


def test_gc_removes_a_link_and_not_what_it_points_to(here: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("x")
    (here.root / "mybox" / "temp").mkdir()
    (here.root / "mybox" / "temp" / "link").symlink_to(outside)
    here.said("gc")
    assert not (here.root / "mybox" / "temp" / "link").is_symlink()
    assert (outside / "kept.txt").exists()


def test_gc_does_not_follow_a_box_that_is_a_link_out_of_the_project(here: Place, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("x")
    (here.root / "mybox" / "temp").symlink_to(outside)
    here.run("gc")
    assert (outside / "kept.txt").exists()


def test_gc_under_a_clock_that_is_30_years_ahead_keeps_what_is_old_and_says_so(here: Place) -> None:
    """The files are 30 years old for that clock."""
    name = here.root / "mybox" / "logs" / "runs" / "old.jsonl"
    here.write({"mybox/logs/runs/old.jsonl": "x", "mybox/logs/runs/new.jsonl": "x"})
    os.utime(name, (OLD - 30 * 31_536_000, OLD - 30 * 31_536_000))
    done = here.run("gc")
    assert (name.exists(), "the clock may be wrong" in done.err) == (True, True)
    assert here.json("gc", "--days", "0")["removed"]
    assert not name.exists()


def test_gc_removes_recordings_of_an_earlier_version_and_old_sessions_of_single_calls_and_no_others(
    here: Place,
) -> None:
    here.run("ask", "--session", "mine", "hello there")
    sessions, name = Project(here.root, agents=False).sessions, "t1.openai-20260131-093000123-9f3ac1"
    sessions.save(Session(id=name, turn=1))
    tape = project_state(here.root).folder / "tapes" / "r.json"
    tape.parent.mkdir()
    tape.write_text("{}")
    half = user_cache() / "repos" / ".navigator-note-0123456789abcdef.tmp"
    half.parent.mkdir(parents=True, exist_ok=True)
    half.write_text("x")
    os.utime(half, (OLD, OLD))
    assert f"session {name}" not in here.json("gc")["removed"]
    assert (tape.exists(), half.exists()) == (False, False)
    assert f"session {name}" in here.json("gc", "--days", "0")["removed"]
    assert [row["id"] for row in sessions.listed()] == ["mine"]


def test_left_overs_are_removed_once_a_day_after_a_message(here: Place) -> None:
    old = here.root / "mybox" / "logs" / "runs" / "old.jsonl"
    here.run("ask", "hello there")
    here.write({"mybox/logs/runs/old.jsonl": "x"})
    os.utime(old, (OLD, OLD))
    here.run("ask", "hello there")
    assert old.exists()
    os.utime(project_state(here.root).folder / "collected", (OLD, OLD))
    here.run("ask", "hello there")
    assert not old.exists()


@pytest.mark.parametrize("made", [True, False], ids=["after init", "before init"])
def test_doctor_finds_nothing_wrong_in_a_fresh_project(empty: Place, made: bool) -> None:
    if made:
        empty.said("init")
    found = empty.json("doctor")
    assert [one for one in found["findings"] if one["state"] == "damaged"] == []
    assert {"python", "git", "settings", "skills", "records", "receipts", "plugins"} <= {
        one["what"] for one in found["findings"]
    }


def test_doctor_writes_nothing_in_the_project(here: Place) -> None:
    before = here.files()
    here.said("doctor")
    assert here.files() == before


def test_doctor_names_a_manifest_that_cannot_be_used(here: Place) -> None:
    here.write({".claude/skills/half/SKILL.md": "---\nname: half\n"})
    done = here.run("doctor")
    assert done.code == 1
    assert "!!" in done.out and "half" in done.out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_navigator(here: Place, shell: str) -> None:
    script = here.said("completion", shell)
    assert "_NAVIGATOR_COMPLETE" in script and "navigator" in script
    assert here.json("completion", shell)["script"].strip() == script.strip()


def test_completion_offers_the_commands(here: Place) -> None:
    asked = {"_NAVIGATOR_COMPLETE": "bash_complete", "COMP_WORDS": "navigator sk", "COMP_CWORD": "1"}
    done = here.run(env=asked)
    assert "plain,skill" in done.out


@pytest.mark.parametrize("words", [["--version"], ["--help"], ["-h"], *([name, "-h"] for name in COMMANDS)])
def test_help_and_version_end_well(here: Place, words: list[str]) -> None:
    out = here.said(*words)
    assert __version__ in out if words == ["--version"] else "Usage: navigator" in out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(here: Place, name: str) -> None:
    assert here.said(name, "--help").startswith(f"Usage: navigator {name}")


@pytest.mark.parametrize("group", GROUPS)
def test_every_subcommand_has_help(here: Place, group: str) -> None:
    command = navigator.get_command(click.Context(navigator), group)
    assert isinstance(command, click.Group)
    for name in command.commands:
        assert here.said(group, name, "-h").startswith(f"Usage: navigator {group} {name}")


def test_the_help_names_every_command(here: Place) -> None:
    out = here.said("--help")
    assert [name for name, (_, text) in COMMANDS.items() if name not in out or text[:20] not in out] == []


def test_the_shipped_agents_are_listed(here: Place) -> None:
    agents = here.json("agent", "list")["agents"]
    assert {agent["name"] for agent in agents} == {"worker", "skills", "mcp"}
    assert "worker" in here.said("agent", "list")


def test_the_shipped_plugins_are_listed(here: Place) -> None:
    listed = here.json("plugin", "list")
    assert {"agents:worker", "agents:skills", "agents:mcp", "planner"} <= set(listed["plugins"])
    assert (listed["untrusted"], listed["failures"]) == ([], [])


def test_a_list_into_a_closed_pipe_is_not_an_error(here: Place) -> None:
    line = f"{' '.join(MODULE)} skill list | true"
    done = subprocess.run(["/bin/sh", "-c", line], cwd=here.root, env=environment(), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
