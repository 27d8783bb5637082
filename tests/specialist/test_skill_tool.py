"""A model without a skill loads one, and goes on with its tools, its folder and its rights."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli.support import Place, type_a
from models.wire_server import HELLO, Said, WireServer
from person_state import accept
from skill_repositories import skill_text
from specialist.turns import of_phase_two, says

pytestmark = pytest.mark.ci

RUN = 'print(len(open("rhymes.md").read().split()), "words")\n'


def call(tool: str, **arguments: Any) -> Said:
    return Said(calls=[(tool, json.dumps(arguments))])


def results(server: WireServer) -> list[str]:
    return [str(one["content"]) for one in of_phase_two(server)[-1]["messages"] if one["role"] == "tool"]


def names(body: dict[str, Any]) -> list[str]:
    return [one["function"]["name"] for one in body["tools"]]


@pytest.fixture
def direct(here: Place) -> Place:
    here.write({".claude/skills/song-writer/rhymes.md": "boat, float\n"})
    accept(here.root, "song-writer")
    return here


@pytest.mark.requirement("RTE-32", "JIT-5")
def test_a_loaded_skill_brings_its_tools_and_its_folder(direct: Place, server: WireServer) -> None:
    says(
        server,
        call("skill", name="song-writer"),
        call("read", file_path="rhymes.md"),
        call("write", file_path="song.txt", content="row row row"),
        Said(text="The song is in song.txt."),
    )
    told = direct.json("ask", "why is the sky blue?")
    assert (told["exit_code"], told["report"]["raw"]) == (0, "The song is in song.txt.")
    bodies = of_phase_two(server)
    assert names(bodies[0]) == ["skill"] and {"read", "write", "run"} <= set(names(bodies[1]))
    guide, rhymes, _ = results(server)
    assert "Rhyme every line." in guide and str(direct.root / ".claude/skills/song-writer") in guide
    assert rhymes == "     1\tboat, float"
    assert told["report"]["data"]["skill"] == "song-writer"
    assert [one["path"].rpartition("/")[2] for one in told["report"]["data"]["written"]] == ["song.txt"]
    same = [json.dumps(body["messages"][:2]) for body in bodies]  # a stable beginning, which a provider can cache
    assert len(set(same)) == 1


@pytest.mark.requirement("JIT-12")
def test_a_loaded_skill_goes_on_after_a_yes(direct: Place, server: WireServer) -> None:
    says(
        server,
        call("skill", name="song-writer"),
        call("write", file_path="count.py", content="print(6 * 7)\n"),
        call("run", command="python3 count.py"),
        Said(text="It is 42."),
    )
    waits = direct.json("ask", "--session", "s", "why is the sky blue?")
    assert waits["exit_code"] == 9 and "count.py" in waits["report"]["summary"]
    told = direct.json("ask", "--session", "s", "yes")
    assert (told["exit_code"], told["report"]["raw"]) == (0, "It is 42.")
    assert "42" in results(server)[-1]


@pytest.mark.requirement("JIT-12", "SAF-1")
def test_a_loaded_skill_that_was_changed_meanwhile_does_not_go_on(direct: Place, server: WireServer) -> None:
    says(server, call("skill", name="song-writer"), call("run", command="ls"), Said(text="Done."))
    assert direct.json("ask", "--session", "s", "why is the sky blue?")["exit_code"] == 9
    direct.write({".claude/skills/song-writer/rhymes.md": "other bytes\n"})
    told = direct.json("ask", "--session", "s", "yes")
    assert told["exit_code"] != 0 and "changed" in told["report"]["summary"]
    assert len(of_phase_two(server)) == 2


@pytest.mark.requirement("TOL-9")
def test_a_skill_that_the_person_does_not_accept_brings_nothing(here: Place, server: WireServer) -> None:
    here.write({".claude/skills/other/SKILL.md": skill_text("other", "does other things")})
    says(server, call("skill", name="other"), HELLO)
    here.json("ask", "why is the sky blue?")
    assert names(of_phase_two(server)[-1]) == ["skill"]


@pytest.mark.requirement("RTE-32")
def test_the_likely_skills_are_named_with_what_they_are_for(direct: Place, server: WireServer) -> None:
    here = direct
    here.write({f".claude/skills/boat-counter/{path}": text for path, text in type_a("boat-counter", RUN).items()})
    here.write({".claude/skills/stranger/SKILL.md": skill_text("stranger", "writes songs about boats and rain")})
    here.run("config", "set", "router", "llm_only")  # the model chooses, and wants no skill
    here.json("ask", "what do people like about songs and boats?")
    told = str(of_phase_two(server)[0]["messages"])
    assert "- song-writer: writes cheerful songs about boats." in told
    assert "stranger" not in told and "boat-counter" not in told


@pytest.mark.requirement("RTE-32")
def test_a_model_that_asks_for_no_skill_that_exists_gets_the_names_and_ends_in_a_sentence(
    direct: Place, server: WireServer
) -> None:
    says(server, call("skill", name="EinLu"), call("skill", name="EinLu"), HELLO)
    told = direct.json("ask", "Hello, who are you?")
    assert (told["exit_code"], told["report"]["raw"]) == (0, HELLO.text)
    assert "no skill is called EinLu" in results(server)[0] and "song-writer" in results(server)[0]


@pytest.mark.requirement("X-43")
def test_the_person_is_told_that_a_skill_has_no_tools_until_they_trust_it(here: Place, server: WireServer) -> None:
    """Its text is used without a question, so without this line nobody would know why its model does nothing."""
    says(server, HELLO)
    assert "song-writer" not in here.run("ask", "/song-writer a song").err, "it is trusted"
    file = here.root / ".claude/skills/song-writer/SKILL.md"
    file.write_text(f"{file.read_text()}Rhyme twice.\n")
    line = "song-writer has changed since you accepted it, so its model has no tools"
    shown = here.run("ask", "/song-writer a song")
    assert shown.code == 0 and line in shown.err and "navigator skill trust song-writer" in shown.err
    told = here.json("ask", "/song-writer a song")
    assert [one["code"] for one in told["report"]["data"]["diagnostics"]] == ["untrusted"]
    assert line in here.said("why", told["run"])
    assert "song-writer has changed since you accepted it" in here.run("doctor").out
    here.write({".claude/skills/newcomer/SKILL.md": skill_text("newcomer", "writes letters")})
    assert "newcomer 在此未获信任" in here.run("--language", "zh", "ask", "/newcomer 写一封信").err
    says(server, call("skill", name="newcomer"), HELLO)
    server.requests.clear()
    assert "newcomer is not trusted here, so the model could not load it" in here.run("ask", "why is it blue?").err
