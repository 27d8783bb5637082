"""The page of the router's errors lists causes and quotes no question."""

from __future__ import annotations

from bench.routing_errors import LOOKED_AT, NONE_MEANT, NOT_FOUND, Mistake, mistake, page
from bench.routing_sets import Question
from navigator_kernel.values.route import Candidate


def candidate(name: str, **parts: float) -> Candidate:
    return Candidate(name=name, score=sum(parts.values()), confidence=0.8, parts=parts)


ASKED = Question("the secret words of a data set", ("right",))


def test_a_right_first_candidate_and_an_empty_list_are_not_mistakes() -> None:
    assert mistake(ASKED, [candidate("right")]) is None
    assert mistake(ASKED, []) is None


def test_the_cause_is_what_speaks_most_for_the_wrong_one() -> None:
    wrong = candidate("wrong", near_text=3.0, coverage=1.0)
    right = candidate("right", near_text=1.0, coverage=2.0)
    assert mistake(ASKED, [wrong, right]) == Mistake(0.8, "its meaning spoke for the wrong one")
    named = candidate("wrong", name_whole=2.0, near_title=1.0, near_text=1.0)
    assert mistake(ASKED, [named, right]) == Mistake(0.8, "its name spoke for the wrong one")


def test_a_missing_right_skill_and_a_message_for_no_skill_have_their_own_causes() -> None:
    assert mistake(ASKED, [candidate("wrong")]) == Mistake(0.8, NOT_FOUND)
    assert mistake(Question("hello", ()), [candidate("wrong")]) == Mistake(0.8, NONE_MEANT)


def test_the_page_counts_all_mistakes_and_the_causes_of_the_most_confident() -> None:
    held = [Mistake(0.9, NOT_FOUND)] * LOOKED_AT + [Mistake(0.1, NONE_MEANT)] * 5
    told = page({"azure": held}, {"azure": 100})
    row = next(line for line in told.splitlines() if line.startswith("| azure"))
    assert row.split(" | ")[1:4] == ["100", str(LOOKED_AT + 5), "0.90"]
    assert row.endswith(f"| - | {LOOKED_AT} |")
