"""The person's state of a project is kept outside the project and follows its identity."""

from __future__ import annotations

import json
import os
import shutil
import stat
import threading
import time
from hashlib import blake2b
from pathlib import Path

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.files.writer import PRIVATE
from navigator_kernel.adapters.stores import project_state
from navigator_kernel.adapters.stores.project_state import PrivateWriter, ProjectState, ProjectWriter
from navigator_kernel.errors import Busy

pytestmark = pytest.mark.requirement("X-43")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "home" / "state" / "navigator"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


def state(base: Path, root: Path) -> ProjectState:
    return ProjectState(base, root, lambda: "2026-01-01T00:00:00.000Z")


def mark(root: Path) -> Path:
    return root / "mybox" / "state" / "project-id"


def test_looking_writes_nothing(base: Path, root: Path) -> None:
    state(base, root)
    assert not base.exists() and [path.name for path in root.iterdir()] == [".git"]


@pytest.mark.requirement("X-42")
def test_a_folder_that_is_not_a_project_gets_no_id_and_keeps_its_state_when_it_becomes_one(
    base: Path, root: Path
) -> None:
    (root / ".git").rmdir()
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    assert list(root.iterdir()) == []
    (root / "mybox").mkdir()
    again = state(base, root)
    again.claim()
    assert (again.folder / "kept").read_text() == "x"


def test_a_claim_makes_private_folders_and_the_same_id_twice(base: Path, root: Path) -> None:
    held = state(base, root)
    held.claim()
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (base, base / "projects", held.folder)}
    assert modes == {PRIVATE}
    assert mark(root).read_text().strip() in (held.folder / "project.json").read_text()


def test_a_folder_of_the_home_that_others_may_enter_is_closed(base: Path, root: Path) -> None:
    base.mkdir(parents=True, mode=0o755)
    state(base, root).claim()
    assert stat.S_IMODE(base.stat().st_mode) == PRIVATE


def test_the_next_process_finds_the_same_folder(base: Path, root: Path) -> None:
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    second = state(base, root)
    second.claim()
    assert (second.folder / "kept").read_text() == "x"


def test_a_copy_of_a_project_with_its_id_has_a_state_of_its_own(base: Path, root: Path, tmp_path: Path) -> None:
    first = state(base, root)
    first.claim()
    copy = tmp_path / "copy"
    shutil.copytree(root, copy)
    second = state(base, copy)
    second.claim()
    assert second.folder != first.folder
    assert mark(copy).read_text() != mark(root).read_text()


@pytest.fixture
def no_births(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without birth times."""
    monkeypatch.setattr(project_state, "_born", lambda path: 0)


def make_v1(base: Path, root: Path, *, device: int = 0, mark_text: str = "a" * 32) -> Path:
    """A state as the former version made it, on a device `device` numbers away."""
    seen, real = root.lstat(), os.path.realpath(root)
    key = f"{seen.st_dev + device}:{seen.st_ino}:".encode() + os.fsencode(real)
    folder = base / "projects" / blake2b(key, digest_size=16).hexdigest()
    folder.mkdir(parents=True)
    body = {"v": 1, "id": "a" * 32, "path": real, "device": seen.st_dev + device, "inode": seen.st_ino}
    (folder / "project.json").write_text(json.dumps({**body, "created": "2025-01-01T00:00:00.000Z"}))
    mark(root).parent.mkdir(parents=True)
    mark(root).write_text(f"{mark_text}\n")
    return folder


def brings(root: Path, text: str | None) -> None:
    """Another folder in the place of `root`, with a mark."""
    shutil.rmtree(root)
    (root / ".git").mkdir(parents=True)
    if text is not None:
        mark(root).parent.mkdir(parents=True)
        mark(root).write_text(text)


@pytest.mark.parametrize("brought", [None, "0" * 32, "", "the first one's"])
def test_another_project_in_the_same_place_does_not_get_the_state_of_the_first(
    base: Path, root: Path, brought: str | None
) -> None:
    """The inode can be the same again: the birth time is another one."""
    first = state(base, root)
    first.claim()
    if not first.place.born:
        pytest.skip("the file system of the tests has no birth times")
    (first.folder / "grants").write_text("all")
    brings(root, mark(root).read_text() if brought == "the first one's" else brought)
    second = state(base, root)
    second.claim()
    assert not (second.folder / "grants").exists() and (first.folder / "grants").read_text() == "all"


@pytest.mark.usefixtures("no_births")
@pytest.mark.parametrize("brought", [None, "0" * 32, ""], ids=["no id", "another id", "an empty id"])
def test_without_birth_times_another_project_does_not_get_the_state_of_the_first(
    base: Path, root: Path, brought: str | None
) -> None:
    """The folder stays, as if the inode were the same again: the mark decides."""
    first = state(base, root)
    first.claim()
    (first.folder / "grants").write_text("all")
    mark(root).unlink() if brought is None else mark(root).write_text(brought)
    second = state(base, root)
    assert [record.folder for record in second.offered] == [first.folder]
    second.claim()
    again = state(base, root)
    again.claim()
    assert again.folder == second.folder and not (second.folder / "grants").exists()
    assert (first.folder / "grants").read_text() == "all"


@pytest.mark.parametrize("births", [True, False])
def test_a_state_is_found_when_the_device_has_another_number(
    base: Path, root: Path, monkeypatch: pytest.MonkeyPatch, *, births: bool
) -> None:
    if not births:
        monkeypatch.setattr(project_state, "_born", lambda path: 0)
    first = state(base, root)
    first.claim()
    here = replace(first.place, device=first.place.device + 1)
    monkeypatch.setattr(project_state, "look", lambda _: here)
    second = state(base, root)
    second.claim()
    assert second.folder == first.folder
    assert [path.name for path in (base / "projects").iterdir() if path.is_dir()] == [first.folder.name]


@pytest.mark.parametrize("device", [0, 7])
def test_the_former_versions_state_is_found_on_any_device(base: Path, root: Path, device: int) -> None:
    folder = make_v1(base, root, device=device)
    found = state(base, root)
    assert found.folder == folder
    found.claim()
    assert json.loads((folder / "project.json").read_text())["v"] == 2
    again = state(base, root)
    assert again.folder == folder and again.record is not None and again.record.place == again.place


def test_the_former_versions_state_without_an_equal_mark_is_only_offered(base: Path, root: Path) -> None:
    folder = make_v1(base, root, mark_text="b" * 32)
    found = state(base, root)
    assert found.folder != folder and [record.folder for record in found.offered] == [folder]


def test_a_snapshot_of_a_folder_that_is_still_there_is_a_copy(
    base: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = state(base, root)
    first.claim()
    snapshot = tmp_path / "snapshot"
    snapshot.mkdir()
    here, real = replace(first.place, path=str(snapshot), device=first.place.device + 1), project_state.look
    monkeypatch.setattr(project_state, "look", lambda at: here if at == str(snapshot) else real(at))
    second = state(base, snapshot)
    assert second.record is None and [record.folder for record in second.offered] == [first.folder]


def test_a_folder_that_is_mounted_twice_has_one_state(
    base: Path, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = state(base, root)
    first.claim()
    twice = tmp_path / "twice"
    twice.mkdir()
    here, real = replace(first.place, path=str(twice)), project_state.look
    monkeypatch.setattr(project_state, "look", lambda at: here if at == str(twice) else real(at))
    second = state(base, twice)
    second.claim()
    assert second.folder == first.folder == state(base, root).folder


@pytest.mark.parametrize("name", ["n" * 250, os.fsdecode(b"caf\xe9")], ids=["long", "not UTF-8"])
def test_any_path_is_recorded(base: Path, tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    for _ in range(6):
        root /= name
    (root / ".git").mkdir(parents=True)
    first = state(base, root)
    first.claim()
    again = state(base, root)
    assert again.record is not None and again.record.place == first.place


def test_an_id_that_a_clone_brings_is_replaced(base: Path, root: Path) -> None:
    mark(root).parent.mkdir(parents=True)
    mark(root).write_text("f" * 32)
    state(base, root).claim()
    assert mark(root).read_text().strip() != "f" * 32


@pytest.mark.requirement("X-42")
def test_git_ignores_the_id(base: Path, root: Path) -> None:
    state(base, root).claim()
    assert "\n*\n!/workflows/\n" in (root / "mybox" / ".gitignore").read_text()


@pytest.mark.requirement("X-43")
def test_the_first_file_of_a_workspace_comes_with_files_that_keep_pytest_and_go_out(root: Path) -> None:
    box = root / "mybox"
    writer = ProjectWriter([box], root)
    writer.make_folder(box / "logs")
    assert {path.name for path in box.iterdir()} == {".gitignore", "logs"}
    (box / "go.mod").write_text("mine\n")
    writer.make_folder(box / "workspace" / "run-1")
    assert "collect_ignore_glob" in (box / "conftest.py").read_text() and (box / "go.mod").read_text() == "mine\n"


@pytest.mark.requirement("X-42")
def test_an_existing_gitignore_of_mybox_is_not_changed(base: Path, root: Path) -> None:
    (root / "mybox").mkdir()
    (root / "mybox" / ".gitignore").write_text("mine\n")
    state(base, root).claim()
    assert (root / "mybox" / ".gitignore").read_text() == "mine\n"


def test_a_project_that_cannot_be_written_to_keeps_its_state(base: Path, root: Path) -> None:
    (root / "mybox").write_text("a file where the folder should be")
    first = state(base, root)
    first.claim()
    (first.folder / "kept").write_text("x")
    again = state(base, root)
    again.claim()
    assert (again.folder / "kept").read_text() == "x"


def test_a_link_in_the_project_leads_the_id_nowhere_else(base: Path, root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "mybox").symlink_to(outside)
    state(base, root).claim()
    assert list(outside.iterdir()) == []


def test_twenty_claims_at_once_make_one_state(base: Path, root: Path) -> None:
    seen: list[str] = []

    def claim() -> None:
        held = state(base, root)
        held.claim()
        seen.append((held.folder / "project.json").read_text())

    threads = [threading.Thread(target=claim) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(seen) == 20 and len(set(seen)) == 1
    assert not [path for path in (base / "projects").iterdir() if ".aside-" in path.name]


def test_the_first_write_claims_the_state(base: Path, root: Path) -> None:
    held = state(base, root)
    PrivateWriter(held.folder, held.claim).write(held.folder / "x" / "y", b"data")
    assert mark(root).exists()
    assert stat.S_IMODE((held.folder / "x").stat().st_mode) == PRIVATE
    assert os.fspath(held.folder).startswith(os.fspath(base))


def test_a_thread_that_writes_while_another_one_claims_waits_for_it_and_claims_again_if_that_failed(
    base: Path, root: Path
) -> None:
    held, begun, claims = state(base, root), threading.Event(), list[int]()

    def claim() -> None:
        claims.append(len(claims))
        begun.set()
        time.sleep(0.2)
        if len(claims) == 1:
            raise Busy("not yet", hint="run the command again")
        held.claim()

    def first() -> None:
        with pytest.raises(Busy):
            writer.append(held.folder / "lines", b"first\n")

    writer = PrivateWriter(held.folder, claim)
    threads = [threading.Thread(target=first)]
    threads[0].start()
    begun.wait()
    threads += [threading.Thread(target=writer.append, args=(held.folder / "lines", b"line\n")) for _ in range(4)]
    for thread in threads[1:]:
        thread.start()
    for thread in threads:
        thread.join()
    assert (claims, (held.folder / "lines").read_text()) == ([0, 1], "line\n" * 4)
    assert state(base, root).record is not None


def test_a_claim_of_one_that_only_looks_leaves_the_project_alone_until_one_that_works(base: Path, root: Path) -> None:
    looking = state(base, root)
    looking.claim(looking=True)
    assert (list(root.iterdir()), looking.folder.is_dir()) == ([root / ".git"], True)
    looking.claim()
    written = mark(root).read_text().strip()
    record = state(base, root).record
    assert record is not None and (record.id, record.folder) == (written, looking.folder)
    state(base, root).claim(looking=True)
    assert mark(root).read_text().strip() == written
