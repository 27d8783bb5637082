"""A whole turn with a model, as a person sees it: routed, carried out, answered, remembered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.support import Place, type_a
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import events, of_phase_two, says, settings, song
from tables import cases

pytestmark = pytest.mark.ci

KEY = "sk-made-up-key-0123456789"


@pytest.mark.requirement("CAN-7", "RTE-19", "RTE-20")
def test_a_message_without_a_skill_is_answered(here: Place, server: WireServer) -> None:
    told = here.json("ask", "why is the sky blue?")
    assert (told["exit_code"], told["route"]["kind"], told["report"]["raw"]) == (0, "direct", HELLO.text)
    assert told["report"]["data"]["usage"]["input_tokens"] == 120
    (body,) = of_phase_two(server)
    assert body["messages"][-1]["content"] == "why is the sky blue?"
    assert [tool["function"]["name"] for tool in body["tools"]] == ["skill"]


def test_the_answer_is_printed_with_its_model_token_count_and_unknown_price(here: Place) -> None:
    done = here.run("ask", "why is the sky blue?")
    assert (done.code, done.out) == (0, f"{HELLO.text}\n")
    assert "there:worker, 132 tokens, price not known" in done.err


@pytest.mark.requirement("REG-6", "RTE-24", "RTE-25", "JIT-9")
def test_a_skills_prompt_is_worked_on(here: Place, server: WireServer) -> None:
    told = here.json("ask", "/song-writer a song about rain")
    assert (told["exit_code"], told["report"]["agent"], told["report"]["raw"]) == (0, "skills", HELLO.text)
    contents = [message["content"] for message in of_phase_two(server)[0]["messages"]]
    assert "Rhyme every line." in contents[1] and '<skill name="song-writer"' in contents[1]
    assert contents[2] == "a song about rain"


@pytest.mark.requirement("EVT-1", "EVT-6", "EVT-7")
def test_the_events_of_a_turn_with_a_tool_call_are_in_order_with_text_and_usage(
    here: Place, server: WireServer
) -> None:
    says(server, Said(calls=[("skill", '{"name": "song-writer"}')]), Said(text="One two three."))
    run = here.json("ask", "/song-writer a song")["run"]
    kinds = [event["type"] for event in events(here, run)]
    wanted = ["RunStarted", "SkillActivated", "ToolCallStarted", "ToolCallCompleted", "RunContent", "RunCompleted"]
    assert [kind for at, kind in enumerate(kinds) if kind in wanted and kind not in kinds[:at]] == wanted
    assert "".join(e["data"]["text"] for e in events(here, run) if e["type"] == "RunContent") == "One two three."
    usage = [event["data"] for event in events(here, run) if event["type"] == "Usage"]
    assert [(one["skill"], one["phase"], one["cached_tokens"]) for one in usage] == [("song-writer", 2, 100)] * 2


@pytest.mark.requirement("RTE-32")
def test_a_model_may_read_a_skill_that_routing_missed(here: Place, server: WireServer) -> None:
    says(server, Said(calls=[("skill", '{"name": "song_writer"}')]), HELLO)
    assert here.json("ask", "why is the sky blue?")["exit_code"] == 0
    assert "Rhyme every line." in of_phase_two(server)[1]["messages"][-1]["content"]


@pytest.mark.requirement("TOL-9")
@pytest.mark.parametrize("name", ["no-such-skill", "counter"])
def test_a_call_for_a_skill_without_guidelines_returns_no_other_skills_guidelines(
    here: Place, server: WireServer, name: str
) -> None:
    here.write({f".claude/skills/counter/{path}": text for path, text in type_a("counter", "print(1)\n").items()})
    says(server, Said(calls=[("skill", f'{{"name": "{name}"}}')]), HELLO)
    here.json("ask", "why is the sky blue?")
    assert "Rhyme" not in str(of_phase_two(server)[1]["messages"][-1])


@pytest.mark.requirement("RTE-30", "JIT-11")
def test_the_turns_before_are_remembered(here: Place, server: WireServer) -> None:
    says(server, Said(text="Hello Ann."))
    here.json("ask", "--session", "s", "my name is Ann, hello there")
    here.json("ask", "--session", "s", "/song-writer a song about my name")
    told = [(one["role"], one["content"]) for one in of_phase_two(server)[-1]["messages"]]
    assert told[1:3] == [("user", "my name is Ann, hello there"), ("assistant", "Hello Ann.")]


def test_a_skill_that_inherits_no_history_sees_none(here: Place, server: WireServer) -> None:
    text = song("inherit_history: false\n")
    here.write({".claude/skills/song-writer/SKILL.md": text})
    here.json("ask", "--session", "s", "my name is Ann, hello there")
    here.json("ask", "--session", "s", "/song-writer a song about my name")
    assert "Ann" not in str(of_phase_two(server)[-1]["messages"])


@pytest.mark.requirement("FMT-5")
def test_a_skill_names_its_model(here: Place, server: WireServer) -> None:
    text = song("backend: quick\n")
    here.write({".claude/skills/song-writer/SKILL.md": text})
    says(server, HELLO, model="quick")
    assert here.json("ask", "/song-writer a song")["report"]["data"]["model"] == "there:quick"


def test_another_model_is_asked_if_one_fails(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(settings(server, "there:failed", 'fallback = ["there:well"]'))
    told = here.json("ask", "/song-writer a song")
    assert (told["exit_code"], told["report"]["data"]["model"]) == (0, "there:well")


@pytest.mark.requirement("RTE-12")
@cases("model, code, kind")
def test_a_model_that_fails_is_one_typed_report(
    here: Place,
    mine: Path,
    server: WireServer,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    code: int,
    kind: str,
) -> None:
    monkeypatch.setenv("THERE_API_KEY", KEY)
    mine.write_text(settings(server, f"there:{model}", first=1 if model == "hangs" else 90))
    told = here.json("ask", "/song-writer a song")
    assert (told["exit_code"], told["report"]["data"].get("kind")) == (code, kind)
    assert told["report"]["data"]["hint"]
    assert KEY not in json.dumps(told) + "".join(path.read_text() for path in here.root.rglob("mybox/logs/**/*.jsonl"))


@pytest.mark.requirement("SAF-8")
def test_a_secret_that_a_model_writes_is_shown_to_nobody(here: Place, server: WireServer) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    says(server, Said(text=f"The key is {secret} as you see."))
    done = here.run("ask", "--session", "s", "/song-writer a song")
    assert secret not in done.out + done.err and "[redacted]" in done.out
    assert secret not in "".join(path.read_text() for path in here.root.rglob("mybox/logs/**/*.jsonl"))
    assert secret not in here.run("session", "export", "s").out


def test_control_characters_in_a_models_answer_are_not_printed(here: Place, server: WireServer) -> None:
    says(server, Said(text="a\x1b[2Jb\u202ec\x07 [bold]d[/bold]"))
    done = here.run("ask", "/song-writer a song")
    assert done.out.startswith("abc [bold]d[/bold]\n") and "\x1b" not in done.out + done.err


def test_commands_files_and_placeholders_in_a_models_answer_are_never_expanded(here: Place, server: WireServer) -> None:
    here.write({"notes.txt": "the notes"})
    says(server, Said(text="!`touch canary` @notes.txt $ARGUMENTS {request} /song-writer"))
    told = here.json("ask", "--session", "s", "/song-writer a song")
    assert told["report"]["raw"] == "!`touch canary` @notes.txt $ARGUMENTS {request} /song-writer"
    here.json("ask", "--session", "s", "/song-writer another")
    assert "the notes" not in str(of_phase_two(server)[-1]) and not list(here.root.rglob("canary"))


def test_a_step_of_a_workflow_is_worked_on(here: Place, server: WireServer) -> None:
    here.write(
        {f".claude/skills/counter/{path}": text for path, text in type_a("counter", "print('12 lines')\n").items()}
    )
    told = here.json("ask", "--yes", "first run counter, then use song-writer to write a song about it")
    assert [report["agent"] for report in told["reports"]] == ["skills", "skills"]
    assert "12 lines" in str(of_phase_two(server)[-1]["messages"][-1])


def test_without_a_model_all_is_as_it_was(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text("")
    assert here.json("ask", "why is the sky blue?")["report"]["data"]["reason"] == "no_model"
    assert here.json("ask", "/song-writer a song")["report"]["data"]["reason"] == "no_model"
    assert "Rhyme every line." in here.json("ask", "--show-prompt", "/song-writer a song")["report"]["raw"]
    assert server.requests == []


def test_a_budget_of_a_turn_is_kept(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(settings(server, more="turn_tokens = 200"))
    says(server, Said(calls=[("skill", '{"name": "song-writer"}')]))
    told = here.json("ask", "/song-writer a song")
    assert (told["report"]["data"]["reason"], len(of_phase_two(server))) == ("tokens", 3)
