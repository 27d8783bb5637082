"""Runs a command line on its own pseudo-terminal: reads its output, and types once the expected text is there."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from cli.support import Place, environment

LIMIT = 30  # seconds that anything may take to appear
ON_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
)


@dataclass(kw_only=True)
class Terminal:
    """A terminal as a person uses it. `seen` is the output that no `wait_for` has consumed."""

    process: subprocess.Popen[bytes]
    master: int
    seen: str = ""
    decoder: codecs.IncrementalDecoder = field(default_factory=lambda: codecs.getincrementaldecoder("utf-8")("replace"))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, wanted: str) -> str:
        """Waits for `wanted`; returns the output up to and including it."""
        assert self._comes(wanted, LIMIT), f"{wanted!r} did not appear: {self.seen!r}"
        shown, mark, self.seen = self.seen.partition(wanted)
        return shown + mark

    def _comes(self, wanted: str, seconds: float) -> bool:
        """Whether `wanted` is shown within that many seconds."""
        end = time.monotonic() + seconds
        while wanted not in self.seen:
            ready, _, _ = select.select([self.master], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                return False
            try:
                self.seen += self.decoder.decode(os.read(self.master, 65_536))  # a character may come in parts
            except OSError as error:
                raise AssertionError(f"it ended before {wanted!r}: {self.seen!r}") from error
        return True

    def interrupt(self) -> None:
        """Presses Ctrl-C at a prompt until a new one appears: a signal between prompt and read can be lost."""
        for _ in range(5):
            self.type("\x03")
            if self._comes("> ", 2.0):
                break
        self.wait_for("> ")

    def stop(self) -> str:
        """Presses Ctrl-C until the process ends: a signal between a question and the read of its answer can be lost."""
        for _ in range(5):
            self.type("\x03")
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(2.0)
                break
        return self.rest()

    def rest(self) -> str:
        """The output until the process ends."""
        seen = self.seen.encode()
        with suppress(OSError):  # EIO: the terminal is closed
            while part := os.read(self.master, 65_536):
                seen += part
        self.process.wait(LIMIT)
        return seen.decode("utf-8", "replace").replace("\r\n", "\n")

    def end(self) -> int:
        """Presses Ctrl-D; returns the exit code."""
        self.type("\x04")
        return self.process.wait(LIMIT)


@contextmanager
def terminal(place: Place, *words: str, columns: int = 80, env: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """Runs `navigator <words>` on 24 lines; the terminal is dumb unless `env` says otherwise."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    argv = [sys.executable, "-c", ON_TERMINAL, *place.program, *words]
    held = environment({"TERM": "dumb", **(env or {})})
    process = subprocess.Popen(
        argv, cwd=place.root, env=held, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    try:
        yield Terminal(process=process, master=master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
