"""Runs one process to its end: without a shell or stdin, with capped output, and kills whatever it leaves behind."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import select
import selectors
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct, field

from navigator_kernel.adapters.files.scratch import scratch_environment
from navigator_kernel.adapters.processes.launcher import TIME_IS_UP, descendants, no_more_threads, read_file
from navigator_kernel.errors import NoSandbox, NotFound, Refused, UsageProblem
from navigator_kernel.values.job import OUTPUT_LIMIT, Exceeded, Job, Outcome

PASSED_ON = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")  # the environment's allow-list
MARK = "NAVIGATOR_PROCESS"
FULL = "end some programs, or raise the limit: ulimit -u, or TasksMax of your session"
HIDING = 1.0  # seconds for which the files of a process may stay unreadable

_CHUNK = 65_536
_GRACE = 0.5  # seconds for reading the last output of a killed tree


_STUBBORN = 2.0  # seconds of repeated kills if a process does not die: another user's, or one that waits for a disk
_TICK = 0.2  # seconds between two checks of the limits


class Contained(NamedTuple):
    """How a contained job is started: `argv` in place of its own, with the files `fds` open. `started` gets its process
    number; `exceeded` names a limit that it went over, while it runs."""

    argv: tuple[str, ...]
    fds: tuple[int, ...]
    started: Callable[[int], None]
    exceeded: Callable[[], Exceeded]


class ProcessRunner:
    """Runs jobs as they are, without containing them: the sandbox decides whether and in what a job runs."""

    async def run(self, job: Job, contained: Contained | None = None) -> Outcome:
        """Calls `execute` in a thread; cancelling the task kills the process tree."""
        import asyncio

        wake, stop = os.pipe()
        try:
            work = asyncio.get_running_loop().run_in_executor(None, execute, job, wake, contained)
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                os.write(stop, b"x")
                await asyncio.wait([work])
                raise
        finally:
            os.close(wake)
            os.close(stop)


def execute(job: Job, wake: int | None = None, contained: Contained | None = None) -> Outcome:
    """Starts `job` and returns when it ended, its time ran out, it went over a limit, or `wake` became readable.

    NoSandbox if processes cannot be watched, NotFound if the program does not exist, Refused if it cannot be
    executed, UsageProblem if an argument is over the system's 128 KiB.
    """
    started = time.perf_counter()
    folder = job.cwd.parent if job.cwd.parent.name == job.run else job.cwd  # the folder of the run
    place = hashlib.sha256(f"{folder}\0{job.run}".encode("utf-8", "surrogateescape")).hexdigest()[:16]
    if contained is None:
        _kill_marked(place)  # a run has one process at a time: any process still left belonged to a killed kernel
    mark = f"{place}.{os.urandom(16).hex()}"
    process = _start(job, mark, contained)
    ended, watch = False, _Watch(process, wake, contained.exceeded if contained else None)
    try:
        if contained is not None:
            contained.started(process.pid)
        ended = watch.until(started + job.timeout)
    finally:
        if contained is not None and not ended:
            process.terminate()  # the launcher misses no process that is starting
            select.select([watch.pidfd], [], [], _STUBBORN)
        kill_tree(process.pid, "" if contained else mark)
        exit_code = process.wait()
        watch.drain(time.perf_counter() + _GRACE)
        watch.close()
    if contained and exit_code == -TIME_IS_UP:  # while this process was stopped
        ended = False
    out, err = watch.kept
    return Outcome(
        exit_code=(exit_code if exit_code >= 0 else 128 - exit_code) if ended else None,
        stdout=bytes(out),
        stderr=bytes(err),
        elapsed=time.perf_counter() - started,
        timed_out=not ended and not watch.over,
        truncated=watch.truncated,
        exceeded=watch.over,
    )


def environment(job: Job, mark: str) -> dict[str, str]:
    """The variables of the allow-list, a home and places for temporary files and bytecode of the process's own, then
    the variables of the job."""
    passed: Mapping[str, str] = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    own = {**scratch_environment(job.scratch or job.cwd), "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
    return {"PATH": os.defpath, "LANG": "C.UTF-8", **passed, **own, "PYTHONIOENCODING": "utf-8", **job.env, MARK: mark}


def _start(job: Job, mark: str, contained: Contained | None) -> subprocess.Popen[bytes]:
    if not hasattr(os, "pidfd_open"):
        raise NoSandbox("processes are run on Linux 5.3 or newer only", hint="use a prompt skill, or a Linux machine")
    try:
        return subprocess.Popen(
            contained.argv if contained else job.argv,
            pass_fds=contained.fds if contained else (),
            cwd=job.start or job.cwd,
            env=environment(job, mark),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except FileNotFoundError as error:
        raise NotFound(f"no program is called {job.argv[0]!r}", hint="check the command and PATH") from error
    except (PermissionError, OSError) as error:
        if error.errno == errno.E2BIG:
            raise too_long(job) from error
        if error.errno == errno.EAGAIN:
            raise Refused(f"{job.argv[0]!r} cannot be started: {no_more_threads()}", hint=FULL) from error
        message = f"{job.argv[0]!r} cannot be started: {error.strerror}"
        raise Refused(message, hint="check that it is a program") from error


def too_long(job: Job) -> UsageProblem:
    message = f"{job.subject} is given more text than a command can take (128 KiB)"
    return UsageProblem(message, hint="give it a file: in a workflow NAVIGATOR_PREVIOUS names one")


class _Watch(Struct):
    """Reads both streams and waits for the leader in one loop."""

    process: subprocess.Popen[bytes]
    wake: int | None
    exceeded: Callable[[], Exceeded] | None = None
    over: Exceeded = ""
    kept: tuple[bytearray, bytearray] = field(default_factory=lambda: (bytearray(), bytearray()))
    truncated: bool = False
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    pidfd: int = -1

    def __post_init__(self) -> None:
        self.pidfd = os.pidfd_open(self.process.pid)
        self.selector.register(self.pidfd, selectors.EVENT_READ, "ended")
        if self.wake is not None:
            self.selector.register(self.wake, selectors.EVENT_READ, "stop")
        pipes = [stream for stream in (self.process.stdout, self.process.stderr) if stream is not None]
        for index, stream in enumerate(pipes):
            os.set_blocking(stream.fileno(), False)
            self.selector.register(stream, selectors.EVENT_READ, index)

    def until(self, deadline: float) -> bool:
        """Whether the leader ended by itself before `deadline` (of `perf_counter`)."""
        look = time.perf_counter() + _TICK
        while (remaining := deadline - time.perf_counter()) > 0:
            for key, _ in self.selector.select(remaining if self.exceeded is None else min(remaining, _TICK)):
                if key.data == "ended":
                    return True
                if key.data == "stop":
                    return False
                self._read(key)
            if self.exceeded is not None and time.perf_counter() >= look:
                self.over = self.exceeded()
                look = time.perf_counter() + _TICK
                if self.over:
                    return False
        return any(key.data == "ended" for key, _ in self.selector.select(0))  # the leader may have ended meanwhile

    def drain(self, deadline: float) -> None:
        """Reads what is left in the pipes; if another process keeps one open, the wait ends at `deadline`."""
        for fd in (self.pidfd, self.wake):
            if fd is not None and fd in self.selector.get_map():
                self.selector.unregister(fd)
        while self.selector.get_map() and (remaining := deadline - time.perf_counter()) > 0:
            ready = self.selector.select(remaining)
            for key, _ in ready:
                self._read(key)

    def close(self) -> None:
        self.selector.close()
        os.close(self.pidfd)
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def _read(self, key: selectors.SelectorKey) -> None:
        try:
            chunk = os.read(key.fd, _CHUNK)
        except BlockingIOError:
            return
        if not chunk:
            self.selector.unregister(key.fileobj)
            return
        output = self.kept[key.data]
        room = OUTPUT_LIMIT - len(output)
        self.truncated = self.truncated or len(chunk) > room
        output += chunk[: max(room, 0)]


def kill_tree(leader: int, mark: str) -> None:
    """Kills every descendant, the process group, and every process that inherited the mark and left the group, until
    none is found. Processes that a contained one leaves behind stay the leader's, so the leader is killed last."""
    end = time.perf_counter() + _STUBBORN
    while (pids := descendants(leader)) and time.perf_counter() < end:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    if mark:
        _kill_marked(mark)


def _kill_marked(mark: str) -> None:
    """Kills every process whose mark begins with `mark`, until none is found."""
    needle = f"{MARK}={mark}".encode()
    for _ in range(20):
        pids = [int(name) for name in os.listdir("/proc") if name.isdigit() and _carries(int(name), needle)]
        if not pids:
            return
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.005)


def _carries(pid: int, needle: bytes) -> bool:
    """Whether another process that still runs has `needle` in its environment."""
    if pid == os.getpid():
        return False
    try:
        if b"\nState:\tZ" in Path(f"/proc/{pid}/status").read_bytes()[:200]:
            return False
        return needle in Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False


def unlinked(leader: int, below: Sequence[int], limit: int, hidden: dict[int, float]) -> int:
    """Bytes of files without a name, on a disk or in memory, that the processes `below` the leader keep open.

    A process whose files cannot be seen for a second counts as more than `limit`, unless the leader's cannot be seen
    either, as with a setuid bubblewrap. `hidden` keeps since when, from one call to the next: the files of a process
    that is being started cannot be seen for a moment.
    """
    sizes: dict[tuple[int, int], int] = {}
    seen, now = _open_files(leader, sizes), time.monotonic()
    for pid in below:
        if _open_files(pid, sizes):
            hidden.pop(pid, None)
        elif seen and now - hidden.setdefault(pid, now) > HIDING:
            return limit + 1
    return sum(sizes.values())


def memory_used(pids: Sequence[int], limit: int) -> int:
    """Bytes of memory that the processes use. Only if that is over `limit` are pages that several of them share counted
    once: this takes longer."""
    used = sum(map(_resident, pids))
    return used if used <= limit else sum(map(_proportional, pids))


def _resident(pid: int) -> int:
    """Asks each thread, because the first one may have ended."""
    for task in _listing(f"/proc/{pid}/task") or ():
        fields = read_file(f"/proc/{pid}/task/{task}/statm").split()
        if fields and fields[1] != b"0":
            return int(fields[1]) * resource.getpagesize()
    return 0


def _proportional(pid: int) -> int:
    share = read_file(f"/proc/{pid}/smaps_rollup").partition(b"\nPss:")[2].split()
    return int(share[0]) * 1024 if share else _resident(pid)


def _open_files(pid: int, sizes: dict[tuple[int, int], int]) -> bool:
    """Whether the open files can be seen; checks each thread, because the first one may have ended."""
    for task in _listing(f"/proc/{pid}/task") or ():
        folder = f"/proc/{pid}/task/{task}/fd"
        names = _listing(folder)
        if names is None and not _is_dead(f"/proc/{pid}/task/{task}/stat"):
            return False
        for name in names or ():
            with contextlib.suppress(OSError):
                seen = Path(folder, name).stat()
                if seen.st_nlink == 0 and stat.S_ISREG(seen.st_mode):
                    sizes[seen.st_dev, seen.st_ino] = seen.st_blocks * 512
    return True


def _listing(folder: str) -> list[str] | None:
    """The names in `folder`; None without the permission to see them."""
    try:
        return os.listdir(folder)
    except PermissionError:
        return None
    except OSError:
        return []


def _is_dead(file: str) -> bool:
    try:
        return Path(file).read_bytes().rpartition(b")")[2].split()[0] in (b"Z", b"X")
    except (OSError, IndexError):
        return True
