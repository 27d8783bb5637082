"""Serves `navigator route` for one project from a process that stays until it is idle."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from msgspec import Struct

from navigator_kernel.adapters.files.database import file_lock
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.adapters.files.writer import Stamp, stamp
from navigator_kernel.cli.project import App
from navigator_kernel.config.settings import PROJECT_FILE, user_file
from navigator_kernel.daemon.client import PROTOCOL, REQUEST_LIMIT, is_ours, is_private, socket_path
from navigator_kernel.errors import Busy, KernelError, NotFound, Refused, UsageProblem

Routed = Callable[[App, str, int, "ProjectFiles | None"], Mapping[str, Any]]

PATIENCE = 5.0  # seconds that a client has to send its request, and again to read the answer
PATH_LIMIT = 107  # bytes of a socket's path, the system's limit
SESSIONS = 200  # sessions of hosts whose skill is remembered
RECENT = timedelta(days=1)  # age of a workflow run that is still named to a host
LOOK = 1.0  # seconds between two checks for changed files
_TICK = 1.0  # seconds between two checks of the clock and the socket
_QUEUE = 64  # clients that can wait for a connection
_SHORTER = "set XDG_RUNTIME_DIR to a folder with a shorter path"


def serve(app: App, routed: Routed, *, idle: float, ready: Callable[[Path], None]) -> None:
    """Answers until nobody has asked for `idle` seconds, a signal ends it, or its socket was replaced; calls `ready`
    when it can answer. The errors of `navigator route`, and Busy if another process answers for this project."""
    if any(app.flags.values()):
        raise UsageProblem("--serve takes no settings from flags", hint="navigator config set KEY VALUE keeps them")
    path = Path(socket_path(str(app.root)))
    if len(os.fsencode(path)) > PATH_LIMIT:
        raise KernelError(f"{str(path)!r} is over the {PATH_LIMIT} bytes that a socket may have", hint=_SHORTER)
    folder = path.parent
    try:
        folder.mkdir(0o700, exist_ok=True)
    except OSError as error:
        hint = "set XDG_RUNTIME_DIR to a folder that is there and is yours"
        raise KernelError(f"cannot make {str(folder)!r}: {error.strerror}", hint=hint) from error
    if not is_private(str(folder)):
        raise Refused(
            f"{str(folder)!r} is not a folder that only you may enter", hint="remove it; it will be recreated"
        )
    answers = _Answers(root=app.root, routed=routed)
    answers.refresh()
    with ExitStack() as open_files:
        try:  # one process serves a project
            open_files.enter_context(file_lock(path.with_suffix(".lock"), timeout=0))
        except Busy as error:
            hint = "navigator route --resident asks it; it ends by itself when nobody does"
            raise Busy(f"a process already serves {str(app.root)!r} already", hint=hint) from error
        listener = open_files.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        try:
            path.unlink(missing_ok=True)  # that of a killed process
            listener.bind(str(path))
            path.chmod(0o600)
            listener.listen(_QUEUE)
        except OSError as error:
            what = f"cannot listen at {str(path)!r}: {error.strerror}"
            raise KernelError(what, hint="remove the existing file") from error
        own = stamp(path)
        try:
            asyncio.run(_Desk(answers=answers, idle=idle, path=path).open(listener, ready))
        finally:
            if stamp(path) == own:
                path.unlink(missing_ok=True)


class _Answers(Struct, kw_only=True):
    """Answers requests, one line each; services are created again when settings change."""

    root: Path
    routed: Routed
    _app: App | None = None
    _seen: tuple[Stamp | None, ...] = ()
    _looked: float = float("-inf")
    _named: dict[str, bytes] = {}

    def to(self, line: bytes) -> bytes:
        try:
            text, k, base, session = self._asked(line)
            app = self.refresh()
            if session and not text:
                named, run = self._named.get(session), _under_way(app)
                body = {"exit_code": 0 if named or run else NotFound.exit_code, **json.loads(named or b"{}")}
                return _line({"kind": "direct", **body, **run} if named or run else body)
            with app.bare.catalogue.glance():
                route = self.routed(app, text, k, ProjectFiles(app.root, base))
            answer = _line({"exit_code": 0, **route})
            if session and route.get("kind") == "skills":
                self._named.pop(session, None)
                self._named[session] = answer
                if len(self._named) > SESSIONS:
                    del self._named[next(iter(self._named))]
            return answer
        except KernelError as error:
            return _refusal(error)

    def look(self) -> None:
        """Checks for changed files, so that the next request need not wait for it."""
        if self._app is not None and time.monotonic() - self._looked > LOOK:
            self._app.bare.catalogue.list_resources()
            self._looked = time.monotonic()

    def warm(self) -> None:
        """Reads the skills and makes the index, so that the first request need not wait for it."""
        self.routed(self.refresh(), "which skill is meant", 1, None)

    def refresh(self) -> App:
        """The project with its current settings; an error in them is raised each time until it is fixed."""
        watched = (user_file(), self.root / PROJECT_FILE, self.root / "docs" / "commands.md", self.root / "bin")
        seen = tuple(map(stamp, watched))
        if self._app is None or seen != self._seen:
            self._app = None
            app = App(root_flag=str(self.root))
            _ = app.settings
            self._app, self._seen = app, seen
        return self._app

    def _asked(self, line: bytes) -> tuple[str, int, Path, str]:
        """The message, the number of candidates wanted, the folder that file names are relative to, and the session."""
        try:
            held = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageProblem("the request is not a line of JSON", hint="one object, one line") from error
        match {"k": 5, "base": str(self.root), "session": "", **held} if isinstance(held, dict) else held:
            case {"v": version} if version != PROTOCOL:
                raise UsageProblem(f"protocol {version!r} is not supported", hint=f"protocol {PROTOCOL} is")
            case {"v": _, "root": str(root)} if root != str(self.root):
                raise NotFound(f"{root!r} is not served here", hint=f"this is {str(self.root)!r}")
            case {"v": _, "root": _, "text": str(text), "k": int(k), "base": str(base), "session": str(session)} if (
                1 <= k <= 100
            ):
                return text, k, Path(base), session
        raise UsageProblem("the request does not fit", hint='{"v": 1, "root": …, "text": …, "k": 1 to 100}')


def _under_way(app: App) -> dict[str, Any]:
    """The newest workflow run with open steps that was touched within RECENT: `{run, steps}`; empty for none."""
    since = (datetime.now(UTC) - RECENT).isoformat()
    for run in app.bare.journal.listed():
        if run.updated > since and (steps := run.open_steps):
            return {"run": run.token, "steps": steps}
    return {}


class _Desk(Struct, kw_only=True):
    """The server: several clients, answered one after another in one thread."""

    answers: _Answers
    idle: float
    path: Path
    _last: float = 0.0

    async def open(self, listener: socket.socket, ready: Callable[[Path], None]) -> None:
        loop, told, own = asyncio.get_running_loop(), asyncio.Event(), stamp(self.path)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, told.set)
        self.answers.warm()
        server = await asyncio.start_unix_server(self._meet, sock=listener, limit=REQUEST_LIMIT)
        ready(self.path)
        self._last = time.monotonic()
        while not told.is_set() and stamp(self.path) == own and time.monotonic() - self._last <= self.idle:
            with suppress(TimeoutError):
                await asyncio.wait_for(told.wait(), _TICK)
        server.close()

    async def _meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one client: one request, one answer."""
        link, transport = writer.get_extra_info("socket"), writer.transport
        transport.set_write_buffer_limits(0)  # so that `drain` waits until all is sent
        try:
            if not is_ours(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)):
                return
            try:
                line = await asyncio.wait_for(reader.readline(), PATIENCE)
            except ValueError:
                hint = "leave something out"
                answer = _refusal(UsageProblem(f"a request has at most {REQUEST_LIMIT} bytes", hint=hint))
            else:
                answer = self.answers.to(line) if line else b""
                self._last = time.monotonic() if line else self._last
            writer.write(answer)
            await asyncio.wait_for(writer.drain(), PATIENCE)
        except (ConnectionError, TimeoutError):
            return  # the client has disconnected, or its time is over
        finally:
            transport.abort()
            self.answers.look()


def _refusal(error: KernelError) -> bytes:
    return _line({"error": error.to_dict(), "exit_code": error.exit_code})


def _line(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, default=str).encode() + b"\n"
