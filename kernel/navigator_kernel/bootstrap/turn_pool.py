"""Kernels for turns that run side by side: each turn has its own, which later turns use again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from navigator_kernel.bootstrap.kernel import assemble, share
from navigator_kernel.bootstrap.parts import open_sessions
from navigator_kernel.bootstrap.turns import Turns

if TYPE_CHECKING:
    from navigator_kernel.config.settings import Settings
    from navigator_kernel.ports import Kernel

MOST = 32  # concurrent turns; further ones wait


class TurnPool:
    """The catalogue and the router are shared; everything that belongs to a turn is in its own kernel. Several threads
    may use the pool. Paths in a message start at `here`, or at `root`; `unsafe` is passed to `assemble`."""

    def __init__(self, root: Path, settings: Settings, *, here: Path | None = None, unsafe: bool = False) -> None:
        self.shared = share(root, settings)
        self._assemble = partial(assemble, root, settings, unsafe=unsafe, here=here or root, shared=self.shared)
        self._sessions = partial(open_sessions, root, settings)
        self._idle: list[Turns] = []

    @cached_property
    def kernel(self) -> Kernel:
        """The kernel to read from between turns; it takes no turn itself."""
        return self._assemble()

    @contextmanager
    def turns(self) -> Iterator[Turns]:
        """Takes one turn at a time, until the end of the block."""
        try:
            held = self._idle.pop()
        except IndexError:
            held = Turns(kernel=self._assemble(), sessions=self._sessions)
        try:
            yield held
        finally:
            self._idle.append(held)
