"""Which decision follows from an intent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.values.route import (
    Direct,
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    Script,
    Shell,
    Skills,
    Unknown,
    Workflow,
)
from routing.place import Routing, routing_at, write_skills

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.adapters.index.use_encoder import UseEncoder


@pytest.fixture
def place(tmp_path: Path, encoder: UseEncoder) -> Routing:
    write_skills(
        tmp_path, {"boat-painter": "paints watercolours of boats", "code-fix": "fixes code", "song-writer": "sings"}
    )
    return routing_at(tmp_path, encoder)


# Unknown names


@pytest.mark.parametrize("text", ["/boat-paint", "/boatpainter a b", "@@boat_paintr", "/nothing-like-it"])
def test_a_skill_that_is_named_and_not_there_is_never_direct(place: Routing, text: str) -> None:
    result = place.decide(text).result
    assert isinstance(result, Unknown)
    assert result.what == "skill"
    assert len(result.suggestions) <= 3


@pytest.mark.requirement("COV-2")
def test_the_nearest_name_is_suggested_first(place: Routing) -> None:
    result = place.decide("/boat-paint").result
    assert isinstance(result, Unknown)
    assert result.suggestions[0] == "boat-painter"


@pytest.mark.parametrize("text", ["/code_fix a", "/Code-Fix a", "/code-fix a"])
def test_a_name_is_known_with_either_hyphen(place: Routing, text: str) -> None:
    assert place.decide(text).result == Skills(names=("code-fix",), arguments=("a",), direct_call=True)


@pytest.mark.requirement("PRE-13", "REG-1")
@pytest.mark.parametrize(("folder", "type"), [("commands", "command"), ("prompts", "prompt")])
def test_a_custom_command_or_prompt_can_be_called(tmp_path: Path, folder: str, type: Any, encoder: UseEncoder) -> None:
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.turn.understand import decide

    path = tmp_path / ".claude" / folder / "greet.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: greet\ndescription: greets\n---\nSay hello to $1.\n")
    place = routing_at(tmp_path, encoder)
    decision = decide(
        place.intent("/greet Ada"), place.request("/greet Ada"), Project(tmp_path, agents=False).catalogue
    )
    assert decision.result == Skills(names=("greet",), arguments=("Ada",), direct_call=True)


# Files


# One instruction per message


@pytest.mark.requirement("PRE-4")
@pytest.mark.parametrize("text", ["/boat-painter a\n/song-writer b", "!ls\n!pwd", "/boat-painter\n!ls"])
def test_several_instructions_are_asked_about_and_none_is_dropped(place: Routing, text: str) -> None:
    result = place.decide(text).result
    assert isinstance(result, NeedClarification)
    assert result.options == tuple(text.split("\n"))


# The projections


KINDS: list[tuple[Any, str, str | None]] = [
    (Skills(names=("x",)), "skills", "skills"),
    (Direct(), "direct", None),
    (NeedClarification(question="?"), "clarify", None),
    (Workflow(name="x"), "workflow", "skills"),
    (Shell(command="ls"), "command", "worker"),
    (Script(name="x"), "script", "worker"),
    (Mcp(operation="list"), "mcp", "mcp"),
    (Lifecycle(operation="install"), "install", "worker"),
    (Lifecycle(operation="list"), "command", "worker"),
    (Unknown(what="skill", name="x"), "clarify", None),
]


@pytest.mark.requirement("RTE-2")
@pytest.mark.parametrize(("result", "kind", "agent"), KINDS)
def test_a_decision_has_one_kind_and_one_agent(result: Any, kind: str, agent: str | None) -> None:
    decision = RouteDecision(result=result)
    assert (decision.kind, decision.agent) == (kind, agent)


@pytest.mark.requirement("COV-5", "RTE-1")
def test_an_exact_name_is_certain(place: Routing) -> None:
    decision = place.decide("boat-painter")
    assert (decision.tier, decision.confidence) == ("exact", 1.0)


# A sub-skill that is not installed
