"""A pytest plugin that selects the tests that `make test` leaves to `.ci/run`, because others already check the same
fact, or because they are slow.

`@pytest.mark.wide` marks a test, `@pytest.mark.sample(3)` all cases of a test but three that are spread over them; on a
file (`pytestmark`) each applies to every test of the file. `.ci/run` runs them as the user without root's rights. They
get the marks `wide` and `ci`; the cases beyond a sample, which `make coverage` leaves out, also get the mark `further`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

ELSEWHERE = frozenset({"ci", "slow", "bench", "local_llm", "open_webui"})  # `make test` runs none of these anyway
STEP = 0.618034  # golden ratio: the fractions of its multiples lie evenly between 0 and 1, and follow no order of cases


@pytest.hookimpl(tryfirst=True)  # before `-m` selects by the marks
def pytest_collection_modifyitems(items: Sequence[pytest.Item]) -> None:
    mine = [item for item in items if not ELSEWHERE & {mark.name for mark in item.iter_markers()}]
    further = [*_left_out(mine)]
    for item in further:
        item.add_marker("further")
    for item in [*(item for item in mine if item.get_closest_marker("wide")), *further]:
        item.add_marker("wide")
        item.add_marker("ci")


def _left_out(items: Sequence[pytest.Item]) -> Iterator[pytest.Item]:
    """The cases beyond the sample of each test that has one."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("sample"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for found in cases.values():
        mark = found[0].get_closest_marker("sample")
        assert mark is not None
        kept = sample(len(found), *mark.args)
        yield from (item for at, item in enumerate(found) if at not in kept)


def sample(length: int, size: int) -> set[int]:
    """`size` positions in a sequence of that length, including the first, or all positions."""
    if size >= length:
        return set(range(length))
    places: list[int] = []
    number = 0
    while len(places) < size:
        place = int(length * (number * STEP % 1))
        places += [] if place in places else [place]
        number += 1
    return set(places)
