"""Python imports this first in a process that has this folder on its path: its clock is CLOCK_SHIFT seconds wrong, as
that of a host. The monotonic clock goes on as it is. It stands for libfaketime, which is not installed everywhere."""

import datetime as dt
import os
import time
from collections.abc import Callable
from datetime import datetime

SHIFT = float(os.environ["CLOCK_SHIFT"])
_time, _time_ns = time.time, time.time_ns


class _Kind(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, datetime)


class _Shifted(datetime, metaclass=_Kind):
    @classmethod
    def now(cls, tz: dt.tzinfo | None = None) -> datetime:  # type: ignore[override]  # one of datetime itself
        return datetime.now(tz) + dt.timedelta(seconds=SHIFT)


def _of(clock: Callable[[float], time.struct_time]) -> Callable[..., time.struct_time]:
    return lambda seconds=None: clock(time.time() if seconds is None else seconds)


time.time = lambda: _time() + SHIFT
time.time_ns = lambda: _time_ns() + int(SHIFT * 1e9)
time.gmtime, time.localtime = _of(time.gmtime), _of(time.localtime)
dt.datetime = _Shifted  # type: ignore[misc]  # for every later import
