"""What is looked up for a message is looked up once."""

from __future__ import annotations

import pytest

from navigator_kernel.errors import NotFound
from navigator_kernel.values.owner import looked_up, one_look


def test_what_is_looked_up_is_forgotten_with_the_message() -> None:
    asked: list[int] = []

    def look() -> int:
        asked.append(1)
        return len(asked)

    with one_look():
        assert [looked_up("a", look), looked_up("b", look), looked_up("a", look)] == [1, 2, 1]
        with one_look():  # a part of the same message
            assert looked_up("a", look) == 1
    assert [looked_up("a", look), looked_up("a", look)] == [3, 4]


def test_a_look_that_fails_is_tried_again() -> None:
    def fails() -> int:
        raise NotFound("gone")

    with one_look():
        with pytest.raises(NotFound):
            looked_up("a", fails)
        assert looked_up("a", lambda: 1) == 1
