"""Connects Python's own HTTP client in the box to the box's one server, whatever scheme and port it is given."""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any


class Plain:
    """Changes `http.client` when it is imported, so that a start without it costs nothing."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: object = None) -> ModuleSpec | None:
        if name != "http.client":
            return None
        spec = PathFinder.find_spec(name, path)
        assert spec is not None and spec.loader is not None
        fill = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            fill(module)
            _plain(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]  # changes the module while it is imported
        return spec


def _plain(client: Any) -> None:
    plain: Any = client.HTTPConnection

    class Connection(plain):  # type: ignore[misc]  # the base class is known only after the import
        def __init__(
            self, host: str, port: int | None = None, *, context: Any = None, check_hostname: Any = None, **more: Any
        ) -> None:
            more = {key: value for key, value in more.items() if key in {"timeout", "blocksize"}}
            super().__init__(host, port, **more)

        def connect(self) -> None:
            import socket

            self.sock = socket.create_connection(("127.0.0.1", 80), self.timeout or 10)

    client.HTTPConnection = Connection
    client.HTTPSConnection = Connection


sys.meta_path.insert(0, Plain)
