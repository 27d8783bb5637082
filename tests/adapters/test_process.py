from __future__ import annotations

import asyncio
import os
import py_compile
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.processes.process import ProcessRunner, _Watch, execute
from navigator_kernel.errors import NotFound, Refused
from navigator_kernel.values.job import OUTPUT_LIMIT, Job, Outcome
from processes import open_files

DAEMON = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for fd in (0, 1, 2):
            os.close(fd)
        pathlib.Path("pid.tmp").write_text(str(os.getpid()))
        os.rename("pid.tmp", "pid")
        time.sleep(60)
    os._exit(0)
while not os.path.exists("pid"):
    time.sleep(0.01)
"""
BACKGROUND = """
import pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path("pid").write_text(str(child.pid))
"""


def job(folder: Path, code: str, *, timeout: float = 20, argv: tuple[str, ...] = (), **env: str) -> Job:
    return Job(
        actor="script",
        subject="test",
        digest="sha256:0",
        run="run-1",
        argv=argv or (sys.executable, "-c", code),
        cwd=folder,
        timeout=timeout,
        env=env,
    )


def ran(folder: Path, code: str, **given: Any) -> Outcome:
    return execute(job(folder, code, **given))


def pid_in(folder: Path) -> int:
    return int((folder / "pid").read_text())


def lives(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return "\nState:\tZ" not in status


def dies(pid: int) -> bool:
    """Whether the process is gone within twenty seconds."""
    end = time.monotonic() + 20
    while lives(pid) and time.monotonic() < end:
        time.sleep(0.02)
    return not lives(pid)


@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_of_a_program_is_returned(tmp_path: Path, code: int) -> None:
    assert ran(tmp_path, f"raise SystemExit({code})").exit_code == code


def test_a_death_by_signal_has_the_exit_code_that_a_shell_gives_it(tmp_path: Path) -> None:
    assert ran(tmp_path, "import os; os.kill(os.getpid(), 15)").exit_code == 143


def test_both_streams_are_kept_apart(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "import sys; print('out'); print('err', file=sys.stderr)")
    assert (outcome.stdout, outcome.stderr, outcome.truncated) == (b"out\n", b"err\n", False)


def test_output_just_before_the_end_is_not_lost(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "import sys; sys.stdout.write('x' * 300_000)")
    assert len(outcome.stdout) == 300_000


def test_there_is_nothing_to_read_on_stdin(tmp_path: Path) -> None:
    assert ran(tmp_path, "import sys; print(repr(sys.stdin.read()))").stdout == b"''\n"


def test_it_runs_in_the_folder_of_the_run(tmp_path: Path) -> None:
    assert ran(tmp_path, "import os; print(os.getcwd())").stdout.decode().strip() == os.path.realpath(tmp_path)


def test_an_argument_is_never_read_by_a_shell(tmp_path: Path) -> None:
    argv = (sys.executable, "-c", "import sys; print(sys.argv[1])", "$(touch owned); `id` > x | y")
    assert ran(tmp_path, "", argv=argv).stdout == b"$(touch owned); `id` > x | y\n"
    assert list(tmp_path.iterdir()) == []


def test_a_secret_of_the_environment_is_not_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    names = set(ran(tmp_path, "import os; print(*os.environ)").stdout.decode().split())
    assert names & {"OPENAI_API_KEY", "LD_PRELOAD", "PYTHONPATH"} == set()


def test_home_is_in_the_scratch_folder_of_the_process(tmp_path: Path) -> None:
    assert ran(tmp_path, "import os; print(os.environ['HOME'])").stdout.decode().strip() == str(tmp_path / "home")


def test_environment_variables_of_a_job_are_passed_on(tmp_path: Path) -> None:
    assert ran(tmp_path, "import os; print(os.environ['GIVEN'])", GIVEN="yes").stdout == b"yes\n"


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_is_cut_at_one_mebibyte_and_marked(tmp_path: Path, stream: str) -> None:
    outcome = ran(tmp_path, f"import sys; sys.{stream}.write('x' * {OUTPUT_LIMIT + 5_000})")
    assert (len(getattr(outcome, stream)), outcome.truncated, outcome.exit_code) == (1024 * 1024, True, 0)


def test_output_of_exactly_the_limit_is_not_marked(tmp_path: Path) -> None:
    outcome = ran(tmp_path, f"import sys; sys.stdout.write('x' * {OUTPUT_LIMIT})")
    assert (len(outcome.stdout), outcome.truncated) == (OUTPUT_LIMIT, False)


@pytest.mark.wide
def test_a_flood_without_end_is_stopped_by_the_time_limit(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "while True: print('x' * 10_000)", timeout=5)
    assert (outcome.timed_out, outcome.truncated, len(outcome.stdout)) == (True, True, OUTPUT_LIMIT)


@pytest.mark.wide
def test_time_running_out_keeps_what_was_printed(tmp_path: Path) -> None:
    outcome = ran(tmp_path, "import time; print('so far', flush=True); time.sleep(60)", timeout=5)
    assert (outcome.timed_out, outcome.exit_code, outcome.stdout) == (True, None, b"so far\n")
    assert 5 <= outcome.elapsed < 30


@pytest.mark.wide
def test_time_running_out_kills_a_child_that_made_itself_a_daemon(tmp_path: Path) -> None:
    outcome = ran(tmp_path, DAEMON + "time.sleep(60)\n", timeout=5)
    assert (outcome.timed_out, dies(pid_in(tmp_path))) == (True, True)


def test_a_daemon_is_dead_after_a_normal_end(tmp_path: Path) -> None:
    outcome = ran(tmp_path, DAEMON)
    assert (outcome.exit_code, dies(pid_in(tmp_path))) == (0, True)


def test_a_child_in_the_background_is_dead_after_a_normal_end_and_costs_no_wait(tmp_path: Path) -> None:
    outcome = ran(tmp_path, BACKGROUND)
    assert (outcome.exit_code, dies(pid_in(tmp_path)), outcome.elapsed < 30) == (0, True, True)


def test_cancelling_kills_the_tree(tmp_path: Path) -> None:
    async def cancelled() -> float:
        running = asyncio.create_task(ProcessRunner().run(job(tmp_path, DAEMON + "time.sleep(60)\n", timeout=60)))
        for _ in range(1_000):
            if (tmp_path / "pid").exists():
                break
            await asyncio.sleep(0.02)
        began = time.perf_counter()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return time.perf_counter() - began

    assert asyncio.run(cancelled()) < 30
    assert dies(pid_in(tmp_path))


@pytest.mark.wide
def test_running_does_not_block_the_loop(tmp_path: Path) -> None:
    async def both() -> list[int | None]:
        places = [tmp_path / "one", tmp_path / "two"]  # a run starts one process at a time and kills leftover ones
        for place in places:
            place.mkdir()
        code = "import time; time.sleep(0.5); raise SystemExit({})"
        jobs = [ProcessRunner().run(job(place, code.format(n))) for n, place in enumerate(places, 1)]
        return [outcome.exit_code for outcome in await asyncio.gather(*jobs)]

    assert asyncio.run(both()) == [1, 2]


def test_a_program_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no-such-program"):
        ran(tmp_path, "", argv=("no-such-program",))


def test_a_file_that_is_not_executable_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(Refused, match="notes"):
        ran(tmp_path, "", argv=(str(tmp_path / "notes.txt"),))


def test_a_process_that_ended_while_its_last_moment_passed_did_end(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ""], stdout=pipe, stderr=pipe, cwd=tmp_path) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        watch = _Watch(process, None)
        assert watch.until(time.perf_counter() - 1)
        watch.close()


def test_no_file_descriptor_is_left_open(tmp_path: Path) -> None:
    asyncio.run(ProcessRunner().run(job(tmp_path, "print(1)")))
    before = open_files()
    asyncio.run(ProcessRunner().run(job(tmp_path, "print(1)")))
    assert not open_files() - before


def test_bytecode_beside_a_module_is_not_read(tmp_path: Path) -> None:
    """A cached file that differs from its source must not run (shipped digests leave it out)."""
    folder = tmp_path / "skill"
    folder.mkdir()
    (folder / "part.py").write_text("WORD = 'evil'\n")
    py_compile.compile(str(folder / "part.py"), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    (folder / "part.py").write_text("WORD = 'good'\n")
    (folder / "main.py").write_text("import part\nprint(part.WORD)\n")
    outcome = execute(job(tmp_path, "", argv=(sys.executable, str(folder / "main.py"))))
    assert outcome.stdout.strip() == b"good"
