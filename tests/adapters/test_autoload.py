"""A workspace holds nothing that a person's own programs run or obey as soon as somebody enters a folder (X-43)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.autoload import Disarmed, disarm, is_autoloaded, refuse_autoloaded
from navigator_kernel.adapters.files.tree import DEEPEST
from navigator_kernel.errors import Refused

pytestmark = pytest.mark.requirement("X-43")

RUN_UNASKED = [
    ".git", ".GIT", ".git ", ".git...", "．git", ".gi\u200bt", ".git::$INDEX_ALLOCATION", "git~1", ".hg", ".jj", ".svn",
    ".envrc", ".env", ".direnv", ".mise.toml", "mise.local.toml", ".tool-versions", ".python-version", ".nvmrc",
    "rust-toolchain.toml", ".vscode", ".idea", ".exrc", ".dir-locals.el", "x.code-workspace", ".claude", ".mcp.json",
    "CLAUDE.md", "AGENTS.md", "sitecustomize.py", "Paths.PTH", ".Rprofile", ".pdbrc", ".npmrc", ".directory", ".husky",
]  # fmt: skip
PLAIN = [
    "readme.md", ".gitignore", ".gitattributes", ".editorconfig", "git.md", "Makefile", "package.json", "hooks", "HEAD",
    "SKILL.md", "activate", "env.example", ".git.disarmed", "main.py", ".github", "claude.txt",
]  # fmt: skip
REPOSITORY = ("HEAD", "objects/x", "refs/x", "config")


def fill(folder: Path, *names: str, text: bytes = b"x") -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text)


def git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    return subprocess.run(["git", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", RUN_UNASKED)
def test_a_name_that_a_program_reads_unasked_is_known_in_each_form(name: str) -> None:
    assert is_autoloaded(name)


@pytest.mark.parametrize("name", PLAIN)
def test_other_names_are_left_alone(name: str) -> None:
    assert not is_autoloaded(name)


@pytest.mark.parametrize("name", RUN_UNASKED)
def test_each_is_renamed_at_any_depth_and_only_once(tmp_path: Path, name: str) -> None:
    fill(tmp_path, f"{name}/inner", f"a/b/{name}", "a/readme.md")
    assert len(disarm(tmp_path)) == 2
    assert disarm(tmp_path) == ()
    assert not any(is_autoloaded(path.name) for path in tmp_path.rglob("*"))
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 3  # nothing is lost


@pytest.mark.parametrize("path", ["", "pkg/", "pkg/.git/", "pkg/.git/modules/m/", "pkg/Sub.git/"])
def test_a_planted_repository_runs_nothing_when_git_is_called_in_it(tmp_path: Path, path: str) -> None:
    fill(tmp_path, f"{path}objects/x", f"{path}refs/x")
    (tmp_path / path / "HEAD").write_text("ref: refs/heads/main\n")
    program = (
        f'[core]\n\trepositoryformatversion = 0\n\tworktree = {tmp_path}\n\tfsmonitor = "touch {tmp_path}/pwned"\n'
    )
    (tmp_path / path / "config").write_text(program)
    inside = tmp_path / path
    assert git(inside, "rev-parse", "--git-dir").returncode == 0
    disarmed = disarm(tmp_path)
    assert disarmed and all((tmp_path / one.after).exists() for one in disarmed)
    for folder, _, _ in os.walk(tmp_path):
        assert git(Path(folder), "status").returncode != 0
    assert not (tmp_path / "pwned").exists()


def test_a_work_tree_of_another_repository_is_cut_off(tmp_path: Path) -> None:
    fill(tmp_path, "tree/.git", text=b"gitdir: ../admin\n")
    fill(tmp_path, "admin/HEAD", "admin/commondir")
    assert [one.before for one in disarm(tmp_path)] == ["admin/HEAD", "tree/.git"]


def test_what_lies_in_a_renamed_folder_is_named_by_its_path_now(tmp_path: Path) -> None:
    fill(tmp_path, *(f"a/.git/{name}" for name in REPOSITORY))
    assert disarm(tmp_path) == (
        Disarmed("a/.git", "a/.git.disarmed"),
        Disarmed("a/.git/HEAD", "a/.git.disarmed/HEAD.disarmed"),
    )


def test_a_link_is_renamed_and_its_target_is_not(tmp_path: Path) -> None:
    fill(tmp_path, "outside/.git/HEAD", "box/x")
    (tmp_path / "box/.git").symlink_to(tmp_path / "outside/.git")
    assert disarm(tmp_path / "box") == (Disarmed(".git", ".git.disarmed"),)
    assert (tmp_path / "outside/.git/HEAD").exists()


def test_a_closed_folder_and_a_taken_name_hide_nothing(tmp_path: Path) -> None:
    fill(tmp_path, "a/.envrc", "a/.envrc.disarmed")
    (tmp_path / "a").chmod(0)
    assert disarm(tmp_path) == (Disarmed("a/.envrc", "a/.envrc.disarmed1"),)


def test_a_folder_that_is_too_deep_to_look_at_is_removed_and_named(tmp_path: Path) -> None:
    at = os.open(tmp_path, os.O_RDONLY)
    for _ in range(DEEPEST + 20):
        os.mkdir("d", dir_fd=at)
        inner = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = inner
    os.mkdir(".git", dir_fd=at)
    os.close(at)
    fill(tmp_path, "kept.txt")
    (gone,) = disarm(tmp_path)
    assert gone.after == "" and gone.before.count("d/") == DEEPEST
    assert disarm(tmp_path) == () and (tmp_path / "kept.txt").exists()


def test_a_trained_model_keeps_its_name_unless_python_would_read_it(tmp_path: Path) -> None:
    fill(tmp_path, "model.pth", "lib/site-packages/model.pth", text=b"PK\3\4\0\0")
    fill(tmp_path, "paths.pth", text=b"import os\n")
    assert [one.before for one in disarm(tmp_path)] == ["lib/site-packages/model.pth", "paths.pth"]


def test_an_environments_scripts_for_shells_are_renamed_and_it_still_works(tmp_path: Path) -> None:
    fill(tmp_path, "venv/bin/activate", "venv/bin/activate.fish", "venv/bin/python", "venv/pyvenv.cfg")
    assert [one.before for one in disarm(tmp_path)] == ["venv/bin/activate", "venv/bin/activate.fish"]


@pytest.mark.parametrize("last", REPOSITORY)
def test_no_order_of_writing_makes_a_repository(tmp_path: Path, last: str) -> None:
    fill(tmp_path, *(f"a/{name}" for name in REPOSITORY if name != last))
    if last == "config":
        with pytest.raises(Refused):
            refuse_autoloaded(tmp_path, ("a", "config"))
        return
    with pytest.raises(Refused, match="git repository"):
        refuse_autoloaded(tmp_path, ("a", *last.split("/")))
