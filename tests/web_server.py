"""A local web server, over https with a certificate for localhost, or over http."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

# Self-signed, for localhost, valid until 2120
KEY_AND_CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgXXtsD/QJIN/TrjFP
qSA2Lw78BKiufOuc1Myho7ebI6uhRANCAAQs+knytn43xj5JbahxycDBTN7w8lVn
YJpN2XLgdAc77lTcx+nciiQ5fYNIgIDYBlaW7Mr6oBQsd7WMBI13X7Fw
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBYjCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABCz6SfK2fjfGPklt
qHHJwMFM3vDyVWdgmk3ZcuB0BzvuVNzH6dyKJDl9g0iAgNgGVpbsyvqgFCx3tYwE
jXdfsXCjSDBGMBQGA1UdEQQNMAuCCWxvY2FsaG9zdDAPBgNVHRMBAf8EBTADAQH/
MB0GA1UdDgQWBBTO4KaYm6xsgl90ZBnxbkz9Q/PwejAKBggqhkjOPQQDAgNJADBG
AiEA5KZGVd/Te0AcIK4x+Ql4sx0hzIxPoQUB13Xv4mPhLEkCIQCNR5olUAtcb64X
sfgxHdSSgATvNjL+G1xCNdRV7Zhy2g==
-----END CERTIFICATE-----
"""


class Reply(NamedTuple):
    """The response for a path; `after` is called before anything is sent."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = {}
    after: Callable[[], object] = bool


@dataclass
class Pages:
    """`asked` holds the requested paths, queries included, with the headers."""

    url: str = ""
    port: int = 0
    replies: dict[str, Reply] = field(default_factory=dict)
    asked: list[tuple[str, Mapping[str, str]]] = field(default_factory=list)


class QuietServer(ThreadingHTTPServer):
    """Ignores clients that disconnect, and prints any other error."""

    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


@contextmanager
def pages(pem: Path | None = None, host: str = "localhost") -> Iterator[Pages]:
    """Serves pages, over https if `pem`, a key and its certificate, is given."""
    held = Pages()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            held.asked.append((self.path, dict(self.headers.items())))
            reply = held.replies.get(self.path.partition("?")[0], Reply(status=404))
            reply.after()
            self.send_response(reply.status)
            sizes = {"Content-Length": str(len(reply.body))}
            for name, value in {"Content-Type": reply.kind, **sizes, **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_: Any) -> None:
            pass

    server = QuietServer(("127.0.0.1", 0), Handler)
    if pem is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pem)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    held.port = server.server_port
    held.url = f"{'https' if pem else 'http'}://{host}:{held.port}"
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
