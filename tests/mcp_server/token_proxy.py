"""A proxy for `navigator mcp serve --http` that adds the token, for clients that cannot send it."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from web_server import QuietServer

HOPS = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@contextmanager
def saying(url: str, token: str) -> Iterator[str]:
    """The address of a proxy to `url` that adds the token."""
    place = urlsplit(url)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.do_POST()

        def do_DELETE(self) -> None:
            self.do_POST()

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            own = f"127.0.0.1:{self.connection.getsockname()[1]}"  # a client that names the proxy means the server
            said = {name: value.replace(own, place.netloc) for name, value in self.headers.items()}
            said |= {"Authorization": f"Bearer {token}"}
            with closing(http.client.HTTPConnection(str(place.hostname), place.port, timeout=60)) as link:
                link.request(self.command, self.path, body, said)
                with link.getresponse() as answer, suppress(BrokenPipeError, ConnectionResetError):  # the client left
                    self.passed_on(answer)

        def passed_on(self, answer: http.client.HTTPResponse) -> None:
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in HOPS:
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while piece := answer.read1(65536):
                self.wfile.write(piece)
                self.wfile.flush()

        def log_message(self, format: str, *args: object) -> None: ...

    server = QuietServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}{place.path}"
    finally:
        server.shutdown()
        server.server_close()
