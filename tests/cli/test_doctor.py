"""`navigator doctor`: it names each damage, repairs it or says how, and loses nothing else."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.support import MODULE, Place, below, environment, place_in, type_a
from navigator_kernel.adapters.files.scratch import left_scratch, make_scratch, new_scratch, remove_scratch
from navigator_kernel.adapters.processes.launcher import threads_of_user
from navigator_kernel.bootstrap.health import CHECKS, OF_STATE, Finding, findings, repair
from navigator_kernel.bootstrap.places import project_state
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import user_state
from tables import cases

DATABASES = ("sessions.sqlite", "workflows.sqlite", "conversations.sqlite", "planner.sqlite")
STATE = ("disabled.json", "usage.json", "lessons.json", "gateway-tokens.json", "audit.jsonl", "audit.head")
PROJECT = ("project.json", "project-id")  # both are made again if one is damaged
AUDIT = ("audit.jsonl", "audit.head", "audit.key")
HOME = ("trust.json", "audit.key", "home.json")
RECORDS = ("skills.lock.json", ".claude/skills/skills.db", ".claude/skills/.navigator/maker.json")
PLACES = 50
PYTHON = (sys.executable, "-c")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    files = {
        **below("maker", type_a("maker", "print('made')\n")),
        **below("other", type_a("other", "print('other')\n")),
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"]):
        subprocess.run(["git", *words], cwd=root, check=True, env=environment())
    return root


@pytest.fixture
def here(tmp_path: Path, source: Path) -> Place:
    """A project that has been used: with skills, a session, a token, an example, a switched-off skill and a record."""
    here = place_in(tmp_path)
    here.said("install", f"file://{source}", "--all")
    here.said("ask", "--session", "one", "--yes", "/maker")
    here.said("serve", "--new-token")
    here.said("skill", "disable", "other")
    here.said("route", "--teach", "maker", "make the thing")
    return here


def files_of(here: Place) -> dict[str, Path]:
    state = project_state(here.root).folder
    named = {name: state / name for name in (*DATABASES, *STATE, "project.json")}
    named["project-id"] = here.root / "mybox" / "state" / "project-id"
    named |= {name: user_state() / name for name in HOME}
    named |= {name: here.root / name for name in RECORDS}
    return {name: path for name, path in named.items() if path.is_file()}


def cut(data: bytes, at: int) -> bytes:
    return data[: len(data) * at // PLACES]


def empty(_data: bytes, _at: int) -> bytes:
    return b""


def scribbled(data: bytes, at: int) -> bytes:
    """`data` with 64 random bytes at one of 50 places."""
    start = max(len(data) - 64, 0) * at // PLACES
    return data[:start] + random.Random(at).randbytes(min(64, len(data))) + data[start + 64 :]


HARMS: dict[str, Callable[[bytes, int], bytes]] = {"cut": cut, "emptied": empty, "random": scribbled}
FILES = (*DATABASES[:1], *STATE, *PROJECT, *HOME, *RECORDS)


def contents(here: Place) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in files_of(here).items() if not name.endswith(".sqlite")}


def sessions(here: Place) -> list[str]:
    return [row["id"] for row in here.json("session", "list")["sessions"]]


@pytest.mark.sample(4)
@pytest.mark.requirement("LIF-13")
@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("name", FILES)
def test_doctor_names_a_damaged_file_and_repairs_it_and_loses_nothing_else(here: Place, name: str, harm: str) -> None:
    before, file = contents(here), files_of(here)[name]
    file.write_bytes(HARMS[harm](file.read_bytes(), 0 if harm == "random" else 20))
    damaged = file.read_bytes()
    found = here.run("doctor")
    assert (found.code, file.read_bytes()) == (1, damaged), found.out  # it only looks
    assert file.name.partition(".")[0] in found.out or name.startswith("audit"), found.out
    repaired = here.run("doctor", "--repair")
    assert repaired.code == 0, repaired.out + repaired.err
    after = contents(here)
    together = next((group for group in (AUDIT, PROJECT) if name in group), (name,))
    for other in before.keys() - {*together}:
        assert after[other] == before[other], other
    if not name.endswith(".sqlite"):
        assert sessions(here) == ["one"]
    assert here.said("ask", "--yes", "/maker").startswith("✅")
    assert here.run("log").code == 0


@pytest.mark.ci
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", FILES)
def test_doctor_names_and_repairs_a_file_that_is_damaged_at_any_of_50_places(here: Place, name: str) -> None:
    saved = {path: path.read_bytes() for path in _kept(here)}
    for harm in HARMS.values():
        for at in range(PLACES if harm is not empty else 1):
            file = files_of(here)[name]
            before = file.read_bytes()
            file.write_bytes(harm(before, at))
            found = state_findings(here, name)
            if not [one for one in found if one.state == "damaged"]:
                unused = name.endswith(".sqlite") and sessions(here) == ["one"]
                assert unused or file.read_bytes().rstrip() == before.rstrip(), (name, harm, at)
            if at % 5 == 0:
                repair(Project(here.root), found)
                assert [one for one in state_findings(here, name) if one.state == "damaged"] == [], (name, harm, at)
            for path in _kept(here):
                if path not in saved:
                    path.unlink()
            for path, data in saved.items():
                path.write_bytes(data)


def state_findings(here: Place, name: str) -> list[Finding]:
    """What doctor says of the state, or of the records of skills, without the checks of the machine."""
    checks = [check for check in OF_STATE if (check.__name__ == "_skills") == (name in RECORDS)]
    return list(findings(Project(here.root), checks))


def _kept(here: Place) -> list[Path]:
    """The files of the state and the records, without those of caches."""
    folders = (user_state(), here.root / ".claude" / "skills" / ".navigator")
    found = [path for folder in folders for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts]
    return [
        *found,
        here.root / "skills.lock.json",
        here.root / "mybox" / "state" / "project-id",
        here.root / ".claude" / "skills" / "skills.db",
    ]


@pytest.mark.requirement("LIF-13")
def test_a_receipt_that_cannot_be_read_does_not_stop_the_update_of_other_skills(here: Place, source: Path) -> None:
    receipt = here.root / ".claude" / "skills" / ".navigator" / "other.json"
    before = receipt.read_bytes()
    receipt.write_bytes(before[:100])
    (source / "maker" / "run.py").write_text("print('made anew')\n")
    subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qam", "two"], cwd=source, check=True
    )
    done = here.run("update", "--json")
    told = {one["name"]: one["action"] for one in done.document["skills"]}
    assert (done.code, told) == (1, {"maker": "updated", "other": "unreadable"})
    lock = json.loads((here.root / "skills.lock.json").read_text())
    assert set(lock["skills"]) == {"maker", "other"}
    assert here.run("doctor", "--repair").code == 0
    assert json.loads(receipt.read_text()) == json.loads(before)
    assert here.run("update").code == 0


def test_a_receipt_that_nothing_knows_any_more_is_named_with_its_source(here: Place, source: Path) -> None:
    (here.root / ".claude" / "skills" / ".navigator" / "other.json").write_text("{")
    (here.root / "skills.lock.json").unlink()
    done = here.run("skill", "repair")
    assert (done.code, str(source) in done.out) == (6, True), done.out
    assert here.run("doctor", "--repair").code == 1
    assert here.said("ask", "--yes", "/maker").startswith("✅")


@pytest.mark.sample(1)
@pytest.mark.parametrize("harm", ["emptied", "cut", "gone"])
def test_a_lost_key_of_the_record_is_the_same_for_every_command_and_its_hint_works(here: Place, harm: str) -> None:
    key, record = user_state() / "audit.key", project_state(here.root).folder / "audit.jsonl"
    old = record.read_bytes()
    key.unlink() if harm == "gone" else key.write_bytes(key.read_bytes()[: 16 if harm == "cut" else 0])
    log, run, doctor = here.run("log"), here.run("ask", "--yes", "/maker"), here.run("doctor")
    assert (log.code, run.code, doctor.code) == (6, 6, 1), run.out + run.err
    assert all("navigator doctor --repair" in done.out + done.err for done in (log, run, doctor))
    assert here.run("doctor", "--repair").code == 0
    assert here.said("ask", "--yes", "/maker").startswith("✅")
    entries = here.json("log")["entries"]
    kept = record.with_name(entries[0]["kept"])
    assert (entries[0]["event"], kept.read_bytes()) == ("began", old)


def test_a_key_that_is_not_one_is_named_before_anything_is_recorded(tmp_path: Path) -> None:
    here = place_in(tmp_path)
    here.write(below(".claude/skills/maker", type_a("maker", "print('made')\n")))
    user_state().mkdir(parents=True, exist_ok=True)
    (user_state() / "audit.key").write_bytes(b"short")
    assert (here.run("log").code, here.run("doctor").code) == (6, 1)
    assert here.run("doctor", "--repair").code == 0
    assert here.run("log").code == 0


def test_doctor_starts_the_sandbox_and_does_not_believe_what_worked_before(here: Place, tmp_path: Path) -> None:
    """A bubblewrap that fails, as with user namespaces off, while the cache says that it works."""
    cache = user_state() / "cache" / "sandbox.json"
    here.said("doctor")
    broken = tmp_path / "bin" / "bwrap"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
    broken.chmod(0o755)
    path = {"PATH": f"{broken.parent}:{os.environ['PATH']}"}
    here.run("doctor", env=path)
    held = json.loads(cache.read_text())
    cache.write_text(json.dumps({**held, "rung": "bubblewrap"}))
    told = here.run("doctor", "-v", env=path).out
    assert "No permissions to create new namespace" in told
    assert json.loads(cache.read_text()).get("rung") != "bubblewrap"


def test_doctor_without_repair_changes_nothing(here: Place) -> None:
    before = {path: path.read_bytes() for path in _kept(here) if not path.name.endswith(("-shm", "-wal", ".lock"))}
    here.said("doctor")
    after = {path: path.read_bytes() for path in _kept(here) if not path.name.endswith(("-shm", "-wal", ".lock"))}
    assert after == before


def machine(here: Place) -> dict[str, Finding]:
    checks = [check for check in CHECKS if check not in OF_STATE and check.__name__ in {"_threads", "_folders"}]
    return {one.what: one for one in findings(Project(here.root), checks)}


def test_doctor_says_that_locks_do_not_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = place_in(tmp_path)

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    told = machine(here)["your state"]
    assert (told.state, "No locks available" in told.detail, "XDG_STATE_HOME" in told.remedy) == ("damaged", True, True)


def test_doctor_says_that_the_path_of_the_state_is_too_long_for_a_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = place_in(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.joinpath(*["x" * 100] * 5)))
    told = machine(here)["your state of this project"]
    assert (told.state, "longer than" in told.detail) == ("damaged", True)


@pytest.mark.skipif(os.getuid() == 0, reason="the system does not limit the threads of root")
def test_doctor_says_that_there_are_too_many_threads(tmp_path: Path) -> None:
    here = place_in(tmp_path)
    limit = threads_of_user() + 120  # doctor needs a few of them, and so do tests beside this one
    done = Place(root=here.root, program=("prlimit", f"--nproc={limit}:", *MODULE)).run("doctor", "--json")
    (threads,) = (finding for finding in done.document["findings"] if finding["what"] == "threads")
    assert (threads["state"], f"at most {limit}" in threads["detail"]) == ("missing", True)


MOUNTS = ["unshare", "-m"] if os.getuid() == 0 else ["unshare", "-Urm"]


@pytest.mark.ci
@cases("mount, words", ids=["full", "read-only"])
def test_doctor_says_that_the_state_cannot_be_written(here: Place, mount: str, words: str) -> None:
    if subprocess.run([*MOUNTS, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount anything")
    script = f"{mount.format(user_state())} && exec {sys.executable} -m navigator_kernel.cli.main doctor"
    done = subprocess.run(
        [*MOUNTS, "/bin/sh", "-c", script],
        cwd=here.root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "!!  your state:" in done.stdout and words in done.stdout
    assert "no skill runs" in done.stdout


def test_a_folder_of_a_killed_run_is_left_and_one_of_a_living_run_is_not(tmp_path: Path) -> None:
    dead, living = new_scratch(), new_scratch()
    script = (
        "import sys, pathlib\n"
        "from navigator_kernel.adapters.files.scratch import make_scratch\n"
        "handle = make_scratch(pathlib.Path(sys.argv[1]))\n"
        "print(flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [*PYTHON, script, str(dead)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert dead not in set(left_scratch())
        process.kill()
    handle = make_scratch(living)
    try:
        assert {dead, living} & set(left_scratch()) == {dead}
        (dead / "tmp" / "big").write_bytes(bytes(1024))
        here = place_in(tmp_path)
        assert str(dead) in here.json("gc", "--days", "0")["removed"]
        assert (dead.exists(), living.exists()) == (False, True)
    finally:
        remove_scratch(living, handle)
