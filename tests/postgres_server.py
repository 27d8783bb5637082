"""A real Postgres that the tests start, if its programs are installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from navigator_postgres.plugin import LEASE_SECONDS, PROJECT_ID, URL
from navigator_postgres.stores import PostgresStores
from ports import free_port

PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").is_dir() else []


def found(program: str) -> str | None:
    return shutil.which(program) or next((str(place / program) for place in PLACES if (place / program).exists()), None)


class PostgresServer:
    """A server with its data in `folder`; if the tests run as root, it runs as `postgres`, because it refuses root."""

    def __init__(self, folder: Path) -> None:
        initdb, server = found("initdb"), found("postgres")
        if initdb is None or server is None:
            pytest.skip("postgresql is not installed")
        before: list[str] = []
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
            before = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        data = str(folder / "data")
        words = [*before, initdb, "-D", data, "-U", "ann", "--auth=trust", "-E", "UTF8"]
        subprocess.run(words, check=True, capture_output=True)
        self._words = [*before, server, "-D", data, "-k", str(folder), "-c", "fsync=off", "-h", "127.0.0.1"]
        self._log = folder / "log"
        self.process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def start(self) -> None:
        """Starts it, on the port that it had before if there was one; returns when it answers."""
        end = time.monotonic() + 60
        while time.monotonic() < end:
            port = int(self.url.rpartition(":")[2].partition("/")[0]) if self.url else free_port()
            with self._log.open("ab") as log:
                self.process = subprocess.Popen([*self._words, "-p", str(port)], stdout=log, stderr=log)
            url = f"postgresql://ann@127.0.0.1:{port}/postgres"
            if _answers(url, self.process, end):
                self.url = url
                return
            self.stop()
        pytest.fail(f"postgres does not answer: {self._log.read_text()}")

    def stop(self) -> None:
        """Ends it at once, without waiting for its clients."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=20)


def _answers(url: str, process: subprocess.Popen[bytes], end: float) -> bool:
    """Whether the server answers before `end`; it exits if another program has its port."""
    import psycopg

    while process.poll() is None and time.monotonic() < end:
        with suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5):
            return True
        time.sleep(0.1)
    return False


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """The tests' own server, in a folder that its user can reach."""
    with TemporaryDirectory(prefix="navigator-postgres-") as folder:
        server = PostgresServer(Path(folder))
        try:
            server.start()
            yield server
        finally:
            server.stop()


@pytest.fixture(scope="session")
def postgres(postgres_server: PostgresServer) -> str:
    """The address of the tests' own server."""
    return postgres_server.url


def new_project(monkeypatch: pytest.MonkeyPatch, url: str) -> PostgresStores:
    """The stores of a new project, which this process and those that it starts share."""
    monkeypatch.setenv(URL, url)
    monkeypatch.setenv(PROJECT_ID, f"p{os.urandom(6).hex()}")
    monkeypatch.setenv(LEASE_SECONDS, "2")
    return PostgresStores(url, os.environ[PROJECT_ID], 2)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.ci)])
def shared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> PostgresStores | None:
    """Runs the test on SQLite, and in CI on Postgres as well."""
    if request.param == "sqlite":
        return None
    return new_project(monkeypatch, request.getfixturevalue("postgres"))
