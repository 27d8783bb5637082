"""A project counts only if the person owns it, or has said that it may be used anyway."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import mkdtemp

import pytest

from navigator_kernel.config.project_root import foreign, nearest

NOBODY = 65534
SOURCE = Path(__file__).parents[2]
pytestmark = [pytest.mark.requirement("X-43"), pytest.mark.sample(1)]
as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file to another user")
as_another = pytest.mark.skipif(os.getuid() == 0, reason="for root a folder of root's is its own")
OTHERS = "/var/tmp"  # owned by root, and writable for all


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder like /tmp that everybody may write to; the tests' own folder can be closed to others."""
    folder = Path(mkdtemp(prefix="shared-", dir="/var/tmp"))
    folder.chmod(0o1777)
    yield folder
    shutil.rmtree(folder)


def navigator(root: Path, *words: str, within: Sequence[str] = ()) -> tuple[int, str]:
    """Runs the command line as a person types it in `root`; `within` is the program that starts it."""
    code = f"import sys; sys.path.insert(0, {str(SOURCE / 'kernel')!r}); from navigator_kernel.cli.main import main; main()"
    env = {
        name: os.environ[name] for name in ("PATH", "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME") if name in os.environ
    }
    done = subprocess.run(
        [*within, sys.executable, "-c", code, *words], cwd=root, env=env, capture_output=True, text=True, timeout=60
    )
    return done.returncode, done.stdout + done.stderr


@as_root
def test_a_mark_that_another_user_left_above_makes_no_project(shared: Path) -> None:
    (shared / ".git").mkdir()
    os.chown(shared / ".git", NOBODY, NOBODY)
    mine = shared / "mine"
    mine.mkdir()
    assert nearest(str(mine)) == str(mine)


@as_root
@pytest.mark.parametrize("name", ["navigator.toml", ".mcp.json", "mybox", "agents", ".claude", "docs", "bin"])
def test_a_file_of_another_user_makes_the_project_foreign(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir() if "." not in name[1:] else (tmp_path / name).write_text("")
    assert foreign(str(tmp_path)) == ""
    os.chown(tmp_path / name, NOBODY, NOBODY)
    assert foreign(str(tmp_path)) == str(tmp_path / name)


@as_root
def test_a_link_to_a_folder_of_another_user_makes_the_project_foreign(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    os.chown(outside, NOBODY, NOBODY)
    root = tmp_path / "root"
    root.mkdir()
    (root / "agents").symlink_to(outside)
    assert foreign(str(root)) == str(root / "agents")


@as_root
@pytest.mark.parametrize("words", [("skill", "list"), ("ask", "hello"), ("config", "list"), ("route", "hello")])
def test_commands_in_a_project_of_another_user_are_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    root = tmp_path / "theirs"
    (root / ".git").mkdir(parents=True)
    os.chown(root, NOBODY, NOBODY)
    code, said = navigator(root, *words)
    assert code == 3 and "navigator project trust" in said
    assert not (root / "mybox").exists()


@as_root
def test_a_recorded_yes_lets_the_project_be_used_until_it_is_taken_back(tmp_path: Path) -> None:
    root = tmp_path / "theirs"
    (root / ".git" / "x").mkdir(parents=True)
    (root / "src").mkdir()
    os.chown(root, NOBODY, NOBODY)
    assert navigator(root, "project", "trust", ".")[0] == 0
    code, said = navigator(root / "src", "project", "show", "--json")
    assert (code, json.loads(said)["root"]) == (0, str(root))
    assert navigator(root, "project", "distrust", ".")[0] == 0
    assert navigator(root, "skill", "list")[0] == 3


@as_root
def test_a_user_may_use_their_own_project_through_sudo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.chown(tmp_path, NOBODY, NOBODY)
    assert foreign(str(tmp_path)) == str(tmp_path)
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    assert foreign(str(tmp_path)) == ""


COMMANDS = [("skill", "list"), ("ask", "hello"), ("config", "list"), ("route", "hello")]


@as_another
@pytest.mark.parametrize("words", COMMANDS)
def test_commands_in_a_folder_of_root_that_all_may_write_to_are_refused(words: tuple[str, ...]) -> None:
    code, said = navigator(Path(OTHERS), *words)
    assert code == 3 and "navigator project trust" in said
    assert not Path(OTHERS, "mybox").exists()


@as_another
@pytest.mark.parametrize("name", ["mybox", "agents", ".claude", "docs", "bin"])
def test_commands_in_a_clone_that_links_to_a_world_writable_folder_are_refused(tmp_path: Path, name: str) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / name).symlink_to(OTHERS)
    code, said = navigator(clone, "skill", "list")
    assert code == 3 and str(clone / name) in said
    assert not Path(OTHERS, "project-id").exists()


@as_another
def test_a_project_marker_that_links_to_a_world_writable_folder_is_ignored(shared: Path) -> None:
    (shared / ".git").symlink_to(OTHERS)
    mine = shared / "mine"
    mine.mkdir()
    code, said = navigator(mine, "project", "show", "--json")
    assert (code, json.loads(said)["root"]) == (0, str(mine))


@as_another
def test_a_yes_to_a_clone_that_links_elsewhere_is_recorded_and_taken_back(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / ".git").mkdir(parents=True)
    (clone / "docs").symlink_to(OTHERS)
    assert navigator(clone, "project", "trust", ".")[0] == 0
    assert navigator(clone, "skill", "list")[0] == 0
    assert navigator(clone, "project", "distrust", ".")[0] == 0
    assert navigator(clone, "skill", "list")[0] == 3


@as_another
def test_commands_in_a_folder_of_a_user_who_is_not_even_known_are_refused() -> None:
    """In a separate namespace, as in a container, even root's files belong to another user."""
    if not shutil.which("bwrap"):
        pytest.skip("it takes bubblewrap to make a namespace here")
    code, said = navigator(Path("/usr"), "skill", "list", within=("bwrap", "--dev-bind", "/", "/", "--"))
    if "Operation not permitted" in said:
        pytest.skip("no namespace can be made here")
    assert code == 3 and "'/usr' belongs to another user" in said
