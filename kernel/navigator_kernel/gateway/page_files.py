"""The page's built files: read once, sent with a strict content security policy, and open to everybody.

They hold no data of the project. The list of files is fixed, so that no address becomes a path.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING, NamedTuple

from starlette.responses import Response
from starlette.routing import Route

if TYPE_CHECKING:
    from starlette.requests import Request

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' blob:",
        "connect-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types vue",  # Vue's policy for its own static markup; a lint rule keeps foreign text out of it
    )
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": CSP,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}
INDEX = "index.html"
_KINDS: Mapping[str, str] = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
    "txt": "text/plain; charset=utf-8",
}
_FOR_EVER = "public, max-age=31536000, immutable"  # the name of an asset contains its digest


class PageFile(NamedTuple):
    """A file as it is sent, uncompressed and compressed."""

    kind: str
    data: bytes
    packed: bytes
    etag: str
    lasting: bool


@lru_cache(maxsize=1)
def page_files() -> Mapping[str, PageFile]:
    """The files by their address: `/`, `/icon.svg`, `/assets/…`."""
    root = files("navigator_kernel.gateway") / "page"
    found = dict(_found(root, "/")) if root.is_dir() else {}
    return {"/" if name == f"/{INDEX}" else name: file for name, file in found.items()}


def page_routes() -> list[Route]:
    async def send(request: Request) -> Response:
        file = page_files()[request.url.path]
        lifetime = _FOR_EVER if file.lasting else "no-cache"
        headers = {**HEADERS, "cache-control": lifetime, "etag": file.etag, "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == file.etag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(file.packed, headers={**headers, "content-encoding": "gzip"}, media_type=file.kind)
        return Response(file.data, headers=headers, media_type=file.kind)

    return [Route(address, send, methods=["GET"]) for address in page_files()]


def _found(folder: Traversable, address: str) -> Iterator[tuple[str, PageFile]]:
    for one in folder.iterdir():
        if one.is_dir():
            yield from _found(one, f"{address}{one.name}/")
        elif (kind := _KINDS.get(one.name.rpartition(".")[2])) is not None:
            data = one.read_bytes()
            etag = f'"{hashlib.sha256(data).hexdigest()[:32]}"'
            yield f"{address}{one.name}", PageFile(kind, data, gzip.compress(data, 9, mtime=0), etag, address != "/")
