"""`navigator skill learn`: a model writes example requests for a skill, after the person agreed to the cost."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from navigator_kernel.routing.skill_writer import EXAMPLES, parsed
from tables import cases

pytestmark = pytest.mark.sample(2)

SKILL = (
    "---\nname: kiln-log\ndescription: Keeps the firing log of a kiln.\n---\n\n# Kiln log\n\nWrite each firing down.\n"
)
WRITTEN = ["how hot did the last batch get", "write down tonight's bisque run", "上一窑烧到多少度"]


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serving() as held:
        held.scripts["writer"] = lambda _messages, _number: Said(f"Here:\n{json.dumps({'examples': WRITTEN})}")
        held.scripts["vague"] = lambda _messages, _number: Said("I would rather not.")
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(f'[models]\ndefault = "there:writer"\n[models.providers.there]\nurl = "{server.url}"\n')
    place = place_in(tmp_path)
    place.write({"source/kiln-log/SKILL.md": SKILL})
    place.said("skill", "install", "./source/kiln-log")
    return place


def first(place: Place, text: str) -> dict[str, Any]:
    found: dict[str, Any] = place.json("route", text)["shortlist"][0]
    return found


def test_nothing_is_asked_before_the_person_agreed_to_the_cost(here: Place, server: WireServer) -> None:
    done = here.run("skill", "learn", "kiln-log")
    assert (done.code, server.requests) == (9, [])
    assert "1 requests to there:writer, about" in done.err and "--yes" in done.err


@pytest.mark.wide
def test_examples_are_kept_beside_the_receipt_and_find_the_skill(here: Place, server: WireServer) -> None:
    text = "how hot did the last batch get?"
    before = first(here, text)["confidence"]
    manifest = (here.root / ".claude/skills/kiln-log/SKILL.md").read_bytes()
    told = here.json("skill", "learn", "kiln-log", "--yes")
    assert told["skills"] == [{"name": "kiln-log", "examples": WRITTEN}]
    assert (told["requests"], told["input_tokens"]) == (1, 120)
    after = first(here, text)
    assert after["name"] == "kiln-log" and after["confidence"] > max(before, 0.9)
    assert (here.root / ".claude/skills/kiln-log/SKILL.md").read_bytes() == manifest
    assert here.said("skill", "verify", "kiln-log")
    assert "Keeps the firing log" in str(server.requests[0].body["messages"])


@pytest.mark.wide
def test_an_update_keeps_them_and_forget_removes_them(here: Place) -> None:
    here.said("skill", "learn", "kiln-log", "--yes")
    here.write({"source/kiln-log/SKILL.md": SKILL.replace("Write each", "Note each")})
    here.said("skill", "update", "kiln-log")
    assert here.json("skill", "learn", "kiln-log", "--show")["skills"][0]["examples"] == WRITTEN
    assert here.json("skill", "learn", "kiln-log", "--forget")["skills"][0]["examples"] == []
    assert here.json("skill", "learn", "--all", "--show")["skills"] == [{"name": "kiln-log", "examples": []}]


@pytest.mark.wide
def test_all_asks_only_for_skills_without_examples(here: Place, server: WireServer) -> None:
    here.said("skill", "learn", "--all", "--yes")
    here.said("skill", "learn", "--all", "--yes")
    assert server.asked("writer") == 1


@pytest.mark.wide
def test_an_answer_without_examples_fails_and_changes_nothing(here: Place) -> None:
    done = here.run("skill", "learn", "kiln-log", "--yes", "--model", "there:vague")
    assert done.code == 1 and "gave no examples" in done.err
    assert here.json("skill", "learn", "kiln-log", "--show")["skills"][0]["examples"] == []


@pytest.mark.wide
def test_a_skill_that_the_model_fails_for_is_named_and_the_others_keep_theirs(here: Place, server: WireServer) -> None:
    here.write({"source/odd-one/SKILL.md": SKILL.replace("kiln-log", "odd-one")})
    here.said("skill", "install", "./source/odd-one")
    written = Said(json.dumps({"examples": WRITTEN}))
    server.scripts["writer"] = lambda messages, _: Said("No.") if "odd-one" in str(messages[1]) else written
    done = here.run("skill", "learn", "--all", "--yes", "--json")
    told = json.loads(done.out)
    assert (done.code, told["exit_code"], list(told["failed"])) == (1, 1, ["odd-one"])
    assert told["skills"] == [{"name": "kiln-log", "examples": WRITTEN}]


@cases("words, code, said", lists=True)
def test_an_invalid_learn_command_has_its_exit_code_and_says_why(
    here: Place, words: list[str], code: int, said: str
) -> None:
    done = here.run("skill", "learn", *words, "--yes")
    assert (done.code, said in done.err) == (code, True), done.err


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"examples": ["one \\u001b[2J two", "a", "x\\ny", 3, "one \\u001b[2J two"]}', ("one two", "x y")),
        ('{"a": 1} {"examples": ["ask me"]}', ("ask me",)),
        ('{"examples": [' + ",".join(f'"say {at}"' for at in range(9)) + "]}", tuple(f"say {at}" for at in range(5))),
        (json.dumps({"examples": ["a" * 201]}), ()),
        ("no", ()),
        ('{"examples": "one"}', ()),
        ("{" * 5_000, ()),
    ],
)
def test_an_answer_is_data_that_is_cleaned(text: str, found: tuple[str, ...]) -> None:
    assert parsed(text, EXAMPLES) == found
