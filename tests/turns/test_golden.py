"""The run logs of whole turns equal the stored ones, byte for byte."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tables import table

TURNS: dict[str, tuple[str, ...]] = table(__file__, "TURNS")


@pytest.mark.requirement("EVT-1", "EVT-7")
@pytest.mark.parametrize("name", list(TURNS))
def test_a_turns_log_is_what_it_was(talk: Any, name: str) -> None:
    for text in TURNS[name]:
        talk.say(text)
    talk.matches(name)


@pytest.mark.requirement("EVT-7")
def test_a_failing_skills_log_is_what_it_was(talk: Any) -> None:
    talk.say("/fail-hard now", consent=True)
    talk.matches("failed")


@pytest.mark.requirement("EVT-7")
def test_a_turn_that_is_taken_twice_leaves_the_same_log(talker: Any) -> None:
    first, second = talker(), talker()
    first.say("/csv-report @sales.csv")
    before = first.log()
    shutil.rmtree(first.kernel.root / "mybox" / "workspace")  # the next run gets the same name
    second.say("/csv-report @sales.csv")
    assert second.log() == before + before
