"""No program gets out of the sandbox: every attempt runs as the testing user (root in CI) and as nobody, under
bubblewrap and under Landlock."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from sandbox.attempts import ATTEMPTS, CHAIN, LEADERLESS, SURVIVORS, Attempt
from sandbox.world import World, opened, read

pytestmark = pytest.mark.ci

NEED = {"write to /tmp": "/tmp", "write into the interpreter": str(Path(os.__file__).parent)}
AT_ONCE = 10.0  # seconds from the timeout to the end of all its processes, on a busy machine


@pytest.mark.requirement("SAF-2", "SAF-8")
@pytest.mark.parametrize("attempt", ATTEMPTS, ids=lambda attempt: attempt.name)
def test_no_attempt_succeeds_and_each_denial_is_typed(world: World, rung: str, attempt: Attempt) -> None:
    before = world.state()
    found = world.attempt(attempt.code, rung, 3 if attempt.limit == "time" else 60)
    assert "ESCAPED" not in found["out"] or attempt.limit == "output"
    if attempt.limit:
        assert found["limit"] == attempt.limit
    else:
        assert found["out"].startswith("DENIED E"), found
    assert world.state() == before
    assert Path("/proc", world.words["victim"]).exists()
    assert not Path(f"/tmp/planted-{world.words['token']}").exists()


LOOPBACK = """
import os, socket
open("a", "w").close(); os.chmod("a", 0o755); os.utime("a", (1, 1))
one = socket.create_server(("localhost", 0))
two = socket.create_connection(("localhost", one.getsockname()[1]))
one.accept()[0].sendall(b"heard"); print(two.recv(5).decode(), oct(os.stat("a").st_mode))
try:
    socket.create_connection(("1.1.1.1", 53), timeout=2); print("ESCAPED")
except OSError as error:
    print(error)
print(open("/etc/hosts").read())
"""
NETWORKS = ("connect by TCP", "connect to a socket in the project", "connect to an abstract socket", "open a raw socket",
            "send a datagram to a socket of the person", "a user namespace of its own", "a mount namespace", "mount")  # fmt: skip


@pytest.mark.requirement("SAF-2", "SAF-8")
def test_a_command_of_a_model_has_a_loopback_of_its_own_and_nothing_beyond(world: World, rung: str) -> None:
    found = world.attempt(LOOPBACK, rung, 20, "tool=1")
    if "Operation not permitted" in found["err"] and rung == "landlock":
        pytest.skip("this system gives users no network of their own")
    assert found["out"].startswith("heard 0o100755") and "unreachable" in found["out"]
    assert found["out"].endswith("127.0.0.1 localhost\n::1 localhost\n\n")
    for attempt in ATTEMPTS:
        if attempt.name in NETWORKS:
            assert world.attempt(attempt.code, rung, 60, "tool=1")["out"].startswith("DENIED E"), attempt.name


@pytest.mark.parametrize("attempt", [one for one in ATTEMPTS if one.unguarded], ids=lambda attempt: attempt.name)
def test_without_a_sandbox_the_same_attempt_succeeds(attempt: Attempt) -> None:
    """Without this, the suite would prove nothing."""
    place = NEED.get(attempt.name)
    if place is not None and not os.access(place, os.W_OK):
        pytest.skip(f"without a sandbox this user may not write to {place}, either")
    with opened("self") as world:
        found = world.attempt(attempt.code, "none")
        if attempt.name == "find a secret in its own environment":
            assert "DENIED" in found["out"]  # denied even without a sandbox: the environment is an allow-list
        else:
            assert "ESCAPED" in found["out"], found
        Path(f"/tmp/planted-{world.words['token']}").unlink(missing_ok=True)
        (Path(os.__file__).parent / f"planted-{world.words['token']}").unlink(missing_ok=True)


@pytest.mark.parametrize(("stay", "timeout"), [(0, 20), (60, 3)], ids=["ended", "out of time"])
def test_daemons_that_hide_are_dead_when_the_program_is(world: World, rung: str, stay: int, timeout: float) -> None:
    found = world.attempt(SURVIVORS.replace("{stay}", str(stay or 0.3)), rung, timeout)
    assert (found["limit"], "left behind" in found["out"]) == (("time", False) if stay else ("", True))
    assert not stay or found["elapsed"] <= timeout + AT_ONCE
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if world.words["token"].encode() in read(path)]


@pytest.mark.requirement("X-43")
@pytest.mark.parametrize(("stay", "timeout"), [(0, 20), (60, 3)], ids=["ended", "out of time"])
@pytest.mark.skipif(shutil.which("perl") is None, reason="Python forks too slowly to hide from a list of processes")
def test_a_chain_of_processes_that_each_fork_and_end_is_dead_too(
    world: World, rung: str, stay: int, timeout: float
) -> None:
    world.attempt(CHAIN.replace("{stay}", str(stay or 0.3)), rung, timeout)
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if world.words["token"].encode() in read(path)]


@pytest.mark.requirement("X-43")
@pytest.mark.parametrize(("stay", "timeout"), [(0, 20), (60, 5)], ids=["ended", "out of time"])
def test_a_process_whose_first_thread_has_ended_is_dead_too(world: World, rung: str, stay: int, timeout: float) -> None:
    found = world.attempt(LEADERLESS.replace("{stay}", str(stay or 0.5)), rung, timeout)
    assert (found["limit"], "left behind" in found["out"]) == (("time", False) if stay else ("", True))
    mark = world.run / world.words["token"]
    assert mark.stat().st_size > 0  # the threads did run
    written = mark.stat().st_size
    time.sleep(0.5)
    assert mark.stat().st_size == written


def test_it_writes_to_its_folder_and_to_a_home_and_temporary_folder_of_its_own(world: World, rung: str) -> None:
    code = "import os, tempfile; open('kept', 'w').write('x'); print(os.environ['HOME'], tempfile.gettempdir(), os.getcwd())"
    (home, temporary, current), (other, *_) = (world.attempt(code, rung)["out"].split() for _ in range(2))
    assert current == str(world.run) and (world.run / "kept").read_text() == "x"
    assert Path(home).parent == Path(temporary).parent != Path(other).parent  # each process has its own folder
    assert not Path(home).parent.exists() and not Path(other).parent.exists()


def test_it_is_given_no_stdin_and_no_word_of_the_callers_environment(world: World, rung: str) -> None:
    found = world.attempt("import os, sys; print(repr(sys.stdin.read()), 'SECRET_TOKEN' in os.environ)", rung)
    assert found["out"].split() == ["''", "False"]


@pytest.mark.parametrize(
    ("how", "code"), [("sys.exit(7)", 7), ("os.kill(os.getpid(), 9)", 137), ("sys.exit(137)", 137)]
)
def test_exit_codes_are_the_same_under_every_sandbox_backend(world: World, rung: str, how: str, code: int) -> None:
    assert world.attempt(f"import os, sys; {how}", rung)["code"] == code


@pytest.mark.requirement("SAF-3")
def test_pip_cannot_install(world: World, rung: str) -> None:
    words = "[sys.executable, '-m', 'pip', 'install', '--force-reinstall', 'six']"  # six may be installed already
    code = f"import subprocess, sys; print(subprocess.run({words}).returncode)"
    assert world.attempt(code, rung)["out"].strip().splitlines()[-1] != "0"
