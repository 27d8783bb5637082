"""Finds ports for servers that must be given one."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path
from random import SystemRandom

import pytest


def free_port() -> int:
    """A port below the range that the system gives to connections, so that none takes it before the server does."""
    given = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for _ in range(100):
        port = SystemRandom().randrange(max(given - 20_000, 1_024), given)
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    pytest.fail("no port is free")
