"""Ports for servers of others, which must be told one."""

from __future__ import annotations

import os
import random
import socket

LOWEST, EACH = 20_000, 500  # below those that the system hands out by itself (32768 and up); each worker has its own


def free_port() -> int:
    """A port at which nobody listens, and which no program that asks for any port is given."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) % 20
    ports = range(LOWEST + worker * EACH, LOWEST + (worker + 1) * EACH)
    for port in random.SystemRandom().sample(ports, len(ports)):
        with socket.socket() as held:
            try:
                held.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port
    raise AssertionError("no port is free")
