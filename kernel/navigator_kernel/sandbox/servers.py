"""The files that an MCP server's process may see: those of its command, and those that the command names."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from msgspec.structs import replace

from navigator_kernel.adapters.processes.process import environment
from navigator_kernel.adapters.secrets.redaction import found
from navigator_kernel.errors import ConnectionFailed
from navigator_kernel.sandbox.confinement import SYSTEM, confinement, covers
from navigator_kernel.sandbox.contain import exceeded
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.job import Exceeded, Job

if TYPE_CHECKING:
    from navigator_kernel.values.mcp import McpServer

Started: TypeAlias = "tuple[tuple[str, ...], Mapping[str, str], Callable[[int], Exceeded]]"
Start: TypeAlias = "Callable[[str, McpServer, str, Path, Path], Started]"

PROJECT = "project"  # the origin of a server that a project's file defines
FOLDER = "SERVER_FOLDER"  # the reference to the server's own folder
_SECRET_NAME = lazy_compile(r"key|token|secret|passw|auth|credential", re.IGNORECASE)
SECONDS = 600  # seconds of processor time for one connection, times the number of processors


def starter(
    check: Callable[[Job], None],
    contained: Callable[[Job], tuple[str, ...]],
    secret: Callable[[str], str | None],
    project: Path | None = None,
) -> Start:
    """A function that prepares the start of a server after `check` has allowed it, with a scratch folder for this
    process alone. It returns the argv from `contained`, the environment, and a function that checks whether the process
    with a given id is over its limit; all are empty for a server with an address. `secret` returns the values of
    references. A server that may read all of `project` does not see the files of secrets in it."""

    def start(name: str, server: McpServer, run: str, cwd: Path, scratch: Path) -> Started:
        asked = request(name, server, run, cwd)
        check(asked)
        if server.url:
            return (), {}, lambda _pid: ""
        held = server.resolved(lambda word: str(cwd) if word == FOLDER else secret(word))
        job = replace(server_job(name, held, run, cwd), scratch=scratch, project=project)
        if server.origin == PROJECT:  # the question did not show the values of references in its arguments
            job = replace(job, reads=asked.reads)
        return contained(job), environment(job, ""), _limit(job)

    return start


def _limit(job: Job) -> Callable[[int], Exceeded]:
    """Checks the limit that the sandbox does not: the server's stored files and its scratch folder together."""
    held, hidden = confinement(replace(job, reads=())), dict[int, float]()
    return lambda pid: exceeded(held, pid, hidden)


def request(name: str, server: McpServer, run: str, cwd: Path) -> Job:
    """The job that the person is asked about: the whole command or address, with references as they are written.
    Secrets in the person's own settings are not shown. The values in a project's file are shown in full, as the name of
    a variable does not prove that its value is a secret. Consent to such a server also covers the real paths that it
    reads, as a link in a project may later lead elsewhere."""
    brought = server.origin == PROJECT
    show = _whole if brought else _shown
    reads = tuple(_mounted(server))
    given = [show(key, value) for key, value in sorted({**server.env, **server.headers}.items())]
    return Job(
        actor="mcp_server",
        subject=name,
        digest=_with_paths(server.digest, reads) if brought else server.digest,
        run=run,
        argv=(server.url, *given) if server.url else (*given, server.command, *server.args),
        cwd=cwd,
        timeout=SECONDS,
        wants=("network",) if server.network or server.url else (),
        reads=reads,
        for_order=True,  # each call of its tools is asked about
    )


def is_secret(key: str, value: str) -> bool:
    """Whether a value in a file is a secret, which is never shown; a reference is not one."""
    return "${" not in value and bool(_SECRET_NAME.search(key) or found(f"{key}={value}") or found(value))


def _whole(key: str, value: str) -> str:
    return f"{key}={value}"


def _shown(key: str, value: str) -> str:
    return f"{key}={'(a secret)' if is_secret(key, value) else value}"


def server_job(name: str, server: McpServer, run: str, cwd: Path) -> Job:
    """The process of a server whose references are resolved. ConnectionFailed if there is no such program."""
    program = _program(server)
    if program is None:
        message = f"the MCP server {name!r} cannot be started: no program is called {server.command!r}"
        raise ConnectionFailed(message, hint=f"check the command of {name!r} and PATH")
    started, place = program
    return Job(
        actor="mcp_server",
        subject=name,
        digest=server.digest,
        run=run,
        argv=(started, *server.args),
        cwd=cwd,
        timeout=SECONDS,
        wants=("network",) if server.network else (),
        reads=(place, *_named(server)),
        env=server.env,
    )


def _mounted(server: McpServer) -> Iterator[Path]:
    """The real paths that its process sees besides the system's own: its program's files, and those that it names."""
    program = None if server.url else _program(server)
    named = [] if server.url else [*([program[1]] if program else []), *_named(server)]
    for path in dict.fromkeys(Path(os.path.realpath(path)) for path in named):
        if not covers(map(Path, SYSTEM), path):
            yield path


def _with_paths(digest: str, reads: tuple[Path, ...]) -> str:
    body = "\0".join((digest, *map(str, reads))).encode("utf-8", "surrogateescape")
    return f"sha256:{sha256(body).hexdigest()}"


def _program(server: McpServer) -> tuple[str, Path] | None:
    """Its program, and the folder or file with the program's parts; None if there is no such program."""
    found = shutil.which(server.command)
    if found is None:
        return None
    place = _environment(Path(found))
    started = found if place is not None else os.path.realpath(found)
    return started, place or _prefix(Path(started))


def _environment(program: Path) -> Path | None:
    """The virtual environment that a program lies in."""
    held = program.parent.parent
    return held if (held / "pyvenv.cfg").is_file() else None


def _prefix(program: Path) -> Path:
    """The folder that the program is installed in, if nothing else of the person's is there; else the program."""
    held = program.parent.parent
    shared = {Path("/"), Path.home(), Path.home() / ".local"}
    return held if program.parent.name == "bin" and held not in shared else program


def _named(server: McpServer) -> Iterator[Path]:
    """Each argument that is an existing absolute path. For a script in the person's own settings, its folder, as it may
    consist of several files; for an argument in a project's file, exactly that path."""
    for word in server.args:
        path = Path(word)
        if not path.is_absolute() or not path.exists():
            continue
        if server.origin == PROJECT:
            yield path
            continue
        folder = _package(path) or (path if path.is_dir() else path.parent)
        yield path if _holds_home(folder) else folder


def _package(path: Path) -> Path | None:
    """The outermost `node_modules` above a script, where it finds other packages; None if there is none."""
    above = [folder for folder in path.parents if folder.name == "node_modules"]
    return above[-1] if above else None


def _holds_home(folder: Path) -> bool:
    return Path.home().resolve().is_relative_to(folder.resolve())
