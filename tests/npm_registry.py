"""A local registry of Node packages, with packages made by hand."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import unquote

import pytest

from web_server import QuietServer


@dataclass
class Registry:
    """`tarballs` and `manifests` are by `NAME/VERSION`; a tarball in `named` gets the digest of those bytes."""

    url: str = ""
    tarballs: dict[str, bytes] = field(default_factory=dict)
    manifests: dict[str, dict[str, object]] = field(default_factory=dict)
    named: dict[str, bytes] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add(self, name: str, files: Mapping[str, str], version: str = "1.0.0", **more: object) -> None:
        manifest = {"name": name, "version": version, **more}
        self.manifests[f"{name}/{version}"] = manifest
        self.tarballs[f"{name}/{version}"] = _tarball({**files, "package.json": json.dumps(manifest)})

    def answer(self, path: str) -> bytes | None:
        if path.startswith("tarballs/"):
            return self.tarballs.get(path.removeprefix("tarballs/"))
        found = {key.rpartition("/")[2]: one for key, one in self.manifests.items() if key.rpartition("/")[0] == path}
        if not found:
            return None
        versions = {version: {**one, "dist": self._dist(f"{path}/{version}")} for version, one in found.items()}
        return json.dumps({"name": path, "dist-tags": {"latest": max(found)}, "versions": versions}).encode()

    def _dist(self, key: str) -> dict[str, str]:
        digest = hashlib.sha512(self.named.get(key, self.tarballs[key])).digest()
        url = f"{self.url}/tarballs/{key}"
        return {"tarball": url, "integrity": f"sha512-{base64.b64encode(digest).decode()}"}


@contextmanager
def serving(monkeypatch: pytest.MonkeyPatch, home: Path) -> Iterator[Registry]:
    """An empty registry, the only one that npm is configured to use."""
    held = Registry()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(self.path).strip("/")
            held.asked.append(path)
            body = held.answer(path)
            self.send_response(404 if body is None else 200)
            kind = "application/octet-stream" if path.startswith("tarballs/") else "application/json"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body or b"{}")))
            self.end_headers()
            self.wfile.write(body or b"{}")

        def log_message(self, *_: object) -> None: ...

    for name in [name for name in os.environ if name.lower().startswith("npm_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    server = QuietServer(("127.0.0.1", 0), Handler)
    held.url = f"http://127.0.0.1:{server.server_port}"
    (home / ".npmrc").write_text(f"registry={held.url}/\nfetch-retries=0\n")
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()


def _tarball(files: Mapping[str, str]) -> bytes:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w:gz") as archive:
        for path, text in files.items():
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return kept.getvalue()
