"""The clock and the ids of runs, as ports."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from navigator_kernel.ports import Clock


class SystemClock:
    """Implements `ports.Clock`."""

    def now(self) -> str:
        seconds, rest = divmod(time.time_ns(), 1_000_000_000)
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{rest // 1_000_000:03d}Z"

    def monotonic(self) -> float:
        return time.perf_counter()


class TimedIds(Struct, frozen=True):
    """Implements `ports.Ids`: `20260131-093000123-9f3ac1`, UTC to the millisecond and 24 random bits."""

    clock: Clock

    def new(self) -> str:
        digits = self.clock.now().translate({ord(mark): None for mark in "-:.TZ"})
        return f"{digits[:8]}-{digits[8:]}-{os.urandom(3).hex()}"
