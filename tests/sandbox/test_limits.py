"""The limits of a run hold on a machine that does other work, and while the program that measures them is stopped or
dead. As for the escapes, the tester (root in CI) and nobody run it, under bubblewrap and under Landlock."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sandbox.world import World, outcome_of, read

pytestmark = [pytest.mark.ci, pytest.mark.requirement("SAF-2", "X-43")]

THREADS = """
import threading, time
threading.stack_size(65536)
for _ in range(300): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
print("ready", flush=True)
time.sleep(600)
"""
SHARE = "import os, time\nheld = b'x' * ({size} << 20)\nfor _ in range(3):\n    if os.fork() == 0: time.sleep(2); os._exit(0)\nfor _ in range(3): os.wait()\nprint('ended')"
# One process has memory of its own, two have some that others could share, too
TAKE = """
import mmap, os, time
for own in (True, False, False):
    if os.fork() == 0:
        held = b"x" * ({size} << 20) if own else mmap.mmap(-1, {size} << 20)
        for _ in range(0 if own else {size}): held.write(b"x" * (1 << 20))
        time.sleep(20); os._exit(0)
for _ in range(3): os.wait()
print("ended")
"""
# A program with a daemon, both of which can be found by the token
FAMILY = """
import os, subprocess, sys, time
code = "import time; time.sleep(120) # {token}"
subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
open("started", "w").write("x")
time.sleep(120)
"""
WRITES = """
import time
with open("grows", "wb") as file:
    while True: file.write(bytes(1 << 20)); file.flush(); time.sleep(0.02)
"""
SOON = 10.0  # seconds for what takes one on a machine without load


@pytest.fixture
def threads(world: World) -> Iterator[None]:
    """The user has 300 threads more, as with a browser."""
    with subprocess.Popen([world.python, "-c", THREADS], stdout=subprocess.PIPE, **world.who) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


@pytest.mark.usefixtures("threads")
def test_a_program_runs_while_its_user_has_hundreds_of_threads(world: World, rung: str) -> None:
    found = world.attempt("print('ran')", rung)
    assert (found.get("code"), found.get("out")) == (0, "ran\n"), found


@pytest.mark.skipif(os.getuid() != 0, reason="the number of a user's threads is known only if nobody else is that user")
def test_where_no_more_threads_fit_the_error_names_their_number_and_the_limit(world: World, rung: str) -> None:
    if not world.drops:
        pytest.skip("the system does not limit the threads of root")
    full = "the user has (9|10) threads, the limit is {}; no more can be started$"  # the asking program's, the launcher
    for room in (0, 1, 20):  # none for the launcher, none for its program, enough
        alone, folder = 700_000 + 100 * os.getpid() + room, world.base / f"alone-{rung}-{room}" / "run"
        folder.mkdir(parents=True)
        for path in (folder.parent, folder):
            os.chown(path, alone, alone)
        argv = [world.python, str(world.base / "contained.py"), rung, str(folder), "20", f"room={room}"]
        who: dict[str, Any] = {"user": alone, "group": alone, "extra_groups": [], "text": True, "capture_output": True}
        process = subprocess.run(argv, input="print('ran')", env=world.env, **who)
        assert process.returncode == 0, process.stderr
        found = json.loads(process.stdout)
        shutil.rmtree(folder.parent)
        if room == 20:
            assert found.get("out") == "ran\n", found
        else:
            assert re.search(full.format(9 + room), found["error"]), found
            assert "ulimit -u" in found["hint"], found


def test_all_processes_together_have_one_limit_of_memory(world: World, rung: str) -> None:
    assert world.attempt(TAKE.replace("{size}", "80"), rung, 60, f"memory={160 << 20}")["limit"] == "memory"


def test_memory_that_processes_share_is_counted_once(world: World, rung: str) -> None:
    found = world.attempt(SHARE.replace("{size}", "80"), rung, 60, f"memory={200 << 20}")
    assert (found["limit"], found["out"]) == ("", "ended\n"), found


@pytest.mark.parametrize("moment", ["at its start", "later"])
def test_nothing_lives_on_if_the_launcher_is_stopped_while_the_kernel_is_killed(
    world: World,
    rung: str,
    moment: str,
) -> None:
    with killed_at_the_end(world, FAMILY, rung, 60) as process:
        launcher = eventually(lambda: launcher_of(process.pid))
        if moment == "later":
            eventually(lambda: living(world))
        os.kill(launcher, signal.SIGSTOP)
        process.kill()
        process.wait()
        os.kill(launcher, signal.SIGCONT)
        eventually(partial(nothing_left, world, launcher))
        time.sleep(1)  # what would still be starting
        assert not living(world)


def test_nothing_lives_on_if_the_kernel_is_killed_at_any_moment(world: World, rung: str) -> None:
    for delay in (0.0, 0.02, 0.04, 0.1, 0.3):
        with killed_at_the_end(world, FAMILY, rung, 60) as process:
            launcher = eventually(lambda: launcher_of(process.pid))
            time.sleep(delay)
            process.kill()
            process.wait()
            eventually(partial(nothing_left, world, launcher))


def test_the_time_limit_holds_while_the_kernel_is_stopped(world: World, rung: str) -> None:
    with killed_at_the_end(world, FAMILY, rung, 3) as process:
        eventually(lambda: living(world))
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: not living(world), 3 + SOON)
        process.send_signal(signal.SIGCONT)
        assert outcome_of(process)["limit"] == "time"


def test_the_disk_limit_holds_while_the_kernel_is_stopped(world: World, rung: str) -> None:
    grows = world.run / "grows"
    with killed_at_the_end(world, WRITES, rung, 60, f"disk={64 << 20}") as process:
        eventually(lambda: grows.exists() and grows.stat().st_size)
        process.send_signal(signal.SIGSTOP)
        eventually(lambda: size_after_a_while(grows) == grows.stat().st_size)
        assert grows.stat().st_size < 64 << 20
        time.sleep(1)
        stays = size_after_a_while(grows) == grows.stat().st_size
        process.send_signal(signal.SIGCONT)
        assert stays and outcome_of(process)["limit"] == "disk"


@contextmanager
def killed_at_the_end(
    world: World, code: str, rung: str, timeout: float, *limits: str
) -> Iterator[subprocess.Popen[str]]:
    process = world.started(code, rung, timeout, *limits)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        for pid in living(world):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def eventually(look: Callable[[], Any], seconds: float = SOON) -> Any:
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.002)
    return found


def size_after_a_while(path: Path) -> int:
    before = path.stat().st_size
    time.sleep(0.3)
    return before


def launcher_of(parent: int) -> int:
    """The launcher that runs the program, not one of the trial before."""
    for path in Path("/proc").glob("[0-9]*"):
        fields = read(path / "stat").rpartition(b")")[2].split()
        if fields and int(fields[1]) == parent and b"launcher.py" in read(path / "cmdline"):
            return int(path.name)
    return 0


def living(world: World) -> list[int]:
    """The processes that carry the token: the program's, and bubblewrap's."""
    token = world.words["token"].encode()
    return [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/cmdline") if token in read(path)]


def nothing_left(world: World, launcher: int) -> bool:
    """A zombie may wait for the system's first process."""
    return not living(world) and not read(Path(f"/proc/{launcher}/cmdline"))
