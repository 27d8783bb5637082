"""Asks a project's resident process (`navigator route --serve`) for the route of a message.

It is for hooks, which have 50 ms: it imports almost nothing, and returns None for every failure.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time

from navigator_kernel import __version__

PROTOCOL = 1  # one line of JSON in each direction
REQUEST_LIMIT = 64 * 1024  # bytes of a line
ANSWER_LIMIT = 4 * 1024 * 1024  # bytes of a line
AGAIN = 300.0  # seconds after a start in which the client does not wait for another start
_PAUSE = 0.02  # seconds between attempts to connect

# Settings, trust and the person's skills are below these
_HOMES = "HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "KIMI_CODE_HOME"
_SHARED = "/tmp", "/var/tmp"  # noqa: S108 - is_private checks a folder in them before use
_FNV, _PRIME = 0xCBF29CE484222325, 0x100000001B3  # FNV-1a of 64 bits; hashlib would cost 5 ms
_KIND, _FOLDER, _OTHERS = 0o170000, 0o040000, 0o077  # as in the module `stat`


def ask(
    text: str, root: str, k: int = 5, timeout: float = 0.05, *, session: str = "", start: bool = False, wait: float = 0
) -> dict[str, object] | None:
    """The document that `navigator route --json` prints for `text` in the project at `root`, within `timeout` seconds.

    With `session`, a host's own name of one, the process remembers the skill that fits; an empty text gets that answer
    again. None for every failure.

    With `start`, a process is started if none answers, and its answer is waited for up to `wait` seconds; there is no
    wait if a process was started within the last AGAIN seconds and has ended.
    """
    try:
        root = os.path.realpath(root)
        request = {"v": PROTOCOL, "root": root, "base": os.path.realpath(os.curdir), "text": text, "k": k}
        if session:
            request["session"] = session
        line = json.dumps(request, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        path = socket_path(root)
        try:
            return _told(_exchanged(path, line, time.monotonic() + timeout))
        except (FileNotFoundError, ConnectionRefusedError):
            if not start:
                return None
        until = time.monotonic() + (wait if wait and _is_first(path) else 0)
        begin(root, "route", "--serve")
        # The answer of a process that was just started; it accepts connections before it is ready to answer
        while time.monotonic() + _PAUSE < until:
            try:
                return _told(_exchanged(path, line, until))
            except (FileNotFoundError, ConnectionRefusedError):
                time.sleep(_PAUSE)
        return None
    except (OSError, ValueError, RecursionError, NotImplementedError):
        return None


def _is_first(path: str) -> bool:
    """Whether no process was started for this socket within AGAIN seconds; records that one is started now."""
    folder, mark = path.rpartition("/")[0], f"{path}.started"
    os.makedirs(folder, 0o700, exist_ok=True)  # noqa: PTH103 - importing pathlib takes 4 ms
    if not is_private(folder):
        raise ValueError(folder)
    try:
        recent = 0 <= time.time() - os.lstat(mark).st_mtime < AGAIN
    except FileNotFoundError:
        recent = False
    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    os.utime(mark, follow_symlinks=False)
    return not recent


def socket_path(root: str) -> str:
    """The socket of the process for the project at the real path `root`; it differs for each release and environment
    that would answer differently."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    shared = next((place for place in _SHARED if os.access(place, os.W_OK | os.X_OK)), _SHARED[0])
    folder = f"{runtime}/navigator" if runtime.startswith("/") else f"{shared}/navigator-{os.geteuid()}"
    named = sorted(name for name in os.environ if name.startswith("NAVIGATOR_") and name != "NAVIGATOR_ROOT")
    settings = (f"{name}={os.environ.get(name)}" for name in (*_HOMES, *named))
    key = _FNV
    for byte in os.fsencode("\0".join((__version__, __file__, root, *settings))):
        key = (key ^ byte) * _PRIME % 2**64
    return f"{folder}/{key:016x}.sock"


def is_private(folder: str) -> bool:
    """Whether it is a folder, not a link, ours, and closed to all others; FileNotFoundError if it does not exist."""
    seen = os.lstat(folder)
    return seen.st_mode & _KIND == _FOLDER and seen.st_uid == os.geteuid() and not seen.st_mode & _OTHERS


def is_ours(credentials: bytes) -> bool:
    """Whether the peer with these SO_PEERCRED, three numbers of 4 bytes, belongs to the same user."""
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.geteuid()


def _exchanged(path: str, line: bytes, until: float) -> bytes:
    """Sends `line` and returns the answer. OSError or ValueError if it must not be sent or time runs out."""
    if len(line) > REQUEST_LIMIT or not is_private(path.rpartition("/")[0]):
        raise ValueError(path)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
        link.settimeout(until - time.monotonic())
        link.connect(path)
        if not is_ours(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)):
            raise ValueError(path)
        link.sendall(line)
        held = bytearray()
        while not held.endswith(b"\n"):
            link.settimeout(until - time.monotonic())
            part = link.recv(65536)
            held += part
            if not part or len(held) > ANSWER_LIMIT:
                raise ValueError(path)
    return bytes(held)


def _told(line: bytes) -> dict[str, object] | None:
    """The document in `line`; None for an error or anything else."""
    told = json.loads(line)
    return told if isinstance(told, dict) and "kind" in told else None


def begin(root: str, *words: str) -> None:
    """Starts a command for the project at the real path `root` in a session of its own, with none of our files open. It
    is not our child, so we need not wait for it; `-P` keeps the project's own modules out. Does nothing inside a
    run."""
    if "NAVIGATOR_PROCESS" in os.environ:
        return
    argv = (sys.executable, "-P", "-m", "navigator_kernel.cli.main", "--root", root, *words)
    files = [(os.POSIX_SPAWN_OPEN, handle, os.devnull, os.O_RDWR, 0) for handle in range(3)]
    closed = [(os.POSIX_SPAWN_CLOSE, int(name)) for name in os.listdir("/proc/self/fd") if int(name) > 2]
    shell = ("sh", "-c", 'cd "$0" && exec "$@" &', root, *argv)
    child = os.posix_spawn("/bin/sh", shell, os.environ, file_actions=[*files, *closed], setsid=True)
    os.waitpid(child, 0)
