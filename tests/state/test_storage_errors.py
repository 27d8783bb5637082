"""An error of the disk is named by its cause, with a hint that helps; nothing is lost once the cause is gone."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from cli.support import MODULE, Place, place_in
from person_state import state_of

pytestmark = [pytest.mark.requirement("X-38"), pytest.mark.sample(1)]
FAILING = (sys.executable, str(Path(__file__).with_name("failing_calls.py")))
WRITES, READS = ("ask", "--session", "s", "hello"), ("session", "list")
DISK = [
    ("pwrite64", errno.ENOSPC, "full", "No space left on device", "free space"),
    ("pwrite64", errno.EDQUOT, "full", "Disk quota exceeded", "quota"),
    ("pwrite64", errno.EROFS, "read_only", "Read-only file system", "writable"),
    ("pwrite64", errno.EIO, "fault", "Input/output error", "check the disk"),
    ("fdatasync", errno.EIO, "fault", "I/O error", "check the disk"),
    ("pread64", errno.EIO, "fault", "I/O error", "check the disk"),
    ("flock", errno.ENOLCK, "no_locks", "No locks available", "XDG_STATE_HOME"),
    ("fcntl", errno.ENOLCK, "no_locks", "No locks available", "XDG_STATE_HOME"),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """A project with a session `s` of one turn. Its commands are not measured: coverage would fail to write, too."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    place = place_in(tmp_path)
    assert place.run(*WRITES).code == 0
    return place


def turns(here: Place) -> int:
    """The number of turns of the session `s`, whose history must be whole."""
    count: int = here.json(*READS)["sessions"][0]["turns"]
    assert len(here.json("session", "show", "s")["history"]) == 2 * count
    return count


def refused(here: Place, env: Mapping[str, str], program: tuple[str, ...] = FAILING) -> dict[str, Any]:
    """The error of a command that writes. The next one, without the cause, continues the session."""
    before = turns(here)
    done = Place(root=here.root, program=program).run(*WRITES, "--json", env={"WAIT": "0.2", **env})
    error: dict[str, Any] = done.document["error"]
    assert done.code == error["exit_code"]
    assert "damaged" not in error["code"] and "repair" not in error["hint"]
    assert turns(here) == before
    assert here.run(*WRITES).code == 0
    assert turns(here) == before + 1
    return error


@pytest.mark.parametrize(("call", "number", "kind", "words", "hint"), DISK, ids=lambda value: str(value))
def test_a_failing_system_call_is_named_and_loses_nothing(
    here: Place, call: str, number: int, kind: str, words: str, hint: str
) -> None:
    error = refused(here, {"FAILS": json.dumps([[call, number]])})
    assert (error["exit_code"], error["code"], error["kind"]) == (1, "storage", kind)
    assert words in error["msg"] and hint in error["hint"]


def test_a_limit_of_the_size_of_files_is_named(here: Place) -> None:
    size = (state_of(here.root) / "sessions.sqlite").stat().st_size
    error = refused(here, {}, ("prlimit", f"--fsize={size}", *MODULE))
    assert (error["exit_code"], error["kind"], "ulimit -f" in error["hint"]) == (1, "full", True)


@pytest.mark.parametrize("name", ["sessions.sqlite", "."])
def test_a_read_only_file_or_folder_is_named(here: Place, name: str) -> None:
    """Root obeys the modes of files without these capabilities."""
    program: tuple[str, ...] = MODULE
    if os.geteuid() == 0:
        program = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search", *MODULE)
        if shutil.which("setpriv") is None or subprocess.run([*program[:3], "true"], check=False).returncode:
            pytest.skip("root cannot give up its rights here")
    path = state_of(here.root) / name
    mode = path.stat().st_mode
    path.chmod(mode & ~0o222)
    try:
        done = Place(root=here.root, program=program).run(*WRITES, "--json")
    finally:
        path.chmod(mode)
    error = done.document["error"]
    assert (done.code, error["kind"], "writable" in error["hint"]) == (1, "read_only", True)
    assert turns(here) == 1


def test_a_locked_database_is_busy(here: Place) -> None:
    with closing(sqlite3.connect(state_of(here.root) / "sessions.sqlite")) as other:
        other.execute("BEGIN IMMEDIATE")
        done = Place(root=here.root, program=FAILING).run(*WRITES, "--json", env={"WAIT": "0.2", "FAILS": "[]"})
    assert (done.code, done.document["error"]["code"]) == (5, "busy")
    assert turns(here) == 1


def test_a_path_that_is_too_long_for_sqlite_is_named(here: Place, tmp_path: Path) -> None:
    near, far = Path(os.environ["XDG_STATE_HOME"]), tmp_path
    while len(str(far)) < 480:
        far /= "x" * 60
    far.parent.mkdir(parents=True)
    near.rename(far)
    done = here.run(*WRITES, "--json", env={"XDG_STATE_HOME": str(far)})
    far.rename(near)
    error = done.document["error"]
    assert (done.code, error["kind"], "shorter path" in error["hint"]) == (1, "too_long", True)
    assert turns(here) == 1


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[None]:
    if os.geteuid() or subprocess.run(["mount", *options, str(folder)], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.ci
def test_a_full_disk_is_named_and_loses_nothing_once_there_is_space(tmp_path: Path) -> None:
    place, disk = place_in(tmp_path), tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=4m", "tmpfs"):
        env = {"XDG_STATE_HOME": str(disk)}
        assert place.run(*WRITES, env=env).code == 0
        with (disk / "filler").open("wb", buffering=0) as filler, suppress(OSError):
            while filler.write(bytes(4096)):
                pass
        done = place.run(*WRITES, "--json", env=env)
        error = done.document["error"]
        assert (done.code, error["code"], error["kind"]) == (1, "storage", "full")
        assert "free space" in error["hint"]
        (disk / "filler").unlink()
        assert place.run(*WRITES, env=env).code == 0
        shown = place.run("session", "show", "s", "--json", env=env).document
        assert len(shown["history"]) == 4


@pytest.mark.ci
def test_a_read_only_mount_is_named(here: Place) -> None:
    folder = state_of(here.root)
    with mounted(folder, "--bind", "-o", "ro", str(folder)):
        done = here.run(*WRITES, "--json")
    error = done.document["error"]
    assert (done.code, error["kind"], "writable" in error["hint"]) == (1, "read_only", True)
    assert turns(here) == 1


@pytest.mark.parametrize("name", ["sessions", "workflows"])
def test_a_file_of_a_newer_version_is_refused_and_stays(here: Place, name: str) -> None:
    file = state_of(here.root) / f"{name}.sqlite"
    assert here.run("workflow", "list").code == 0
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 7")
    before = file.read_bytes()
    done = here.run("session" if name == "sessions" else "workflow", "list")
    assert (done.code, "newer navigator" in done.err, "update navigator" in done.err) == (1, True, True)
    assert file.read_bytes() == before


@pytest.mark.parametrize("data", [b"", b"not a database, for sure" * 200])
def test_a_damaged_file_names_the_repair_that_helps(here: Place, data: bytes) -> None:
    file = state_of(here.root) / "sessions.sqlite"
    file.write_bytes(data)
    for words in (WRITES, READS):
        done = here.run(*words, "--json")
        assert (done.code, done.document["error"]["code"]) == (6, "damaged")
        assert "navigator doctor --repair" in done.document["error"]["hint"]
    assert file.read_bytes() == data
