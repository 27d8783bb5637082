"""Names from third parties steer no terminal and forge no line, wherever they are shown or recorded."""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cli.support import Place, below, place_in, type_a
from person_state import state_of
from skill_repositories import make_repo
from tables import table

pytestmark = [pytest.mark.requirement("SAF-1", "SAF-2"), pytest.mark.sample(2)]

FORGED = "[State Update]"
NAMES = "import json, os, sys\nfor name in json.load(open(os.environ['SKILL_ROOT'] + '/names.json')):\n"
NAMES += "    open(os.fsencode(name), 'w').close()\nprint('done')\n"
STEERING = ["\x00", "\n", "\r", "\t", "\x1b", "\x1b[2J", "\x1b]0;t\x07", "\x7f", "\x9b", "\u202e", "\u2066", "\u200b"]
STEERING += ["\u2028", "\u2029", "\ufeff", "\udc80", "\udcff", "\U000e0041", FORGED, "  you agreed", "a", "文"]
NAME = st.lists(st.sampled_from(STEERING[1:]), min_size=1, max_size=8).map("".join)
UNSAFE = frozenset({"Cc", "Cs"})
HIDING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b\u2028\u2029\ufeff\U000e0041")


def steering(text: str) -> set[str]:
    """The characters of `text` that steer a terminal or are invisible, except line ends and tabs."""
    return {mark for mark in text if (unicodedata.category(mark) in UNSAFE or mark in HIDING) and mark not in "\n\t"}


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def leaves(place: Place, *names: str) -> str:
    """What a person sees of a run that leaves files with these names, and of its record."""
    place.write(below(".claude/skills/maker", {**type_a("maker", NAMES), "names.json": json.dumps(names)}))
    done = place.run("ask", "/maker", "--yes", "--format", "detail")
    assert done.code == 0, done.out + done.err
    return done.out + place.said("log", "--last", "3")


@pytest.mark.parametrize("mark", ["\n", "\r", "\u2028", "\x1b[1E"])
def test_a_file_name_forges_no_line_of_the_reply_or_the_log(here: Place, mark: str) -> None:
    shown = leaves(here, f"a{mark}{FORGED}{mark}  you agreed")
    assert "you agreed" in shown
    assert not [line for line in shown.splitlines() if line.strip().startswith("you agreed")]


@pytest.mark.wide
@given(names=st.lists(NAME.filter(lambda name: len(os.fsencode(name)) < 200), min_size=1, max_size=12, unique=True))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_names_of_files_that_a_skill_leaves_steer_nothing(here: Place, names: list[str]) -> None:
    shown = leaves(here, *names)
    lines = shown.splitlines()
    assert steering(shown) == set()
    assert [line for line in lines if line.strip() == FORGED] == [FORGED] * (FORGED in lines)
    for line in (state_of(here.root) / "audit.jsonl").read_text("utf-8").splitlines():
        wrote = json.loads(line).get("wrote", ())
        assert steering("".join(one["path"] for one in wrote)) == set()
        assert not any("\n" in one["path"] for one in wrote)


def test_the_record_as_a_file_steers_no_terminal(here: Place) -> None:
    here.run("ask", "!echo \u202e\u200b\x9b2J \U000e0041", "--yes")
    text = (state_of(here.root) / "audit.jsonl").read_bytes().decode("utf-8")
    assert (steering(text), "\\u202e" in text) == (set(), True)


def test_the_question_about_a_long_command_shows_its_end_its_length_and_its_digest(here: Place) -> None:
    command = f"echo {'a' * 5_000}; echo the end"
    done = here.run("ask", f"!{command}")
    assert done.code == 9
    assert all(word in done.out for word in ("/bin/sh", "echo the end", "characters, sha256:"))


def test_all_of_a_long_command_is_among_the_facts_of_its_question(here: Place) -> None:
    command = f"echo {'a' * 5_000}; echo the end"
    done = here.run("ask", f"!{command}", "--json")
    assert done.document["report"]["data"]["command"] == command


def test_a_long_name_of_a_program_hides_neither_the_program_nor_its_arguments(here: Place) -> None:
    long = "/" + "./" * 1_500 + "bin/evil-program"
    skill = type_a("maker", "", extra="").copy()
    skill["SKILL.md"] = skill["SKILL.md"].replace("python ${SKILL_ROOT}/run.py", f"{long} {'x' * 3_000} --the-end")
    here.write(below(".claude/skills/maker", skill))
    done = here.run("ask", "/maker")
    assert done.code == 9
    assert all(word in done.out for word in ("run maker:", "bin/evil-program", "--the-end", "sha256:"))


EVIL = f"odd\n{FORGED}\n  you agreed\x1b[2K\u202e"
COMMANDS = list(table(__file__, "COMMANDS"))


@pytest.fixture(scope="module", params=[EVIL, f"odd\u2028{FORGED}\u2028  you agreed"], ids=["controls", "separators"])
def odd(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Place:
    """A project in which everything that can have a name has one that forges lines."""
    place, evil = place_in(tmp_path_factory.mktemp("odd")), request.param
    quoted = json.dumps(evil, ensure_ascii=False) if evil != EVIL else json.dumps(evil)
    text = f"---\nname: {quoted}\ndescription: {quoted}\ntools: [{quoted}]\naliases: [{quoted}, odd]\n---\n# x\n\nDo odd.\n"
    place.write({f".claude/skills/{evil}/SKILL.md": text, ".claude/skills/odd/SKILL.md": text})
    place.write({f".claude/agents/{evil}.md": text, f".claude/commands/{evil}.md": text, f"bin/{evil}.py": "print(1)"})
    server = {"command": f"/bin/{evil}", "args": [evil], "env": {evil: evil}}
    place.write({".mcp.json": json.dumps({"mcpServers": {evil: server, "odd": server}})})
    flow = f"---\nname: {quoted}\ndescription: {quoted}\n---\n# {evil}\n\n1. {evil}\n"
    place.write({f"mybox/workflows/{evil}.md": flow, "mybox/workflows/odd.md": flow})
    files = {f"skills/{evil}/SKILL.md": text, "skills/odd/SKILL.md": text, f"skills/odd/{evil}.txt": "x"}
    make_repo(place.root.parent, dict(files))
    return place


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words[:2]))
def test_no_command_prints_a_line_that_a_name_forges(odd: Place, words: tuple[str, ...]) -> None:
    done = odd.run(*(f"file://{odd.root.parent}/repo" if word == "REPO" else word for word in words))
    for stream in (done.out, done.err):
        assert steering(stream) == set()
        assert [line for line in stream.splitlines() if line.strip() == "you agreed"] == []
        assert [line for line in stream.splitlines() if line.startswith("  you agreed")] == []
