"""Runs modules of the kernel in child processes, once or for one request after another, within limits."""

from __future__ import annotations

import fcntl
import json
import marshal
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, NoReturn

from navigator_kernel.adapters.processes.process import MARK, kill_tree
from navigator_kernel.errors import KernelError, TimedOut
from navigator_kernel.text import clean, numbered, shorten

STARTING = 60.0  # seconds in which a process must be ready for its first question
_HEAD = 8  # bytes of a message's length
_READY = b"\n"  # a process writes it when it is ready for questions
_CHUNK = 1024 * 1024
_ANSWER_LIMIT = 64 * 1024 * 1024  # bytes
_HINT = "report it with the text that it was asked about"


class ModuleChild:
    """`module` calls `serve`. The process is started by `start` or the first question, and again after it was killed;
    `memory` is in bytes of address space. Each instance has its own process, so that several can work at the same time.
    """

    def __init__(self, module: str, *, memory: int) -> None:
        self._module, self._memory = module, memory
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False
        self._end: Callable[[], object] = lambda: None

    def start(self) -> None:
        """Starts the process and returns at once; the module prepares itself in the meantime."""
        with self._lock:
            self._started()

    def ask(self, question: Any, *, seconds: int) -> Any:
        """The module's answer. TimedOut after `seconds`, not counting the start; KernelError if the process ended. It
        is dead after both."""
        with self._lock:
            process = self._started()
            try:
                if not self._is_ready:
                    _part(_open(process.stdout).fileno(), len(_READY), time.monotonic() + STARTING)
                    self._is_ready = True
                deadline = time.monotonic() + seconds
                body = marshal.dumps((seconds, question))
                fd = _open(process.stdin).fileno()
                for part in (len(body).to_bytes(_HEAD), body):
                    rest = memoryview(part)
                    while rest:
                        _wait(fd, select.POLLOUT, deadline)
                        rest = rest[os.write(fd, rest[:_CHUNK]) :]
                fd = _open(process.stdout).fileno()
                size = int.from_bytes(_part(fd, _HEAD, deadline))
                if size > _ANSWER_LIMIT:
                    raise KernelError(f"its answer has {numbered(size, 'byte')}", hint=_HINT)
                return json.loads(_part(fd, size, deadline))
            except TimeoutError:
                raise self._too_slow(seconds) from None
            except (OSError, EOFError):
                code = self._killed(process)
                if code == -signal.SIGXCPU:
                    raise self._too_slow(seconds) from None
                raise KernelError(f"its process ended with {code}", hint=_HINT) from None
            except BaseException:
                self._killed(process)
                raise

    def kill(self) -> None:
        """Kills the process; a question in another thread gets KernelError."""
        if (process := self._process) is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)

    def close(self) -> None:
        """Kills the process group."""
        with self._lock:
            if self._process is not None:
                self._killed(self._process)

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = start_module(self._module, seconds=0, memory=self._memory)
            self._is_ready = False
            for stream in (self._process.stdin, self._process.stdout):
                os.set_blocking(_open(stream).fileno(), False)
            self._end = weakref.finalize(self, _kill, self._process)  # if `close` is not called, and when Python exits
        return self._process

    def _killed(self, process: subprocess.Popen[bytes]) -> int:
        """Kills the process and returns its exit code. If it died by itself, waits a moment: its streams close before
        it exits."""
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.2 if bool(_events(_open(process.stdout).fileno(), 0, 0) & select.POLLHUP) else 0)
        self._end()
        self._process = None
        return process.wait()

    def _too_slow(self, seconds: int) -> TimedOut:
        if self._process is not None:
            self._killed(self._process)
        return TimedOut(f"it took longer than {numbered(seconds, 'second')}", hint=_HINT)


def serve(answer: Callable[[Any], dict[str, Any]]) -> NoReturn:
    """Answers each question from stdin until stdin is closed. While it works, the process ends as soon as the other end
    of its pipe is closed, whatever it is doing. Printed output goes to stderr."""
    out = os.dup(1)
    os.dup2(2, 1)
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(out, fcntl.F_SETOWN, os.getpid())
    os.write(out, _READY)
    while head := _all_of(_HEAD):
        seconds, question = marshal.loads(_all_of(int.from_bytes(head)))  # noqa: S302 - the kernel wrote it
        # Limits the CPU time from now on, in case the asker cannot stop the process
        used = resource.getrusage(resource.RUSAGE_SELF)
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        soft = int(used.ru_utime + used.ru_stime) + seconds + 1
        resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))
        _die_with_asker(out, on=True)
        reply = json.dumps(answer(question)).encode()
        _die_with_asker(out, on=False)
        message = memoryview(len(reply).to_bytes(_HEAD) + reply)
        while message:
            message = message[os.write(out, message) :]
    os._exit(0)


def _die_with_asker(out: int, *, on: bool) -> None:
    """With `on`, SIGIO ends this process when the other end of `out` is closed (fcntl(2), O_ASYNC); a thread that
    watches would have to wait until a pattern has matched. `out` is the pipe of the answers, which nobody reads during
    the work: the pipe of the questions also sends SIGIO for each write, sometimes after it was read."""
    flags = fcntl.fcntl(out, fcntl.F_GETFL)
    fcntl.fcntl(out, fcntl.F_SETFL, flags | os.O_ASYNC if on else flags & ~os.O_ASYNC)
    if on and _events(out, 0, 0):
        os._exit(0)  # the pipe was closed just before


def _all_of(size: int) -> bytes:
    """The next `size` bytes of stdin; fewer if it ends."""
    data = bytearray()
    while len(data) < size and (chunk := os.read(0, min(size - len(data), _CHUNK))):
        data += chunk
    return bytes(data)


def _part(fd: int, size: int, deadline: float) -> bytes:
    data = bytearray()
    while len(data) < size:
        _wait(fd, select.POLLIN, deadline)
        chunk = os.read(fd, min(size - len(data), _CHUNK))
        if not chunk:
            raise EOFError
        data += chunk
    return bytes(data)


def _wait(fd: int, event: int, deadline: float) -> None:
    remaining = deadline - time.monotonic()
    if remaining <= 0 or not _events(fd, event, remaining):
        raise TimeoutError


def _events(fd: int, event: int, seconds: float) -> int:
    """The events of `fd` within `seconds`; a closed pipe is always reported."""
    poll = select.poll()
    poll.register(fd, event)
    events = poll.poll(seconds * 1000)
    return events[0][1] if events else 0


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise ValueError("it was started without this stream")
    return stream


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout):
        with suppress(OSError):
            _open(stream).close()
    process.wait()


# Runs a module of the kernel in a child process, once, with limits of time and memory.

_SAID = 300  # characters from the end of a failed child's stderr


def call_module(module: str, question: dict[str, Any], *, seconds: int, memory: int) -> dict[str, Any]:
    """Runs `python -m module` with `question` marshalled on stdin, and returns the JSON object that it answers.
    `memory` is in bytes of address space. TimedOut after `seconds`, with its process group dead; KernelError if it
    fails, or if its answer is not an object."""
    mark = os.urandom(16).hex()
    process = start_module(module, seconds=seconds, memory=memory, mark=mark, errors=subprocess.PIPE)
    try:
        out, err = process.communicate(marshal.dumps(question), timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise TimedOut(f"it took longer than {numbered(seconds, 'second')}", hint="leave the plugin out") from error
    finally:
        kill_tree(process.pid, mark)
        with suppress(ValueError, OSError, subprocess.TimeoutExpired):
            process.communicate(timeout=1)  # reads the rest of the pipes, which another process may hold open
        process.wait()
        for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(OSError):
                stream.close()
    if process.returncode:
        complaint = shorten(clean(err.decode("utf-8", "replace")[-_SAID:]), _SAID)
        raise KernelError(f"it ended with {process.returncode}: {complaint}", hint="leave the plugin out")
    try:
        answer = json.loads(out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise KernelError("it answered no object", hint="leave the plugin out")
    return answer


def start_module(
    module: str, *, seconds: int, memory: int, mark: str = "", errors: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Starts `python -m module` in a fresh interpreter and a session of its own, with no open files but its streams. It
    may use `seconds` of processor time and one more, 0 for no limit; `mark` is for `kill_tree`."""
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START, str(memory), str(seconds), module, json.dumps(sys.path)],
        env={**os.environ, MARK: mark},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        start_new_session=True,
    )


# Sets the limits before it imports any code of a plugin, with the same import path as this process
_START = """
import json, resource, runpy, sys
memory, seconds, module = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
limits = [(resource.RLIMIT_AS, memory), (resource.RLIMIT_CORE, 0)]
for which, value in limits + [(resource.RLIMIT_CPU, seconds + 1)] * (seconds > 0):
    hard = resource.getrlimit(which)[1]
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))
sys.path[:] = json.loads(sys.argv[4])
runpy.run_module(module, run_name="__main__")
"""
