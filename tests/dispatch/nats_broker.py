"""A real broker for tests: nats-server, in a process of its own, which a test can kill and start again."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

from ports import free_port

SERVER = Path(sys.executable).parent / "nats-server"


class Broker:
    """A nats-server with JetStream in `folder`, on one port for its life; with `configuration`, that of the file."""

    def __init__(self, folder: Path, configuration: Path | None = None, port: int = 0) -> None:
        self.folder, self.configuration = folder, configuration
        self.port = port or free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> Broker:
        given = ["-c", str(self.configuration)] if self.configuration else ["-js", "-sd", str(self.folder)]
        argv = [str(SERVER), "-a", "127.0.0.1", "-p", str(self.port), *given]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1):
                    return self
            except OSError:
                time.sleep(0.02)
        raise TimeoutError("nats-server did not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def wipe(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
