"""Counts for Prometheus, in its text format."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping

BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """Counts requests by endpoint and status, and the time to the beginning of their answers."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[float] = Counter()
        self._sum = 0.0
        self._count = 0
        self._began = time.time()

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Counts a request. `path` is the pattern of an endpoint, so that there are few different ones."""
        self.requests[method, path, status] += 1
        self._count += 1
        self._sum += seconds
        for bound in BOUNDS:
            self._seconds[bound] += seconds <= bound

    def text(self, ended: Mapping[str, int], under_way: int) -> str:
        """The metrics as text. `ended` counts the ended runs by state, `under_way` is the number of the others."""
        return "\n".join(self._lines(ended, under_way)) + "\n"

    def _lines(self, ended: Mapping[str, int], under_way: int) -> Iterator[str]:
        yield from _head("navigator_requests_total", "counter", "Requests that were answered")
        for (method, path, status), count in sorted(self.requests.items()):
            yield f'navigator_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield from _head("navigator_request_seconds", "histogram", "Time to the beginning of an answer")
        for bound in BOUNDS:
            yield f'navigator_request_seconds_bucket{{le="{bound}"}} {self._seconds[bound]}'
        yield f'navigator_request_seconds_bucket{{le="+Inf"}} {self._count}'
        yield f"navigator_request_seconds_sum {self._sum:.6f}"
        yield f"navigator_request_seconds_count {self._count}"
        yield from _head("navigator_runs_total", "counter", "Runs that ended, by their state")
        for state, count in sorted(ended.items()):
            yield f'navigator_runs_total{{state="{state}"}} {count}'
        yield from _head("navigator_runs_under_way", "gauge", "Runs that have a thread or wait for one")
        yield f"navigator_runs_under_way {under_way}"
        yield from _head("navigator_start_time_seconds", "gauge", "When the server began, in Unix time")
        yield f"navigator_start_time_seconds {self._began:.3f}"


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
