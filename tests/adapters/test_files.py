from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import MANY, FolderWriter, read_bounded, seal_file
from navigator_kernel.errors import KernelError, Refused


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def writer(root: Path) -> FolderWriter:
    return FolderWriter([root])


def test_a_file_is_written_with_its_mode_whatever_the_umask(writer: FolderWriter, root: Path) -> None:
    before = os.umask(0o077)
    try:
        writer.write(root / "a" / "b", b"text", mode=0o755)
    finally:
        os.umask(before)
    assert (root / "a" / "b").read_bytes() == b"text"
    assert (root / "a" / "b").stat().st_mode & 0o777 == 0o755


def test_writing_replaces_the_whole_file_and_leaves_no_other(writer: FolderWriter, root: Path) -> None:
    writer.write(root / "a", b"first, and longer")
    writer.write(root / "a", b"second")
    assert (root / "a").read_bytes() == b"second"
    assert os.listdir(root) == ["a"]


def test_a_write_that_fails_leaves_the_old_file(
    writer: FolderWriter, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.write(root / "a", b"old")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(KernelError, match="No space left") as caught:
        writer.write(root / "a", b"new")
    assert caught.value.hint
    assert (root / "a").read_bytes() == b"old"
    assert os.listdir(root) == ["a"]


def test_writing_over_a_link_replaces_the_link(writer: FolderWriter, root: Path, tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("untouched")
    (root / "a").symlink_to(tmp_path / "victim")
    writer.write(root / "a", b"new")
    assert (tmp_path / "victim").read_text() == "untouched"
    assert not (root / "a").is_symlink()


def test_appending_adds_to_the_end_and_never_through_a_link(writer: FolderWriter, root: Path, tmp_path: Path) -> None:
    writer.append(root / "logs" / "a", b"one\n")
    writer.append(root / "logs" / "a", b"two\n")
    assert (root / "logs" / "a").read_bytes() == b"one\ntwo\n"
    (tmp_path / "victim").write_text("untouched")
    (root / "link").symlink_to(tmp_path / "victim")
    with pytest.raises(KernelError):
        writer.append(root / "link", b"x")
    assert (tmp_path / "victim").read_text() == "untouched"


def test_a_path_outside_the_roots_is_refused(writer: FolderWriter, root: Path, tmp_path: Path) -> None:
    for path in (tmp_path / "x", tmp_path / "rooted" / "x", Path("/etc/x"), root / ".." / "x", root / "a\x00b"):
        with pytest.raises(Refused):
            writer.write(path, b"")
    with pytest.raises(Refused):
        writer.move(root / "a", tmp_path / "a")
    with pytest.raises(Refused):
        writer.remove(tmp_path)
    assert sorted(os.listdir(tmp_path)) == ["root"]


@pytest.mark.parametrize("operation", ["write", "append", "make_folder", "remove"])
def test_a_link_inside_a_root_that_leads_outside_is_refused(
    writer: FolderWriter, root: Path, tmp_path: Path, operation: str
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("untouched")
    (root / "link").symlink_to(tmp_path / "outside")
    given = [b""] if operation in {"write", "append"} else []
    with pytest.raises(Refused, match="leads outside"):
        getattr(writer, operation)(root / "link" / "x", *given)
    assert (tmp_path / "outside" / "x").read_text() == "untouched"


def test_a_link_that_stays_inside_the_root_is_followed(writer: FolderWriter, root: Path) -> None:
    (root / "real").mkdir()
    (root / "link").symlink_to("real")
    writer.write(root / "link" / "x", b"1")
    assert (root / "real" / "x").read_bytes() == b"1"


def test_a_root_may_be_a_single_file_that_is_not_there_yet(tmp_path: Path) -> None:
    writer = FolderWriter([tmp_path / "docs" / "one.md"])
    writer.write(tmp_path / "docs" / "one.md", b"1")
    with pytest.raises(Refused):
        writer.write(tmp_path / "docs" / "two.md", b"2")


def test_a_root_reached_through_a_link_is_the_root(tmp_path: Path, root: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    FolderWriter([tmp_path / "alias"]).write(tmp_path / "alias" / "x", b"1")
    assert (root / "x").read_bytes() == b"1"


def test_a_read_only_folder_its_contents_and_its_parent_cannot_be_removed(root: Path) -> None:
    (root / "kept").mkdir()
    writer = FolderWriter([root], read_only=[root / "kept"])
    writer.write(root / "a", b"")
    for path in (root / "kept", root / "kept" / "a", root):
        with pytest.raises(Refused, match="read-only"):
            writer.remove(path)
    with pytest.raises(Refused, match="read-only"):
        writer.write(root / "kept" / "a", b"")


def test_moving_needs_a_free_target(writer: FolderWriter, root: Path) -> None:
    writer.write(root / "a", b"a")
    writer.write(root / "b", b"b")
    with pytest.raises(Refused, match="already exists"):
        writer.move(root / "a", root / "b")
    writer.move(root / "a", root / "c")
    assert sorted(os.listdir(root)) == ["b", "c"]


def test_removing_takes_a_whole_folder_but_never_what_a_link_points_to(
    writer: FolderWriter, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "x").write_text("untouched")
    writer.write(root / "a" / "b" / "c", b"")
    (root / "a" / "link").symlink_to(tmp_path / "outside")
    (root / "link").symlink_to(tmp_path / "outside")
    writer.remove(root / "a")
    writer.remove(root / "link")
    writer.remove(root / "gone")
    assert os.listdir(root) == []
    assert (tmp_path / "outside" / "x").read_text() == "untouched"


def test_a_system_refusal_becomes_one_error_with_a_hint(writer: FolderWriter, root: Path) -> None:
    (root / "file").write_text("")
    with pytest.raises(KernelError, match="cannot write"):
        writer.write(root / "file" / "below", b"")


def test_reading_is_bounded_and_takes_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")
    assert read_bounded(tmp_path / "a", 5) == b"12345"
    with pytest.raises(Refused, match="over 4 bytes"):
        read_bounded(tmp_path / "a", 4)
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "."):
        with pytest.raises(Refused):
            read_bounded(tmp_path / name, 5)
    with pytest.raises(FileNotFoundError):
        read_bounded(tmp_path / "gone", 5)


def test_a_seal_contains_size_normalised_mode_and_hash(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"abc")
    (tmp_path / "a").chmod(0o700)
    size, mode, digest = seal_file(tmp_path / "a")
    assert (size, mode) == (3, 0o755)
    assert digest == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def put(folder: Path, count: int) -> None:
    writer = FolderWriter([folder])
    with writer.together():
        for at in range(count):
            writer.write_new(folder / f"skill-{at}", {"notes.md": (b"x", 0o644)})


def place_of(handle: int) -> str:
    return str(Path(f"/proc/self/fd/{handle}").readlink())


@pytest.mark.parametrize("count", [5, MANY + 20], ids=["few", "many"])
def test_every_file_and_folder_reaches_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Few are synced one by one, many by several threads."""
    reached: list[str] = []
    with monkeypatch.context() as watching:
        watching.setattr(os, "fsync", lambda handle: reached.append(place_of(handle)))
        put(tmp_path, count)
    assert {f"{tmp_path}/skill-{at}{name}" for at in range(count) for name in ("", "/notes.md")} <= set(reached)


@pytest.mark.parametrize("count", [5, MANY + 20], ids=["few", "many"])
def test_a_failed_fsync_is_reported_with_the_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def fsync(handle: int) -> None:
        if place_of(handle).endswith("skill-3/notes.md"):
            raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fsync)
        with pytest.raises(KernelError, match=r"skill-3/notes\.md.*Input/output error"):
            put(tmp_path, count)
