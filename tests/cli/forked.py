"""Sends one command line after another to the command server of this test process."""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from threading import get_ident
from typing import IO, NamedTuple

SERVER = Path(__file__).with_name("command_server.py")
# Prefixes of variables that Python reads at its start: a command with other values needs its own Python
AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC")


MOST = 150_000  # bytes of one request, which is one message


class Server(NamedTuple):
    """A command server; `fixed` is the part of its environment that no request changes."""

    process: subprocess.Popen[bytes]
    requests: socket.socket
    fixed: Mapping[str, str]


def run_command(
    args: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes,
    timeout: float,
    start: Mapping[str, str],
    script: str = "",
) -> subprocess.CompletedProcess[bytes]:
    """Does what `subprocess.run` does for `python -m navigator_kernel.cli.main`, or a script, with captured output;
    raises TimeoutExpired likewise. `start` is the usual environment: a command whose Python would start the same in it
    needs no new Python."""
    server = _server("asking" if _asks(args, env) else "plain", tuple(sorted(_fixed(start).items())), get_ident())
    request = json.dumps({"args": list(args), "cwd": str(cwd), "env": dict(env), "script": script}).encode()
    if _fixed(env) != server.fixed or len(request) > MOST:
        argv = [sys.executable, *([script] if script else ["-m", "navigator_kernel.cli.main"]), *args]
        return subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, timeout=timeout)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        socket.send_fds(server.requests, [request], [stream.fileno() for stream in (given, out, err)])
        code = _exit_code(server, timeout)
        if code is None:
            raise subprocess.TimeoutExpired(list(args), timeout)
        return subprocess.CompletedProcess(list(args), code, _content(out), _content(err))


def _asks(args: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether the command may ask a model or an MCP server; a wrong guess only costs time."""
    settings = Path(env.get("XDG_CONFIG_HOME", "")) / "navigator" / "config.toml"
    return args[:1] == ("mcp",) or settings.is_file()


def _exit_code(server: Server, timeout: float) -> int | None:
    """The exit code, or None for a command that took too long and was killed."""
    pid = int(server.requests.recv(64))
    server.requests.settimeout(timeout)
    try:
        return int(server.requests.recv(64))
    except TimeoutError:
        os.kill(pid, signal.SIGKILL)
        server.requests.settimeout(None)
        server.requests.recv(64)
        return None
    finally:
        server.requests.settimeout(None)


def _content(stream: IO[bytes]) -> bytes:
    stream.seek(0)
    return stream.read()


def _fixed(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(AT_START)}


@cache
def _server(kind: str, start: tuple[tuple[str, str], ...], thread: int) -> Server:
    """Starts one server for each kind (`command_server.ASKING`), environment and thread, on first use. It ends with this
    process at the latest."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    env = {name: value for name, value in os.environ.items() if not name.startswith(AT_START)} | dict(start)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, str(SERVER), str(theirs.fileno()), kind], env=env, pass_fds=[theirs.fileno()]
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return Server(process, ours, _fixed(env))
