"""Measures how much a fetch writes, and ends it at a limit: a server may send without end."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread

RECEIVED_LIMIT = 512 * 1024 * 1024  # bytes that one command may receive from one repository
_LOOK = 0.02  # seconds between two checks


class Intake:
    """Counts the bytes that the fetches of one repository write below `folder`; `limit` is for all of them together."""

    def __init__(self, folder: Path, limit: int) -> None:
        self.limit, self.received = limit, 0
        self._packs = folder / ".git" / "objects" / "pack"
        self._before: frozenset[str] = frozenset()
        self._ended = Event()

    @property
    def is_over(self) -> bool:
        return self.received > self.limit

    def begin(self) -> None:
        """Prepares for a fetch: files that exist already are not counted."""
        self._before, self._ended = frozenset(self._sizes()), Event()

    def watch(self, leader: int) -> Thread:
        """Kills the process group of `leader` at the limit, until `end` is called."""
        watcher = Thread(target=self._look, args=(leader, self._ended), daemon=True)
        watcher.start()
        return watcher

    def end(self, watcher: Thread) -> None:
        """Adds the bytes of a fetch, which may have passed the limit between two looks."""
        self._ended.set()
        watcher.join()
        self.received += self._come()

    def _look(self, leader: int, ended: Event) -> None:
        while not ended.wait(_LOOK):
            if self.received + self._come() > self.limit:
                with suppress(OSError):
                    os.killpg(leader, signal.SIGKILL)
                return

    def _come(self) -> int:
        return sum(size for name, size in self._sizes().items() if name not in self._before)

    def _sizes(self) -> dict[str, int]:
        """The bytes of each file by name; one may disappear meanwhile, because git renames each complete pack."""
        found: dict[str, int] = {}
        with suppress(OSError), os.scandir(self._packs) as entries:
            for entry in entries:
                with suppress(OSError):
                    found[entry.name] = entry.stat(follow_symlinks=False).st_size
        return found
