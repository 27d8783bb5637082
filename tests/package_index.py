"""A local package index, with packages made by hand."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from navigator_kernel.adapters.processes.environments import Environments
from navigator_kernel.skills.formats.dependencies import fingerprint
from web_server import QuietServer

USER, PASSWORD = "me", "hunter2"


@dataclass
class Index:
    """A package index (PEP 503) over HTTP. `files` are by `project/name`; the links give the hash of `named` if set."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    named: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    closed: bool = False
    hangs: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def add(
        self, name: str, files: Mapping[str, str | bytes] | None = None, *requires: str, version: str = "1.0"
    ) -> None:
        code = {f"{name}.py": f"NAME = {name!r}\n"} if files is None else files
        self.files[f"{name}/{name}-{version}-py3-none-any.whl"] = wheel(name, code, requires, version)

    def answer(self, path: str, login: str) -> tuple[int, bytes]:
        kind, _, rest = path.strip("/").partition("/")
        if self.hangs:
            self.released.wait(30)
        if self.closed and login != "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode():
            return 401, b""
        if kind == "files" and rest in self.files:
            return 200, self.files[rest]
        found = [path for path in self.files if path.startswith(f"{rest}/")] if kind == "simple" else []
        return (200, "".join(map(self._link, found)).encode()) if found else (404, b"")

    def _link(self, path: str) -> str:
        sha = hashlib.sha256(self.named.get(path, self.files[path])).hexdigest()
        return f'<a href="/files/{path}#sha256={sha}">{path.partition("/")[2]}</a>\n'


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    """An empty index, the only one that uv is configured to use."""
    held = Index()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append(self.path)
            code, body = held.answer(self.path, self.headers.get("Authorization", ""))
            try:
                self.send_response(code)
                self.send_header("Content-Type", "text/html" if "/simple/" in self.path else "application/octet-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if self.command == "GET" else b"")
            except OSError:
                self.close_connection = True

        def do_HEAD(self) -> None:
            self.do_GET()

        def log_message(self, format: str, *args: object) -> None: ...

    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_")) or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    server = QuietServer(("127.0.0.1", 0), Handler)
    held.url = f"http://127.0.0.1:{server.server_port}/simple"
    monkeypatch.setenv("UV_DEFAULT_INDEX", held.url)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield held
    finally:
        held.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def made(folder: Path, requirements: Sequence[str], **given: float) -> Path:
    held = Environments(folder, timeout=given.get("timeout", 60.0), disk=int(given.get("disk", 2**31)))
    return held.make(fingerprint(requirements), requirements)


def two(index: Index, canary: Path | None = None) -> None:
    """Adds a tool that needs another package; it touches `canary` when an interpreter that has the tool starts."""
    start = f"import pathlib; pathlib.Path({str(canary)!r}).touch()\n"
    index.add("tool", {"tool.py": "import part\nNAME = part.NAME\n", **({"a.pth": start} if canary else {})}, "part")
    index.add(
        "part",
        {
            "part.py": "NAME = 'part'\n",
            "old.py": "print 1\n",
            "part-1.0.data/scripts/part": "#!python\nprint('script')\n",
        },
    )


def wheel(name: str, files: Mapping[str, str | bytes], requires: Sequence[str] = (), version: str = "1.0") -> bytes:
    """Builds the smallest possible wheel (PEP 427)."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    held: dict[str, bytes] = {path: body.encode() if isinstance(body, str) else body for path, body in files.items()}
    held[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}".encode()
    held[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    lines = [f"{path},sha256={_base64(hashlib.sha256(body).digest())},{len(body)}\n" for path, body in held.items()]
    held[f"{info}/RECORD"] = "".join([*lines, f"{info}/RECORD,,\n"]).encode()
    kept = io.BytesIO()
    with zipfile.ZipFile(kept, "w") as archive:
        for path, body in held.items():
            archive.writestr(path, body)
    return kept.getvalue()


def sdist(name: str, setup: str) -> bytes:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz") as archive:
        for path, text in {
            "setup.py": setup,
            "PKG-INFO": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n",
        }.items():
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return kept.getvalue()


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
