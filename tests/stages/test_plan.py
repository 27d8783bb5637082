"""Complete orders, or one question about everything that is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.turn.packets import plan
from navigator_kernel.values.packet import Format
from navigator_kernel.values.plan import DispatchPlan
from navigator_kernel.values.route import (
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    Skills,
)
from routing.place import Routing
from stages.orders import asked, of, order, packet, place_at
from tables import cases


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    return place_at(tmp_path, encoder)


# The packet


@pytest.mark.requirement("PKT-1", "PKT-2", "PKT-3", "PKT-4", "PKT-5", "PKT-6")
def test_a_packet_has_every_mandatory_part(place: Routing) -> None:
    made = packet(place, "/text-one hello there")
    assert made.to_dict() == {
        "subagent_type": "skills",
        "task_spec": {"intent": "/text-one hello there", "operation": "run", "target": "skill:text-one"},
        "params": {
            "required": {"text": "hello there"},
            "optional": {"prompt": "run text-one hello there", "request": "hello there", "arguments": [], "files": []},
        },
        "constraints": {"timeout": 60.0, "validation": ""},
        "return_spec": {"format": "detail", "fields": [], "on_error": "propagate"},
        "context": {"run": "r1", "step": 0, "idempotency_key": "r1/0/skills/skill:text-one", "language": "en"},
    }


@pytest.mark.requirement("PKT-5")
@pytest.mark.parametrize("form", get_args(Format))
def test_the_wanted_format_is_in_the_packet(place: Routing, form: Any) -> None:
    assert packet(place, "/plain-one", format=form).return_spec.format == form


@pytest.mark.requirement("PKT-7")
@cases("text, prompt")
def test_a_skills_prompt_is_run_skill_arguments(place: Routing, text: str, prompt: str) -> None:
    assert packet(place, text).params.value("prompt") == prompt


@pytest.mark.requirement("PKT-8", "RTE-2")
@pytest.mark.parametrize("text", ["/plain-one", "@@plain-one", "run plain-one", "/text-one hello"])
def test_a_chosen_skill_goes_to_the_skills_agent(place: Routing, text: str) -> None:
    assert packet(place, text).agent == "skills"


@pytest.mark.requirement("PRE-20", "REG-6")
@cases("text, request_")
def test_the_request_is_the_arguments_or_the_message_or_else_the_name(place: Routing, text: str, request_: str) -> None:
    assert packet(place, text).params.value("request") == request_


@pytest.mark.requirement("PRE-9")
@pytest.mark.parametrize("text", ["/plain-one @data.csv", "run plain-one on @data.csv"])
def test_a_file_reaches_the_skill_as_text_and_as_a_path(place: Routing, text: str) -> None:
    made = packet(place, text)
    assert "a,b\n1,2" in made.params.value("request")
    assert made.params.value("files") == [str(place.root / "data.csv")]


# The agent that gets the packet


@pytest.mark.requirement("RTE-2", "PKT-9", "AGT-6")
@cases("text, agent, operation, required", lists=True)
def test_an_order_goes_to_its_agent_with_all_it_needs(
    place: Routing, text: str, agent: str, operation: str, required: dict[str, Any]
) -> None:
    made = packet(place, text)
    assert (made.agent, made.task_spec.operation, dict(made.params.required)) == (agent, operation, required)


# Missing parameters


@pytest.mark.requirement("SEN-2", "PKT-10", "LIF-12")
@cases("text, missing")
def test_missing_or_invalid_parameters_are_asked_for_before_any_dispatch(
    place: Routing, text: str, missing: tuple[str, ...]
) -> None:
    assert asked(place, text).missing == missing


@pytest.mark.requirement("SEN-2", "PKT-10")
def test_one_question_names_all_that_is_missing_in_the_skills_own_words(place: Routing) -> None:
    question = asked(place, "/many-one").question
    assert all(word in question for word in ("many-one", "the url", "the to", "the input"))


def test_the_question_for_missing_parameters_lists_the_optional_ones(place: Routing) -> None:
    assert asked(place, "/calm-one").optional == ("top",)


# Lifecycle and MCP


@pytest.mark.requirement("PKT-9", "LIF-12")
@pytest.mark.parametrize(
    ("result", "missing"),
    [
        (Mcp(operation="read", server="files"), ("uri",)),
        (Mcp(operation="read"), ("server", "uri")),
        (Mcp(operation="list"), ("server",)),
        (Mcp(operation="tools"), ("server",)),
        (Mcp(operation="call", server="files"), ("tool",)),
        (Mcp(operation="call"), ("server", "tool")),
        (Lifecycle(operation="install", skills=("x",)), ("source",)),
        (Lifecycle(operation="install"), ("source",)),
        (Lifecycle(operation="info"), ("source",)),
    ],
)
def test_an_order_that_lacks_something_is_a_question(place: Routing, result: Any, missing: tuple[str, ...]) -> None:
    found = of(place, result)
    assert isinstance(found, NeedClarification)
    assert found.missing == missing


@pytest.mark.requirement("PKT-9")
def test_a_question_for_a_server_lists_all_servers(place: Routing) -> None:
    found = of(place, Mcp(operation="list"), servers=("files", "search"))
    assert isinstance(found, NeedClarification)
    assert "files" in found.question and "search" in found.question


@pytest.mark.requirement("PKT-9")
@pytest.mark.parametrize("operation", ["uninstall", "enable", "disable"])
def test_a_removal_of_nothing_is_a_question(place: Routing, operation: Any) -> None:
    assert isinstance(of(place, Lifecycle(operation=operation)), NeedClarification)


@pytest.mark.requirement("PKT-9")
def test_a_search_for_nothing_is_a_question(place: Routing) -> None:
    assert isinstance(of(place, Lifecycle(operation="search")), NeedClarification)


# Candidates


@pytest.mark.requirement("CAN-1")
def test_candidates_follow_the_best_in_the_same_step(place: Routing) -> None:
    decision = RouteDecision(
        result=Skills(names=("plain-one",)), candidates=("slow-one", "slowest-one"), tier="retrieval"
    )
    found = plan(decision, place.request("paint"), place.catalogue, order())
    assert isinstance(found, DispatchPlan)
    assert [p.task_spec.target for p in found.steps[0].packets] == [
        "skill:plain-one",
        "skill:slow-one",
        "skill:slowest-one",
    ]


@pytest.mark.requirement("CAN-1", "PKT-10")
def test_a_candidate_that_lacks_something_is_left_out(place: Routing) -> None:
    decision = RouteDecision(result=Skills(names=("plain-one",)), candidates=("url-one", "slow-one"), tier="retrieval")
    found = plan(decision, place.request("paint"), place.catalogue, order())
    assert isinstance(found, DispatchPlan)
    assert [p.task_spec.target for p in found.steps[0].packets] == ["skill:plain-one", "skill:slow-one"]


@pytest.mark.requirement("LIF-9")
def test_a_skill_that_was_called_has_no_stand_in(place: Routing) -> None:
    result = Skills(names=("plain-one",), direct_call=True)
    found = plan(RouteDecision(result=result, candidates=("slow-one",)), place.request("x"), place.catalogue, order())
    assert isinstance(found, DispatchPlan)
    assert len(found.steps[0].packets) == 1
