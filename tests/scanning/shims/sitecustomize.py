"""Lets Python's own HTTP client in the box speak to the box's one server, whatever scheme and port it was given."""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType


class Plain:
    """Changes `http.client` as it is imported, so that a start without it costs nothing."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if name != "http.client":
            return None
        spec = PathFinder.find_spec(name, path)
        fill = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            fill(module)
            _plain(module)

        spec.loader.exec_module = exec_module
        return spec


def _plain(client: ModuleType) -> None:
    class Connection(client.HTTPConnection):
        def __init__(self, host, port=None, *, context=None, check_hostname=None, **more):
            more = {key: value for key, value in more.items() if key in {"timeout", "blocksize"}}
            super().__init__(host, port, **more)

        def connect(self):
            import socket

            self.sock = socket.create_connection(("127.0.0.1", 80), self.timeout or 10)

    client.HTTPConnection = Connection
    client.HTTPSConnection = Connection


sys.meta_path.insert(0, Plain)
