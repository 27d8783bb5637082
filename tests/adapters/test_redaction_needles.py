"""A text that repeats one needle takes little time to search (SAF-8); `make test` tries one needle in six."""

from __future__ import annotations

import pytest

from adapters.test_redaction_limits import FAR_TOO_LONG, FILLERS, NEEDLES, cpu_time, filled
from navigator_kernel.adapters.secrets.redaction import AT_ONCE, search

pytestmark = [pytest.mark.requirement("SAF-8"), pytest.mark.sample(1)]
SAMPLE = [pytest.param(needle, marks=() if at % 6 == 0 else pytest.mark.ci) for at, needle in enumerate(NEEDLES)]


@pytest.mark.parametrize("needle", SAMPLE)
def test_one_needle_over_and_over_takes_little_time(needle: str) -> None:
    taken = {filler: cpu_time(search, filled(needle + filler, AT_ONCE)) for filler in FILLERS}
    assert max(taken.values()) < FAR_TOO_LONG, taken
