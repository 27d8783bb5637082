"""Phase 1: what a model is shown, what it may answer, and that nothing it does stops a message."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from cli.support import Place, place_in
from models.wire_server import HELLO, Said, WireServer, serving
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.config.settings import ModelProvider, Models
from navigator_kernel.routing.phase_one import SHORTLIST, SKILLS, WHOLE, ModelJudge, parsed, prompt, shape
from navigator_kernel.text import Language
from navigator_kernel.values.request import Said as Entry
from navigator_kernel.values.route import Candidate, Judged, Retrieval
from routing.place import Routing, routing_at, write_skills
from shipped.place import NAMES
from skill_repositories import skill_text
from tables import table

GOLDEN = Path(__file__).parent / "golden"
BOATS: dict[str, str | tuple[str, str]] = table(__file__, "BOATS")
OFFERED = ("git-workflow", "code-review")


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def place(tmp_path: Path) -> Routing:
    write_skills(tmp_path, BOATS)
    return routing_at(tmp_path)


def models_at(server: WireServer, seconds: float = 60) -> Models:
    return Models(providers={"there": ModelProvider(server.url)}, retries=0, first=seconds, idle=seconds)


def doubt(*names: str, band: Any = "ambiguous") -> Retrieval:
    found = tuple(Candidate(name=name, score=1.0, confidence=0.4) for name in names)
    return Retrieval(candidates=found, band=band, reason="equal")


def judged(
    server: WireServer,
    place: Routing,
    model: str,
    text: str = "something with boats",
    *,
    mode: Any = "cascade",
    said: Sequence[Entry] = (),
    language: Language = "en",
) -> Judged:
    server.requests.clear()

    async def run() -> Judged:
        held = WireModel(f"there:{model}", models_at(server, 0.5 if model == "hangs" else 60))
        try:
            found = doubt("boat-painter", "song-writer")
            return await ModelJudge(lambda: held, place.catalogue, mode).judge(text, found, said, language)
        finally:
            await held.close()

    return asyncio.run(run())


def answers(server: WireServer, text: str) -> str:
    """Sets up a model that always says `text`; returns its name."""
    server.scripts["judge"] = lambda _messages, _number: Said(text=text)
    return "judge"


@pytest.mark.requirement("RTE-4", "RTE-5", "RTE-37", "RTE-40", "INT-8", "INT-13", "CTX-1", "CTX-4", "CTX-10")
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_whole_prompt_is_as_it_was_written(place: Routing, language: Language) -> None:
    skills = sorted(place.catalogue.list_resources(), key=lambda skill: skill.name)
    text, file = prompt(skills, language), GOLDEN / f"phase_one.{language}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.requirement("RTE-23")
@pytest.mark.parametrize(("language", "words"), [("en", "No skill is available yet."), ("zh", "暂无可用技能。")])
def test_an_empty_catalogue_is_reported_as_empty(language: Language, words: str) -> None:
    assert words in prompt([], language)


@pytest.mark.wide
@pytest.mark.requirement("RTE-6", "RTE-14", "RTE-15", "RTE-28", "RTE-47", "CTX-9")
def test_no_tool_is_offered_and_the_answer_is_one_cool_piece(server: WireServer, place: Routing) -> None:
    judged(server, place, answers(server, '{"skills": [], "direct": true}'))
    (request,) = server.requests
    assert request.body["temperature"] == 0.1
    assert "tools" not in request.body and not request.body.get("stream")
    told = json.dumps(request.body["messages"])
    assert "JSON" in told and "boat-painter" in told and "shell" not in told and "file_read" not in told


@pytest.mark.requirement("RTE-7", "RTE-8", "RTE-9", "RTE-10", "RTE-13", "RTE-16", "RTE-17", "RTE-18", "RTE-27")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"skills": ["git-workflow"], "direct": false}', Judged(skills=("git-workflow",))),
        ('{"skills": [], "direct": true}', Judged()),
        ('{"skills": [], "direct": false, "question": "Look or commit?"}', Judged(question="Look or commit?")),
        ('{"skills": ["git-workflow", "code-review"], "direct": false}', Judged(skills=OFFERED)),
        ('{"skills": ["git-workflow"], "direct": true}', Judged(skills=("git-workflow",))),
        ('{"skills": ["Git_Workflow"]}', Judged(skills=("git-workflow",))),
        ('{"skills": "git-workflow"}', Judged(skills=("git-workflow",))),
        ('{"skills": [], "direct": false, "question": ""}', Judged()),
        ('{"skills": [], "direct": false}', Judged()),
        ('{"skills": ["deploy"], "direct": false}', Judged(failure="unknown_skill")),
        ('{"skills": ["deploy", "code-review"]}', Judged(skills=("code-review",))),
        ('```json\n{"skills": [], "direct": true}\n```', Judged()),
        ('Sure! Here you are: {"skills": ["code-review"], "direct": false}. Done.', Judged(skills=("code-review",))),
        ('{"thoughts": "x"} then {"skills": ["code-review"]}', Judged(skills=("code-review",))),
        ("这不是 JSON", Judged(failure="unreadable")),
        ("", Judged(failure="unreadable")),
        ("{" * 5000, Judged(failure="unreadable")),
        ('{"skills": [1, null, {"a": 2}], "direct": "no"}', Judged(failure="unknown_skill")),
        ('{"skills": [], "question": "a\\u001b[31mb"}', Judged(question="ab")),
    ],
)
def test_an_answer_is_read(text: str, expected: Judged) -> None:
    assert parsed(text, OFFERED) == expected


@pytest.mark.wide
@given(
    st.text()
    | st.recursive(
        st.none() | st.booleans() | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.sampled_from(["skills", "direct", "question"]), x),
    ).map(json.dumps)
)
def test_any_answer_is_parsed_into_offered_skills_only(text: str) -> None:
    assert set(parsed(text, OFFERED).skills) <= set(OFFERED)


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        ({"skills": ["song-writer"], "direct": False}, True),
        ({"skills": [], "direct": True, "question": "which?"}, True),
        ({"skills": ["another"], "direct": False}, False),
        ({"skills": ["song-writer"] * (SKILLS + 1), "direct": False}, False),
        ({"skills": [], "direct": "no"}, False),
        ({"skills": [], "direct": True, "question": ["which?"]}, False),
        ({"skills": []}, False),
        ({"direct": True}, False),
    ],
)
def test_the_answer_schema_accepts_only_offered_skills_and_valid_fields(answer: Any, fits: bool) -> None:
    assert Draft202012Validator(shape(["boat-painter", "song-writer"])).is_valid(answer) is fits


@pytest.mark.parametrize(("model", "costs"), [("withheld", True), ("says-nothing", True), ("key-refused", False)])
def test_the_usage_of_a_failed_model_request_is_reported_unless_it_cost_nothing(
    server: WireServer, place: Routing, model: str, costs: bool
) -> None:
    found = judged(server, place, model)
    assert (bool(found.failure), found.model) == (True, f"there:{model}")
    assert [(one.model, one.spent.requests) for one in found.used] == ([(f"there:{model}", 1)] if costs else [])


@pytest.mark.requirement("RTE-11", "RTE-12")
@pytest.mark.parametrize(
    "model", ["failed", "limited", "key-refused", "hangs", "page", "cut", "broken-json", "no-choices", "says-nothing"]
)
def test_a_model_that_fails_stops_no_message(server: WireServer, place: Routing, model: str) -> None:
    found = judged(server, place, model)
    assert (found.skills, found.question, bool(found.failure)) == ((), "", True)


def test_a_server_without_shapes_is_asked_without_one(server: WireServer, place: Routing) -> None:
    found = judged(server, place, "rejected")
    shaped = ["response_format" in request.body for request in server.requests]
    assert (found.failure, shaped) == ("rejected", [True, False])


@pytest.mark.requirement("RTE-42")
def test_the_two_turns_before_are_shown(server: WireServer, place: Routing) -> None:
    said = [Entry(role=role, text=f"{role} {at}", run="r") for at in range(4) for role in ("user", "assistant")]
    judged(server, place, answers(server, "{}"), said=said)
    told = [one["content"] for one in server.requests[0].body["messages"][1:]]
    assert told == ["user 2", "assistant 2", "user 3", "assistant 3", "something with boats"]


@pytest.mark.parametrize("count", [WHOLE, WHOLE + 1])
def test_the_whole_catalogue_is_shown_while_it_fits(server: WireServer, tmp_path: Path, count: int) -> None:
    write_skills(tmp_path, {f"skill-{at:03}": f"does thing {at}" for at in range(count - 2)} | BOATS)
    judged(server, routing_at(tmp_path), answers(server, "{}"), mode="llm_only")
    shown = server.requests[0].body["messages"][0]["content"].count("\n- skill-")
    assert shown == (WHOLE - 2 if count == WHOLE else 0)


@pytest.mark.requirement("TOL-10")
def test_a_skill_that_cannot_be_read_is_not_shown(server: WireServer, tmp_path: Path) -> None:
    write_skills(tmp_path, BOATS)
    broken = tmp_path / ".claude" / "skills" / "broken" / "SKILL.md"
    broken.parent.mkdir(parents=True)
    broken.write_bytes(b"---\nname: [\x00\n")
    judged(server, routing_at(tmp_path), answers(server, "{}"), mode="llm_only")
    shown = server.requests[0].body["messages"][0]["content"]
    assert ("boat-painter" in shown, "broken" in shown) == (True, False)


def test_no_more_than_a_shortlist_is_shown(server: WireServer, tmp_path: Path) -> None:
    names = [f"skill-{at:03}" for at in range(30)]
    write_skills(tmp_path, dict.fromkeys(names, "does things"))
    server.requests.clear()

    async def run() -> None:
        held = WireModel(f"there:{answers(server, '{}')}", models_at(server))
        await ModelJudge(lambda: held, routing_at(tmp_path).catalogue).judge("x", doubt(*names), (), "en")
        await held.close()

    asyncio.run(run())
    assert server.requests[0].body["messages"][0]["content"].count("\n- skill-") == SHORTLIST


# The same in a turn


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    """A project with two equally likely skills, and a model."""
    here = place_in(tmp_path)
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[models]\ndefault = "there:judge"\nretries = 0\nfirst = 60\n[models.providers.there]\nurl = "{server.url}"\n'
    )
    twins = dict.fromkeys(("art-of-ann", "art-of-bob"), "paints fine watercolours on canvas")
    here.write({f".claude/skills/{name}/SKILL.md": skill_text(name, text) for name, text in twins.items()})
    server.requests.clear()
    return here


AMBIGUOUS = "paint fine watercolours of boats on canvas"


@pytest.mark.wide
@pytest.mark.requirement("RTE-34", "RTE-46")
def test_a_sure_match_asks_no_model(here: Place, server: WireServer) -> None:
    assert here.json("ask", "word count of this: hello world")["exit_code"] == 0
    assert server.requests == []


@pytest.mark.wide
@pytest.mark.requirement("RTE-18", "INT-12")
def test_a_model_chooses_between_two_equally_likely_skills(here: Place, server: WireServer) -> None:
    server.scripts["judge"] = lambda _messages, _number: Said(text='{"skills": ["art-of-bob"], "direct": false}')
    told = here.json("ask", AMBIGUOUS)
    assert (told["route"]["tier"], told["route"]["entity"]) == ("model", "art-of-bob")
    assert "art-of-ann" in told["route"]["candidates"]


@pytest.mark.wide
@pytest.mark.requirement("RTE-21", "RTE-22", "RTE-29", "RTE-30", "RTE-31", "RTE-44", "RTE-48")
def test_a_models_question_is_asked_and_the_answer_is_judged_with_the_message(here: Place, server: WireServer) -> None:
    def judge(messages: Sequence[Any], number: int) -> Said:
        if "moored" in messages[-1]["content"]:
            return Said(text='{"skills": ["art-of-ann"], "direct": false}')
        return Said(text='{"skills": [], "direct": false, "question": "Moored or at sea?"}')

    server.scripts["judge"] = judge
    asked = here.json("ask", "--session", "s", AMBIGUOUS)
    assert (asked["exit_code"], asked["report"]["summary"]) == (9, "Moored or at sea?")
    assert here.json("session", "show", "s")["history"] == []
    told = here.json("ask", "--session", "s", "moored ones")
    assert told["route"]["entity"] == "art-of-ann"
    assert server.requests[-1].body["messages"][-1]["content"] == f"{AMBIGUOUS} moored ones"
    said = here.json("session", "show", "s")["history"]
    assert [one["text"] for one in said if one["role"] == "user"] == [f"{AMBIGUOUS} moored ones"]


@pytest.mark.wide
@pytest.mark.requirement("RTE-45")
def test_a_skill_that_was_not_offered_is_not_chosen(here: Place, server: WireServer) -> None:
    def judge(messages: Sequence[Any], _number: int) -> Said:
        hidden = [name for name in NAMES if f"\n- {name}" not in messages[0]["content"]]
        return Said(text=json.dumps({"skills": hidden[:1], "direct": False}))

    server.scripts["judge"] = judge
    assert here.json("ask", AMBIGUOUS)["route"]["kind"] == "direct"


def test_a_model_that_must_not_choose_is_not_asked(here: Place, server: WireServer) -> None:
    here.said("config", "set", "router", "local_only")
    assert here.json("ask", AMBIGUOUS)["route"]["kind"] == "clarify"
    assert server.requests == []


@pytest.mark.wide
@pytest.mark.requirement("RTE-41", "RTE-43")
def test_a_model_that_always_chooses_is_asked_even_where_it_is_sure(here: Place, server: WireServer) -> None:
    here.said("config", "set", "router", "llm_only")
    server.scripts["judge"] = lambda _messages, _number: HELLO
    here.json("ask", "please review this pull request for mistakes")
    assert server.asked("judge") >= 1
