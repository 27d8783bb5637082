from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tinydb import TinyDB

from navigator_kernel.adapters.files.database import file_lock, read_rows, table_bytes
from navigator_kernel.errors import Busy, Damaged, KernelError
from processes import open_files


@pytest.mark.requirement("LIF-13")
def test_the_file_is_what_tinydb_itself_reads(tmp_path: Path) -> None:
    path = tmp_path / "skills.db"
    path.write_bytes(table_bytes(path, [{"name": "a"}, {"name": "中"}]))
    assert [row["name"] for row in read_rows(path)] == ["a", "中"]
    with TinyDB(path) as database:
        assert [(row.doc_id, row["name"]) for row in database.all()] == [(1, "a"), (2, "中")]


def test_new_rows_replace_the_default_table_and_other_tables_stay(tmp_path: Path) -> None:
    path = tmp_path / "skills.db"
    path.write_text('{"_default": {"9": {"name": "old"}}, "other": {"1": {"x": 1}}}')
    data = table_bytes(path, [{"name": "new"}])
    assert path.read_text().startswith('{"_default": {"9"')
    path.write_bytes(data)
    assert read_rows(path) == ({"name": "new"},)
    with TinyDB(path) as database:
        assert [row.doc_id for row in database.all()] == [1]
        assert database.table("other").all() == [{"x": 1}]


def test_a_missing_file_has_no_rows(tmp_path: Path) -> None:
    assert read_rows(tmp_path / "skills.db") == ()


DAMAGED = [b"", b"\x00" * 9, b'{"_default": {"1": {"na', b"[]", b'{"_default": []}', b"\xff\xfe"]


@pytest.mark.parametrize("data", DAMAGED)
def test_damage_is_reported_with_its_remedy_and_left_untouched(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "skills.db"
    path.write_bytes(data)
    for act in (lambda: read_rows(path), lambda: table_bytes(path, [])):
        with pytest.raises(Damaged) as caught:
            act()
        assert caught.value.exit_code == 6
        assert "doctor --repair" in caught.value.hint
    assert path.read_bytes() == data


HOLDER = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from navigator_kernel.adapters.files.database import file_lock
with file_lock(Path(sys.argv[2])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_held_elsewhere_names_its_holder(tmp_path: Path) -> None:
    kernel = str(Path(sys.modules["navigator_kernel"].__file__ or "").parents[1])
    words = [sys.executable, "-c", HOLDER, kernel, str(tmp_path / "lock")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(Busy, match=f"process {process.pid}") as caught, file_lock(tmp_path / "lock", timeout=0.1):
            pass
        process.kill()
    assert caught.value.exit_code == 5
    with file_lock(tmp_path / "lock", timeout=5):
        pass


def test_a_deleted_lock_file_is_created_again_and_can_be_locked(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with file_lock(path):
        path.unlink()
        with file_lock(path, timeout=0.2):  # a new file of the same name, which nobody has locked
            assert path.read_text() == str(os.getpid())


def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("kept")
    (tmp_path / "lock").symlink_to("other")
    with pytest.raises(KernelError, match="symbolic links"), file_lock(tmp_path / "lock", timeout=0.1):
        pytest.fail("it was taken")
    assert (tmp_path / "other").read_text() == "kept"


def test_a_file_system_without_locks_is_reported_and_no_file_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    before = open_files()
    monkeypatch.setattr("fcntl.flock", refuse)
    with pytest.raises(KernelError, match="No locks available"), file_lock(tmp_path / "lock", timeout=0.1):
        pytest.fail("it was taken")
    assert not open_files() - before
