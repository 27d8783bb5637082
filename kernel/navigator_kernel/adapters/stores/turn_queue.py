"""Lets the turns of one session run one after another, in the order in which they were asked for."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from msgspec import Struct

from navigator_kernel.adapters.files.database import own_lock
from navigator_kernel.digests import blake2b
from navigator_kernel.errors import Busy, KernelError

if TYPE_CHECKING:
    from navigator_kernel.ports import Writer

PATIENCE = 120.0  # seconds that a turn waits for those before it
MOST = 32  # turns of one session that wait
_PAUSE = 0.05  # seconds between two looks at the turns before
_QUIET = 1.0  # seconds of waiting before the person is told


class TurnQueue(Struct, frozen=True):
    """A file below `folder` for each turn that runs or waits, which its process keeps locked: a killed process does not
    hold up the others. The file's name ends with the turn's place in the order, and it contains the process id."""

    folder: Path
    writer: Writer

    @asynccontextmanager
    async def turn(self, session: str, tell: Callable[[str], None]) -> AsyncIterator[bool]:
        """Waits until the turns of `session` before this one have ended; yields whether there were any. `tell` is
        called with a line for the person if that takes longer. Busy after `PATIENCE` seconds, or if `MOST` turns wait.
        """
        import asyncio

        name = blake2b(session.encode(), digest_size=12).hexdigest()
        with ExitStack() as held:
            file, is_first = self._enter(name, session, held)
            began, is_announced = monotonic(), False
            while not is_first and (before := self._before(file)) is not None:
                waited = monotonic() - began
                if waited >= PATIENCE:
                    raise _busy(session, before, f"for {PATIENCE:g} seconds")
                if waited >= _QUIET and not is_announced:
                    tell(f"waiting for {before}, which is taking a turn in session {session!r}")
                    is_announced = True
                await asyncio.sleep(_PAUSE)
            yield not is_first

    def _enter(self, name: str, session: str, held: ExitStack) -> tuple[Path, bool]:
        """Makes the locked file of this turn, behind those that are there; also returns whether there are none."""
        guard = self.folder / "lock"
        self.writer.append(guard, b"")
        with own_lock(guard, timeout=PATIENCE):
            others = self._live(name, self._remove)
            if len(others) > MOST:
                raise _busy(session, _holder(others[0]), f"and {MOST} turns wait")
            at = int(others[-1].suffix[1:]) + 1 if others else 0
            file = self.folder / f"{name}.{at:06}"
            self.writer.append(file, str(os.getpid()).encode())
            held.enter_context(own_lock(file, timeout=_QUIET))  # a turn that waits may be looking at it
            held.callback(self._remove, file)
        return file, not others

    def _before(self, file: Path) -> str | None:
        """Who takes the turn before that of `file`; None if it is the first."""
        others = [other for other in self._live(file.stem, lambda _: None) if other < file]
        return _holder(others[0]) if others else None

    def _live(self, name: str, found_dead: Callable[[Path], None]) -> list[Path]:
        """The files of turns whose processes live, first come first; calls `found_dead` for the others."""
        live = []
        for file in sorted(self.folder.glob(f"{name}.*")):
            try:
                with own_lock(file):
                    found_dead(file)
            except Busy:
                live.append(file)
            except KernelError:  # it has just ended
                continue
        return live

    def _remove(self, file: Path) -> None:
        self.writer.remove(file, durable=False)


def _holder(file: Path) -> str:
    try:
        return f"process {int(file.read_bytes())}"
    except (OSError, ValueError):
        return "another process"


def _busy(session: str, holder: str, how: str) -> Busy:
    message = f"session {session!r} is busy: {holder} has been taking a turn in it {how}"
    return Busy(message, hint="wait for its end, or use another --session")
