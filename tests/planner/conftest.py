"""A planner on SQLite, and on a real Postgres that the test starts if its programs are installed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.tools.factory import FunctionTool, ToolFactory
from navigator_planner.store import URL, open_sessions
from navigator_planner.toolkit import registry
from ports import free_port

Tools = Callable[[], dict[str, FunctionTool]]
PLACES = sorted(Path("/usr/lib/postgresql").glob("*/bin")) if Path("/usr/lib/postgresql").is_dir() else []


def found(program: str) -> str | None:
    return shutil.which(program) or next((str(place / program) for place in PLACES if (place / program).exists()), None)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the tests' own server; if they run as root, it runs as `postgres`, because it refuses root."""
    initdb, server = found("initdb"), found("postgres")
    if initdb is None or server is None:
        pytest.skip("postgresql is not installed")
    folder = tmp_path_factory.mktemp("postgres")
    before: list[str] = []
    if os.getuid() == 0:
        for place in (folder, *folder.parents[:3]):
            place.chmod(0o755)
        shutil.chown(folder, "postgres")
        before = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
    data = folder / "data"
    subprocess.run(
        [*before, initdb, "-D", str(data), "-U", "ann", "--auth=trust", "-E", "UTF8"], check=True, capture_output=True
    )
    words = [*before, server, "-D", str(data), "-k", str(folder), "-c", "fsync=off", "-h", "127.0.0.1"]
    with (folder.parent / "postgres.log").open("w+b") as log, ExitStack() as ends:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            process = subprocess.Popen([*words, "-p", str(port := free_port())], stdout=log, stderr=log)
            ends.callback(_ended, process)
            url = f"postgresql://ann@127.0.0.1:{port}/postgres"
            if _answers(url, process, end):
                yield url
                return
        log.seek(0)
        pytest.fail(f"postgres does not answer: {log.read().decode()}")


def _answers(url: str, process: subprocess.Popen[bytes], end: float) -> bool:
    """Whether the server answers before `end`; it exits if another program has its port."""
    import psycopg

    while process.poll() is None and time.monotonic() < end:
        with suppress(psycopg.OperationalError), psycopg.connect(url, connect_timeout=5):
            return True
        time.sleep(0.1)
    return False


def _ended(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGINT)  # ends the server without waiting for its clients
        process.wait(timeout=20)


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, FunctionTool]:
    """The tools by their names, on the test's database."""
    kind = getattr(request, "param", "sqlite")
    if kind == "postgres":
        monkeypatch.setenv(URL, request.getfixturevalue("postgres"))
        _emptied(request.getfixturevalue("postgres"))
    else:
        monkeypatch.delenv(URL, raising=False)
    sessions = open_sessions(tmp_path / "planner.sqlite", lambda: None)
    return {tool.name: tool for tool in ToolFactory(sessions).registry(registry())}


def _emptied(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP SCHEMA public CASCADE")
        database.execute("CREATE SCHEMA public")


def both(*, more: Any = ()) -> pytest.MarkDecorator:
    """Runs the test on SQLite, and in CI on Postgres as well."""
    return pytest.mark.parametrize(
        "planner", ["sqlite", pytest.param("postgres", marks=[pytest.mark.ci, *more])], indirect=True
    )
