"""A person's sessions stay with a project's folder when it is mounted again, moved, cleaned or damaged, and go nowhere
else, except where the person says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from cli.support import Place, environment
from cli.terminals import terminal
from navigator_kernel.adapters.stores.project_state import look
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import user_state
from navigator_kernel.values.request import Session
from skill_repositories import git

pytestmark = [pytest.mark.requirement("X-43"), pytest.mark.sample(1)]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A git repository in which the person had one session, `first`."""
    root = tmp_path / "work" / "project"
    root.mkdir(parents=True)
    if not look(str(root)).born:
        pytest.skip("the file system of the tests has no birth times")
    git(root, "init", "-q")
    keep(root, "first")
    return Place(root=root)


def keep(root: Path, name: str) -> None:
    Project(root, agents=False).sessions.save(Session(id=name, turn=1))


def sessions(place: Place) -> list[str]:
    return sorted(one["id"] for one in place.json("session", "list")["sessions"])


def mark(root: Path) -> Path:
    return root / "mybox" / "state" / "project-id"


def everything(*folders: Path) -> dict[str, bytes | str]:
    """The content of all files and links; SQLite may change its own shared memory when it reads."""
    paths = (path for folder in folders for path in folder.rglob("*") if not path.name.endswith(("-shm", "-wal")))
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes() if path.is_file() else "folder"
        for path in paths
    }


def moved(place: Place) -> Place:
    return Place(root=place.root.rename(place.root.with_name("renamed")))


def copied(place: Place) -> Place:
    copy = place.root.with_name("copy")
    subprocess.run(["cp", "-a", place.root, copy], check=True)
    return Place(root=copy)


def test_a_moved_project_keeps_its_sessions_and_reading_changes_nothing(place: Place) -> None:
    new = moved(place)
    before = everything(user_state() / "projects", new.root)
    assert sessions(new) == ["first"]
    new.said("session", "show", "first")
    new.said("workflow", "list")
    new.said("project", "list")
    assert everything(user_state() / "projects", new.root) == before


@pytest.mark.wide
def test_the_first_write_in_a_moved_project_says_where_it_was(place: Place) -> None:
    new = moved(place)
    done = new.run("ask", "--session", "second", "word count of this: one two")
    assert f"the project was at '{place.root}' before; its state goes on" in done.err
    assert "before" not in new.run("ask", "--session", "second", "word count of this: one two").err
    assert sessions(new) == ["first", "second"]


def test_git_clean_loses_nothing(place: Place) -> None:
    git(place.root, "clean", "-fdxq")
    assert not (place.root / "mybox").exists()
    assert sessions(place) == ["first"]
    keep(place.root, "second")
    assert sessions(place) == ["first", "second"] and mark(place.root).is_file()


@pytest.mark.parametrize("content", ["", "f" * 32], ids=["empty", "another"])
def test_a_changed_mark_loses_nothing(place: Place, content: str) -> None:
    mark(place.root).write_text(content)
    assert sessions(place) == ["first"]
    keep(place.root, "second")
    assert sessions(place) == ["first", "second"] and mark(place.root).read_text() != content


@pytest.mark.parametrize("length", [0, 60])
def test_a_cut_record_loses_nothing_and_is_named(place: Place, length: int, caplog: pytest.LogCaptureFixture) -> None:
    record = project_state(place.root).folder / "project.json"
    os.truncate(record, length)
    assert [fault.partition(";")[0] for fault in project_state(place.root).faults()] == [f"'{record}' cannot be read"]
    assert sessions(place) == ["first"]
    assert place.json("project", "list")["projects"][0]["fault"] == f"'{record}' cannot be read"
    keep(place.root, "second")
    assert f"'{record}' cannot be read; it was made again" in caplog.text
    assert sessions(place) == ["first", "second"] and project_state(place.root).faults() == []


def test_a_copy_has_a_state_of_its_own_and_both_places_are_named_once(place: Place) -> None:
    copy = copied(place)
    assert sessions(copy) == []
    said = copy.run("ask", "--session", "second", "word count of this: one two").err
    assert f"'{copy.root}' seems to be a copy of '{place.root}', which is still there: navigator project adopt" in said
    assert "copy" not in copy.run("ask", "--session", "second", "word count of this: one two").err
    assert (sessions(copy), sessions(place)) == (["second"], ["first"])


def test_a_project_that_was_copied_and_removed_takes_its_state_over_when_told_so(place: Place) -> None:
    copy = copied(place)
    shutil.rmtree(place.root)
    assert "which is no longer there" in project_state(copy.root).faults()[0]
    assert copy.run("project", "adopt", str(place.root)).code == 9
    assert sessions(copy) == []
    copy.said("project", "adopt", str(place.root), "--yes")
    assert sessions(copy) == ["first"]
    keep(copy.root, "second")
    assert [(one["path"], one["sessions"]) for one in copy.json("project", "list")["projects"]] == [(str(copy.root), 2)]


def test_sessions_of_ones_own_are_replaced_only_on_request_and_can_be_taken_back(place: Place) -> None:
    copy = copied(place)
    keep(copy.root, "own")
    assert copy.run("project", "adopt", str(place.root), "--yes").code == 3
    copy.said("project", "adopt", str(place.root), "--replace", "--yes")
    assert (sessions(copy), sessions(place)) == (["first"], [])
    aside = next(one for one in copy.json("project", "list")["projects"] if one["aside"])
    assert (aside["path"], aside["sessions"]) == (str(copy.root), 1)
    copy.said("project", "adopt", aside["id"], "--replace", "--yes")
    assert sessions(copy) == ["own"]


@pytest.mark.parametrize("brings_the_mark", [False, True])
def test_a_fresh_clone_in_the_same_place_gets_nothing_and_the_old_state_can_be_adopted(
    place: Place, tmp_path: Path, *, brings_the_mark: bool
) -> None:
    old, text = project_state(place.root), mark(place.root).read_text()
    before = everything(old.folder)
    origin = tmp_path / "origin"
    git(tmp_path, "init", "-q", str(origin))
    shutil.rmtree(place.root)
    git(tmp_path, "clone", "-q", str(origin), str(place.root))
    if brings_the_mark:
        mark(place.root).parent.mkdir(parents=True)
        mark(place.root).write_text(text)
    assert sessions(place) == []
    keep(place.root, "new")
    assert sessions(place) == ["new"] and everything(old.folder) == before
    states = {one["current"]: one for one in place.json("project", "list")["projects"]}
    assert (states[True]["exists"], states[False]["exists"]) == (True, False)
    place.said("project", "adopt", states[False]["id"], "--replace", "--yes")
    assert sessions(place) == ["first"]


def test_a_clone_that_brings_the_mark_of_another_project_gets_nothing(place: Place, tmp_path: Path) -> None:
    clone = Place(root=tmp_path / "clone")
    mark(clone.root).parent.mkdir(parents=True)
    mark(clone.root).write_bytes(mark(place.root).read_bytes())
    assert sessions(clone) == []
    keep(clone.root, "own")
    assert (sessions(clone), sessions(place)) == (["own"], ["first"])
    assert mark(clone.root).read_bytes() != mark(place.root).read_bytes()


def test_a_person_at_a_terminal_is_asked_once_about_a_copy(place: Place) -> None:
    copy = copied(place)
    with terminal(copy, "ask", "--session", "second", "word count of this: one two", columns=300) as shown:
        asked = shown.wait_for("[y/N]: ")
        assert str(copy.root) in asked and str(place.root) in asked and "is still there" in asked
        shown.type("y\n")
        assert "copy" not in shown.rest()
    assert (sessions(copy), sessions(place)) == (["first", "second"], [])


@pytest.mark.wide
def test_a_no_at_a_terminal_makes_a_state_of_its_own(place: Place) -> None:
    copy = copied(place)
    with terminal(copy, "ask", "--session", "second", "word count of this: one two", columns=300) as shown:
        shown.wait_for("[y/N]: ")
        shown.type("n\n")
        shown.rest()
    assert (sessions(copy), sessions(place)) == (["second"], ["first"])
    assert project_state(copy.root).offered == []


def test_forget_deletes_a_state_after_a_yes(place: Place) -> None:
    new = moved(place)
    keep(new.root, "second")
    asked = new.run("project", "forget", str(new.root))
    assert asked.code == 9 and "2 sessions" in asked.err and sessions(new) == ["first", "second"]
    new.said("project", "forget", str(new.root), "--yes")
    assert [path.name for path in (user_state() / "projects").iterdir()] == ["claim.lock"]
    assert sessions(new) == []


def test_a_state_that_an_earlier_version_set_aside_is_listed_and_can_be_taken_back(place: Place) -> None:
    folder = project_state(place.root).folder
    folder.rename(folder.with_name(f"{folder.name}.aside-0123abcd"))
    assert sessions(place) == []
    states = place.json("project", "list")["projects"]
    assert [(one["id"], one["aside"], one["sessions"]) for one in states] == [("0123abcd", True, 1)]
    place.said("project", "adopt", "0123abcd", "--yes")
    assert sessions(place) == ["first"]


@pytest.mark.parametrize("command", ["adopt", "forget"])
def test_a_state_that_is_not_there_is_not_found(place: Place, command: str) -> None:
    assert place.run("project", command, "nowhere", "--yes").code == 4


@pytest.mark.wide
def test_two_states_of_one_place_are_told_apart_by_their_ids(place: Place, tmp_path: Path) -> None:
    for name in ("second", "third"):
        shutil.rmtree(place.root)
        place.root.mkdir()
        git(place.root, "init", "-q")
        keep(place.root, name)
    elsewhere = Place(root=tmp_path)
    assert elsewhere.run("project", "forget", str(place.root), "--yes").code == 2
    assert len(place.json("project", "list")["projects"]) == 3


@pytest.mark.parametrize("inside", ["", "/mnt/project"], ids=["the same path", "another path"])
def test_a_container_with_the_persons_home_has_the_same_state(place: Place, home: Path, inside: str) -> None:
    folder = inside or str(place.root)
    tmpfs = ("--tmpfs", "/mnt") if inside else ()
    within = (
        "bwrap",
        "--ro-bind",
        "/",
        "/",
        "--bind",
        home,
        home,
        *tmpfs,
        "--bind",
        place.root,
        folder,
        "--dev",
        "/dev",
    )
    if not shutil.which("bwrap"):
        pytest.skip("it takes bubblewrap to make another root here")
    words = (sys.executable, "-m", "navigator_kernel.cli.main", "session")
    argv = [*map(str, within), "--chdir", folder, "--", *words]
    shown = subprocess.run([*argv, "list"], env=environment(), capture_output=True, text=True, check=False)
    if "Operation not permitted" in shown.stderr or "Permission denied" in shown.stderr:
        pytest.skip("no namespace can be made here")
    assert "first" in shown.stdout, shown.stderr
    keep(place.root, "second")
    subprocess.run([*argv, "delete", "first"], env=environment(), capture_output=True, text=True, check=True)
    assert sessions(place) == ["second"]
    assert len(place.json("project", "list")["projects"]) == 1


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """A file with an ext4 file system."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("losetup", "mount", "mkfs.ext4"))):
        pytest.skip("it takes root, losetup and mkfs.ext4 to mount a file system")
    file = tmp_path / "image"
    file.touch()
    os.truncate(file, 8 << 20)
    subprocess.run(["mkfs.ext4", "-q", "-F", file], check=True)
    return file


def mounted(held: ExitStack, image: Path, folder: Path) -> None:
    """Mounts the image through a loop device that nothing else has."""
    got = subprocess.run(["losetup", "--show", "-f", image], capture_output=True, text=True, check=False)
    if got.returncode:
        pytest.skip(f"no loop device can be made here: {got.stderr.strip()}")
    device = got.stdout.strip()
    held.callback(subprocess.call, ["losetup", "-d", device])
    if subprocess.run(["mount", device, folder], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    held.callback(subprocess.call, ["umount", str(folder)])


@pytest.mark.ci
def test_a_file_system_with_another_device_number_has_the_same_state(image: Path, tmp_path: Path) -> None:
    folder, other = tmp_path / "disk", tmp_path / "other"
    place, seen = Place(root=folder / "project"), []
    folder.mkdir()
    with ExitStack() as devices:
        for name in ("first", "second"):
            with ExitStack() as held:
                mounted(held, image, folder)
                (place.root / ".git").mkdir(parents=True, exist_ok=True)
                seen.append(look(str(place.root)))
                assert sessions(place) == (["first"] if name == "second" else [])
                keep(place.root, name)
                assert sessions(place) == sorted({"first", name})
            if name == "first":  # takes the first device, so that the next mount gets another one
                other.touch()
                os.truncate(other, 1 << 20)
                got = subprocess.run(["losetup", "--show", "-f", other], capture_output=True, text=True, check=True)
                devices.callback(subprocess.call, ["losetup", "-d", got.stdout.strip()])
    assert seen[0].device != seen[1].device and seen[0].born == seen[1].born != 0
    assert len(place.json("project", "list", cwd=tmp_path)["projects"]) == 1
