"""Of the kernel's files in a person's project, git sees only those that a team shares (X-42)."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from cli.support import SOURCE, Place
from skill_repositories import make_repo, skill_text

pytestmark = pytest.mark.requirement("X-42")

COUNT = "/word-count one two"
SHARED = {
    ".claude/skills/.gitattributes",
    ".claude/skills/.navigator/alpha-one.json",
    ".claude/skills/alpha-one/SKILL.md",
    "mine.txt",
    "skills.lock.json",
}


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    author = ("-c", "user.name=a", "-c", "user.email=a@localhost")
    return subprocess.run(["git", *author, *words], cwd=folder, capture_output=True, text=True)


def status(folder: Path) -> set[str]:
    """The files that git would add, each named, also those in new folders."""
    lines = git(folder, "status", "--porcelain", "--untracked-files=all").stdout.splitlines()
    return {line[3:] for line in lines}


@pytest.fixture
def source(tmp_path: Path) -> str:
    files = {"skills/alpha-one/SKILL.md": skill_text("alpha-one", "first")}
    return make_repo(tmp_path, files, name="repository").as_uri()


@pytest.fixture
def here(tmp_path: Path, source: str) -> Place:
    """A person's project after ordinary work."""
    root = tmp_path / "project"
    root.mkdir()
    git(root, "init", "-q")
    place = Place(root=root)
    place.write({"mine.txt": "mine\n"})
    place.said("init")
    place.said("skill", "install", source, "--skill", "alpha-one")
    place.said("ask", COUNT)
    place.said("route", "count the words")
    return place


@pytest.mark.wide
def test_git_sees_only_shared_files_and_the_persons_own_files(here: Place) -> None:
    assert (git(here.root, "add", "-A").returncode, status(here.root)) == (0, SHARED)


@pytest.mark.wide
def test_a_repository_that_a_run_leaves_stops_no_git_add(here: Place) -> None:
    """Git refuses to add a repository without a commit and ends with 128 (git-add(1)), unless the folder is ignored."""
    left = here.root / "mybox" / "workspace" / "left"
    left.mkdir(parents=True)
    git(left, "init", "-q")
    assert git(here.root, "add", "-A").returncode == 0
    (here.root / "mybox" / ".gitignore").unlink()
    assert git(here.root, "add", "-A").returncode == 128


@pytest.mark.wide
def test_a_stored_workflow_is_shared(here: Place) -> None:
    here.write({"mybox/workflows/release.md": "# release\n"})
    assert status(here.root) == SHARED | {"mybox/workflows/release.md"}


@pytest.mark.wide
def test_everything_works_after_git_clean(here: Place) -> None:
    git(here.root, "add", "-A")
    git(here.root, "commit", "-qm", "x")
    assert git(here.root, "clean", "-ffxdq").returncode == 0
    assert not (here.root / "mybox").exists()
    here.said("skill", "verify", "alpha-one")
    here.said("ask", COUNT)
    assert status(here.root) == set()


@pytest.mark.wide
def test_everything_works_in_a_fresh_clone(here: Place, source: str, tmp_path: Path) -> None:
    git(here.root, "add", "-A")
    git(here.root, "commit", "-qm", "x")
    git(tmp_path, "clone", "-q", str(here.root), "clone")
    clone = Place(root=tmp_path / "clone")
    clone.said("doctor")
    clone.said("skill", "verify", "alpha-one")
    clone.said("skill", "install", source, "--skill", "alpha-one")
    assert status(clone.root) == set()
    clone.said("skill", "uninstall", "alpha-one")
    assert not (clone.root / ".claude" / "skills" / "alpha-one").exists()


@pytest.mark.wide
@pytest.mark.requirement("X-38")
def test_a_persons_own_gitignore_files_stay_unchanged(here: Place, source: str) -> None:
    shutil.rmtree(here.root / ".claude")
    here.write({".claude/skills/.gitignore": "mine\n", ".gitignore": "mine, too\n"})
    here.said("skill", "install", source, "--skill", "alpha-one")
    assert (here.files()[".claude/skills/.gitignore"], here.files()[".gitignore"]) == (b"mine\n", b"mine, too\n")


@pytest.mark.wide
def test_a_clone_of_this_project_shows_what_was_installed_and_the_lock(source: str, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--depth", "1", SOURCE.as_uri(), "clone")
    clone = Place(root=tmp_path / "clone")
    clone.said("skill", "install", source, "--skill", "alpha-one")
    clone.said("ask", COUNT)
    assert status(clone.root) == SHARED - {"mine.txt"}


# A folder that is not a project


@pytest.fixture
def loose(tmp_path: Path) -> Place:
    """A folder with a file of data and a file of secrets."""
    root = tmp_path / "loose"
    root.mkdir()
    place = Place(root=root)
    place.write({"data.txt": "one two\n", ".env": "KEY=hunter2hunter2\n"})
    return place


@pytest.mark.wide
@pytest.mark.parametrize(
    "words",
    [
        ("ask", COUNT),
        ("ask", "/word-count @data.txt"),
        ("ask", "--session", "s", COUNT),
        ("ask", "--yes", "!echo hi > made"),
        ("ask", "count the words of @data.txt and then count the words of @data.txt"),
        ("route", "count the words"),
        ("skill", "list"),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_nothing_is_written_in_a_folder_that_is_not_a_project(loose: Place, words: tuple[str, ...]) -> None:
    before = loose.files()
    loose.run(*words)
    assert (loose.files(), [path for path in loose.root.rglob("*") if path.is_dir()]) == (before, [])


@pytest.mark.wide
def test_why_shows_a_run_outside_a_project_and_gc_works_there(loose: Place) -> None:
    run = loose.json("ask", "/word-count @data.txt")
    assert (run["report"]["data"]["words"], run["run"] in loose.said("why")) == (2, True)
    assert loose.said("gc", "--days", "0")


@pytest.mark.wide
@pytest.mark.requirement("SAF-1", "PRE-8")
def test_a_command_sees_the_folder_and_not_its_secrets(loose: Place) -> None:
    told = loose.run("ask", "--yes", f"!cat {loose.root}/data.txt {loose.root}/.env")
    assert ("one two" in told.out, "hunter2" in told.out + told.err) == (True, False)


@pytest.mark.wide
def test_a_long_output_is_kept_beside_the_persons_state(loose: Place) -> None:
    loose.write({"long.txt": "word " * 40_000})
    report = loose.json("ask", "--yes", f"!cat {loose.root}/long.txt")["report"]
    assert "/mybox/workspace/" in json.dumps(report) and set(loose.files()) == {"data.txt", ".env", "long.txt"}
