"""Starts resident processes as people do, and exchanges bytes with them."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from cli.support import MODULE, environment
from navigator_kernel.daemon.client import ask, socket_path

LIMIT = 60.0  # seconds; a busy machine is not a failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """A resident process that answers."""

    process: subprocess.Popen[str]
    root: Path
    path: Path

    def asked(self, text: str, k: int = 5) -> Any:
        return ask(text, str(self.root), k, timeout=LIMIT)

    def said(self, data: bytes) -> bytes:
        """Sends `data`; returns everything that comes back."""
        with self.link() as link:
            link.sendall(data)
            return heard(link)

    @contextmanager
    def link(self) -> Iterator[socket.socket]:
        with socket.socket(socket.AF_UNIX) as link:
            link.settimeout(LIMIT)
            link.connect(str(self.path))
            yield link

    def ended(self) -> int:
        return self.process.wait(LIMIT)


@contextmanager
def serving(root: Path, *, idle: int = 600) -> Iterator[Serving]:
    words = (*MODULE, "route", "--serve", "--json", "--idle", str(idle))
    process = subprocess.Popen(words, cwd=root, env=environment(), stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        told = json.loads("".join(islice(process.stdout, 4)))
        yield Serving(process=process, root=root, path=Path(told["socket"]))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@contextmanager
def place_of_socket(root: Path) -> Iterator[tuple[Path, socket.socket]]:
    """The path where a resident process of the project would listen, and a socket bound to it."""
    path = Path(socket_path(os.path.realpath(root)))
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        yield path, listener


@contextmanager
def answering(root: Path, answer: bytes) -> Iterator[None]:
    """Runs a stand-in for a resident process that gives one answer to all requests."""

    def answer_all() -> None:
        with suppress(OSError):  # the listener is shut down
            while True:
                link, _ = listener.accept()
                with link, suppress(ConnectionError):
                    link.recv(65536)
                    link.sendall(answer)

    with place_of_socket(root) as (_, listener):
        listener.listen()
        thread = threading.Thread(target=answer_all)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def begun_processes(root: Path) -> Iterator[Callable[[], int]]:
    """Yields a function that waits for the id of the process started on demand; ends that process."""
    lock = Path(socket_path(os.path.realpath(root))).with_suffix(".lock")

    def pid() -> int:
        until(lambda: lock.exists() and lock.read_text().isdigit())
        return int(lock.read_text())

    try:
        yield pid
    finally:
        with suppress(FileNotFoundError, ProcessLookupError):
            if str(root).encode() in Path(f"/proc/{pid()}/cmdline").read_bytes():
                os.kill(pid(), signal.SIGKILL)


def until(is_so: Callable[[], Any]) -> Any:
    """Waits until `is_so` returns a true value; returns it."""
    deadline = time.monotonic() + LIMIT
    while not (found := is_so()):
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.05)
    return found


def heard(link: socket.socket) -> bytes:
    """All bytes until the other side closes."""
    parts = []
    with suppress(ConnectionResetError):
        while part := link.recv(65536):
            parts.append(part)
    return b"".join(parts)
