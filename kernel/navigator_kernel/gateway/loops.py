"""Event loops of a process that serves streams and takes turns: the server goes first, then one turn after another.

The threads of a Python process take turns to compute, and the interpreter prefers none of them: while twenty turns
began, the last of a thousand streams got its first byte .2 to .4 s later than without them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from selectors import DefaultSelector, SelectorKey
from typing import Any

PATIENCE = 1.0  # total seconds that a turn waits for other turns and the server; then it runs beside them
SWITCH = 0.0005  # seconds after which a computing thread lets another one run; Python's default is 0.005

_server_is_idle = threading.Event()
_server_is_idle.set()
_computing = threading.Lock()  # held by the turn that computes


class _ServerSelector(DefaultSelector):
    """Signals when the server's loop has nothing to do."""

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        if (found := super().select(0)) or timeout == 0:
            return found
        _server_is_idle.set()
        found = super().select(timeout)
        _server_is_idle.clear()
        return found

    def close(self) -> None:
        _server_is_idle.set()
        super().close()


class _TurnSelector(DefaultSelector):
    """Waits for other turns, then for the server, before the callbacks of a turn run."""

    _holds = False

    def __init__(self) -> None:
        super().__init__()
        self.patience = PATIENCE  # seconds left

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        self.release()
        found = super().select(timeout)
        began = time.monotonic()
        self._holds = _computing.acquire(timeout=self.patience)
        _server_is_idle.wait(self._left(began))
        self.patience = self._left(began)
        return found

    def _left(self, began: float) -> float:
        return max(0.0, self.patience - (time.monotonic() - began))

    def close(self) -> None:
        self.release()
        super().close()

    def release(self) -> None:
        if self._holds:
            self._holds = False
            _computing.release()


class _TurnLoop(asyncio.SelectorEventLoop):
    """Each turn has its own patience."""

    def __init__(self, selector: _TurnSelector) -> None:
        super().__init__(selector)
        self._turns = selector

    def run_until_complete(self, future: Any) -> Any:
        self._turns.patience = PATIENCE
        try:
            return super().run_until_complete(future)
        finally:
            self._turns.release()


def server_loop() -> asyncio.AbstractEventLoop:
    """The loop of the server."""
    sys.setswitchinterval(SWITCH)
    return asyncio.SelectorEventLoop(_ServerSelector())


def turn_loop() -> asyncio.AbstractEventLoop:
    """The loop of turns, one after another, on a thread of its own."""
    return _TurnLoop(_TurnSelector())
