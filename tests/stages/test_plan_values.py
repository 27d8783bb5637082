"""Where the values of a skill's parameters come from."""

from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.packets import plan
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.route import NeedClarification, RouteDecision, Skills
from routing.place import Routing
from stages.orders import order, packet, place_at
from tables import cases


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    return place_at(tmp_path, encoder)


@pytest.mark.requirement("SEN-2")
@cases("text, name, value")
def test_a_parameter_value_is_taken_from_the_message(place: Routing, text: str, name: str, value: str) -> None:
    assert packet(place, text).params.required[name] == value


@pytest.mark.requirement("SEN-2")
@cases("text, value")
def test_a_value_may_be_quoted_or_follow_a_colon(place: Routing, text: str, value: str) -> None:
    decision = RouteDecision(result=Skills(names=("text-one",)), tier="retrieval")
    found = plan(decision, place.request(text), place.catalogue, order())
    assert isinstance(found, DispatchPlan)
    assert found.steps[0].packets[0].params.required["text"] == value


@pytest.mark.requirement("SEN-2")
@cases("text")
def test_a_file_is_given_as_its_real_path(place: Routing, text: str) -> None:
    path = place.root / "data.csv"
    assert packet(place, text.format(path=path)).params.required["input"] == str(path)


def test_a_message_that_only_mentions_a_subject_gives_no_text(place: Routing) -> None:
    decision = RouteDecision(result=Skills(names=("text-one",)), tier="retrieval")
    assert isinstance(plan(decision, place.request("count some words"), place.catalogue, order()), NeedClarification)
