"""The network as a skill in the box sees it: every name leads to this machine, which records all that arrives."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from scanning.payloads import reply_for

POOLS = (3333, 5555, 7777, 14444)
SHELLS = (443, 1337, 4444, 4443, 9001, 31337)
WEB = (80, 8080, 8000)
PATIENCE = 5.0  # seconds that a connection may stay silent
ASKED = b"echo owned-$((6*7))\nexit\n"  # only a shell answers with ANSWERED
ANSWERED = b"owned-42"


class Services:
    """Listens on all its ports from the start; `log` gets one JSON line for each thing that arrives."""

    def __init__(self, log: Path) -> None:
        self._log, self._lock = log, threading.Lock()
        self.busy = 0
        self._names()
        for ports, serve in ((WEB, self._web), (POOLS, self._pool), (SHELLS, self._shell)):
            for port in ports:
                self._listen(port, serve)

    def note(self, via: str, data: bytes) -> None:
        with self._lock, self._log.open("a") as log:
            log.write(json.dumps({"via": via, "data": data.decode("latin-1")}) + "\n")

    def _listen(self, port: int, serve: Callable[[socket.socket], None]) -> None:
        server = socket.create_server(("127.0.0.1", port), backlog=16)

        def accept() -> None:
            while True:
                connection, _ = server.accept()
                threading.Thread(target=self._served, args=(connection, serve), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()

    def _served(self, connection: socket.socket, serve: Callable[[socket.socket], None]) -> None:
        self.busy += 1
        try:
            connection.settimeout(PATIENCE)
            with connection:
                serve(connection)
        except OSError:
            pass  # the client hung up or sent nothing in time
        finally:
            self.busy -= 1

    def _web(self, connection: socket.socket) -> None:
        head, _, body = _until(connection, b"\r\n\r\n").partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        if "chunked" in fields.get("transfer-encoding", ""):
            body = _unchunked(connection, body)
        while len(body) < int(fields.get("content-length", 0)):
            body += connection.recv(65536) or b"\0" * 10**6
        self.note("web", head + b"\r\n\r\n" + body)
        path = ([*lines[0].split(" "), "", ""])[1]
        answer = reply_for(fields.get("host", ""), path)
        connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(answer) + answer)

    def _pool(self, connection: socket.socket) -> None:
        """A mining pool that accepts every login."""
        held = _until(connection, b"\n")
        self.note("pool", held)
        connection.sendall(b'{"id":1,"jsonrpc":"2.0","error":null,"result":{"status":"OK"}}\n')

    def _shell(self, connection: socket.socket) -> None:
        """An attacker who waits for a shell, and records whatever else is sent."""
        connection.sendall(ASKED)
        held, ending = b"", time.monotonic() + PATIENCE
        try:
            while ANSWERED not in held and time.monotonic() < ending:
                more = connection.recv(65536)
                if not more:
                    break
                held += more
        finally:
            self.note("shell", held)

    def _names(self) -> None:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 53))

        def answer() -> None:
            while True:
                query, sender = server.recvfrom(4096)
                name, end = _name(query)
                self.note("name", name)
                found = b"\xc0\x0c\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1" if query[end : end + 2] == b"\0\1" else b""
                head = query[:2] + b"\x81\x80\0\1" + (b"\0\1" if found else b"\0\0") + bytes(4)
                server.sendto(head + query[12 : end + 4] + found, sender)

        threading.Thread(target=answer, daemon=True).start()


def _name(query: bytes) -> tuple[bytes, int]:
    """The requested name, and where in `query` it ends."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1 : at + 1 + query[at]])
        at += 1 + query[at]
    return b".".join(labels), at + 1


def _until(connection: socket.socket, end: bytes) -> bytes:
    held = b""
    while end not in held:
        more = connection.recv(65536)
        if not more:
            break
        held += more
    return held


def _unchunked(connection: socket.socket, held: bytes) -> bytes:
    while not held.endswith(b"0\r\n\r\n"):
        more = connection.recv(65536)
        if not more:
            break
        held += more
    whole = b""
    while held:
        size, _, rest = held.partition(b"\r\n")
        whole, held = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
        if size == b"0":
            break
    return whole
