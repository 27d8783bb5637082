"""What an MCP server's process may see: what its command is made of, and the paths that the command itself names."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from navigator_kernel.errors import FetchFailed
from navigator_kernel.values.job import Job

if TYPE_CHECKING:
    from navigator_kernel.settings import McpServer

Start: TypeAlias = "Callable[[str, McpServer, str, Path], tuple[str, ...]]"

SECONDS = 600  # of processor time for one connection, times the processors


def starter(check: Callable[[Job], None], contained: Callable[[Job], tuple[str, ...]]) -> Start:
    """What starts a server once `check` lets it: its argv as `contained` has it."""

    def start(name: str, server: McpServer, run: str, cwd: Path) -> tuple[str, ...]:
        job = server_job(name, server, run, cwd)
        check(job)
        return contained(job)

    return start


def server_job(name: str, server: McpServer, run: str, cwd: Path) -> Job:
    """The person agrees to the whole argv by its digest, and to the network where the server's settings grant it.

    FetchFailed where there is no such program.
    """
    argv = [server.command, *server.args]
    program = shutil.which(server.command)
    if program is None:
        message = f"the MCP server {name!r} cannot be started: no program is called {server.command!r}"
        raise FetchFailed(message, hint=f"check [mcp.servers.{name}] and PATH")
    place = _environment(Path(program))
    started = program if place is not None else os.path.realpath(program)
    return Job(
        actor="mcp_server",
        subject=name,
        digest=f"sha256:{hashlib.sha256(json.dumps(argv).encode()).hexdigest()}",
        run=run,
        argv=(started, *server.args),
        cwd=cwd,
        timeout=SECONDS,
        wants=("network",) if server.network else (),
        reads=(place or _prefix(Path(started)), *_named(server)),
    )


def _environment(program: Path) -> Path | None:
    """The virtual environment that a program lies in."""
    held = program.parent.parent
    return held if (held / "pyvenv.cfg").is_file() else None


def _prefix(program: Path) -> Path:
    """The folder that the program is installed in, where that holds nothing else of the person's."""
    held = program.parent.parent
    shared = {Path("/"), Path.home(), Path.home() / ".local"}
    return held if program.parent.name == "bin" and held not in shared else program


def _named(server: McpServer) -> Iterator[Path]:
    """Each argument that is a path, and the folder of a script: it may be made of several files."""
    for word in server.args:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            continue
        folder = path if path.is_dir() else path.parent
        yield path if _holds_home(folder) else folder


def _holds_home(folder: Path) -> bool:
    return Path.home().resolve().is_relative_to(folder.resolve())
