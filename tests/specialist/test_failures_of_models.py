"""What a person and a program see if a provider fails, and the usage that they see."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from cli.terminals import terminal
from models.wire_server import HELLO, Said, WireServer
from specialist.turns import events, of_phase_two, says, settings

pytestmark = pytest.mark.sample(1)

SONG = "/song-writer a song"
AGAIN = "hint: send the message again later, or ask another model: navigator model use NAME\n"


def asks(mine: Path, server: WireServer, model: str, more: str = "") -> None:
    mine.write_text(settings(server, f"there:{model}", more))


def used(run: list[dict[str, Any]]) -> list[Mapping[str, Any]]:
    return [event["data"] for event in run if event["type"] == "Usage"]


@pytest.mark.wide
@pytest.mark.requirement("X-41", "RET-1")
def test_a_failure_is_a_sentence_and_a_hint_and_json_keeps_the_data(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "forbidden")
    done = here.run("ask", SONG)
    assert (done.code, done.out) == (1, "")
    sentence, hint = done.err.splitlines()
    assert sentence.endswith(
        "model 'there:forbidden': the provider does not allow this request (403): "
        '"Country, region, or territory not supported"'
    )
    assert hint.startswith("hint: the account may not use this model")
    data = here.json("ask", SONG)["report"]["data"]
    assert (data["kind"], data["status"]) == ("forbidden", 403)
    assert data["said"] == "Country, region, or territory not supported"
    assert {"begun", "tried", "pieces", "waits"}.isdisjoint(data)
    assert "  data: {" in here.run("ask", "--format", "protocol", SONG).out


@pytest.mark.wide
def test_a_model_failure_is_reported_in_the_language_of_the_message(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "failed")
    err = here.run("ask", "/song-writer 写一首关于船的歌").err
    assert "模型 'there:failed'：服务器出错 (500)" in err and "请稍后重新发送" in err


@pytest.mark.wide
@pytest.mark.parametrize("mode", ["cut", "error-in-stream"])
def test_the_partial_answer_of_an_interrupted_stream_is_kept_and_marked_incomplete(
    here: Place, mine: Path, server: WireServer, mode: str
) -> None:
    asks(mine, server, mode)
    done = here.run("ask", SONG)
    assert (done.code, done.out) == (1, "Hello, all is\n")
    first, failed, hint, took = done.err.splitlines()
    assert (first, hint, took) == (
        "the answer is not complete",
        AGAIN.strip(),
        f"there:{mode}: the cost is not known",
    )
    assert f"model 'there:{mode}': " in failed
    told = here.json("ask", "--session", "s", SONG)
    report = told["report"]
    assert (report["state"], report["raw"], report["data"]["incomplete"]) == ("error", "Hello, all is", True)
    assert told["usage"] == {**report["data"]["usage"], "unknown_requests": 1, "requests": 1}


@pytest.mark.wide
def test_all_text_that_was_streamed_before_a_stream_broke_off_is_in_the_run_log(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "cut")
    told = here.json("ask", SONG)
    said = "".join(e["data"]["text"] for e in events(here, told["run"]) if e["type"] == "RunContent" and e["step"] == 0)
    assert said == "Hello, all is "


@pytest.mark.wide
@pytest.mark.requirement("EVT-7")
def test_every_request_of_a_turn_counts_once_everywhere(here: Place, mine: Path, server: WireServer) -> None:
    """A request that chooses, one that was withheld, and the fallback that answered."""
    mine.write_text(settings(server, "there:first", 'fallback = ["there:second"]\n').replace("\n[models]", ""))
    says(server, Said(), model="first")
    says(server, HELLO, model="second")
    told = here.json("ask", "write something cheerful about the sea and boats for me")
    counted = used(events(here, told["run"]))
    assert [one["model"] for one in counted][-2:] == ["there:first", "there:second"]
    requests = sum(one["requests"] for one in counted)
    assert requests == len(server.requests) == told["usage"]["requests"]
    assert told["usage"]["input_tokens"] == sum(one["input_tokens"] for one in counted) == 120 * requests
    (note,) = told["report"]["data"]["diagnostics"]
    assert note == {
        "code": "fallback",
        "msg": "model 'there:first': its answer was empty; there:second answered instead",
    }


@pytest.mark.wide
def test_a_long_wait_ends_the_turn_and_a_short_one_is_announced_on_a_terminal(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "limited-for-an-hour")
    err = here.run("ask", SONG).err
    assert "too many requests (429); the provider asks to wait 1 h\n" in err and "after that time" in err
    asks(mine, server, "limited-a-second", "retries = 1\n")
    mine.write_text(mine.read_text().replace("retries = 0\n", ""))
    assert "waiting 1 s, as the provider asks (there:limited-a-second)\n" in here.on_terminal("ask", SONG)
    server.requests.clear()
    done = here.run("ask", SONG)
    assert (done.out, "waiting" in done.err) == (f"{HELLO.text}\n", False)


@pytest.mark.wide
@pytest.mark.requirement("SAF-5", "SAF-7")
def test_an_outage_asks_nothing_and_the_next_message_is_done(here: Place, mine: Path, server: WireServer) -> None:
    asks(mine, server, "failed")
    for message in (SONG, "retry", "retry"):
        told = here.json("ask", "--session", "s", message)
        assert (told["report"]["data"]["kind"], told["question"]) == ("server_error", None)
        assert 'it failed; "retry" tries it again' in told["sections"]["state_update"]
    asks(mine, server, "well")
    told = here.json("ask", "--session", "s", "write a song about a boat instead")
    assert (told["report"]["state"], told["report"]["raw"]) == ("success", HELLO.text)


@pytest.mark.wide
@pytest.mark.requirement("SAF-5", "WFL-7")
def test_a_step_that_no_model_answered_can_be_tried_again_and_again(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "failed")
    told = here.json("ask", "--yes", "write a song with /song-writer and then count the words")
    token = told["workflow"]["token"]
    for _ in range(2):
        assert "did not succeed, the run stopped; try it again?" in told["question"]
        told = here.json("workflow", "resume", token)
    assert "step 1 of 2 did not succeed" in told["question"]
    asks(mine, server, "well")
    told = here.json("workflow", "resume", token)
    assert (told["report"]["state"], told["report"]["data"]["words"]) == ("success", 4)


@pytest.mark.wide
@pytest.mark.requirement("STK-2")
@pytest.mark.parametrize("word", ["cancel", "no", "取消", "不用"])
def test_a_no_to_a_follow_up_asks_no_model(here: Place, server: WireServer, word: str) -> None:
    here.json("ask", "--session", "s", SONG)
    before = len(server.requests)
    told = here.json("ask", "--session", "s", word)
    assert (told["route"]["reason"], len(server.requests) - before) == ("released", 0)
    assert not [line for line in told["sections"]["state_update"] if "follow-ups" in line]


@pytest.mark.wide
@pytest.mark.requirement("RET-8")
def test_a_redirected_answer_is_whole_and_alone(here: Place, server: WireServer) -> None:
    long = " ".join(
        f"line {number}" for number in range(4_500)
    )  # over 32 kB, above which a report holds only the beginning
    says(server, Said(text=long))
    done = here.run("ask", SONG)
    assert (done.code, done.out) == (0, f"{long}\n")


@pytest.mark.wide
def test_a_key_that_is_named_and_not_set_is_an_error_before_any_request(
    here: Place, mine: Path, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANT_KEY", raising=False)
    mine.write_text(f'{settings(server)}key = "ANT_KEY"\n')
    told = here.json("ask", SONG)
    assert "ANT_KEY is not set" in told["report"]["summary"] and "export ANT_KEY=" in told["report"]["data"]["hint"]
    assert "ANT_KEY is not set" in json.dumps(here.json("model", "test"))
    assert (server.requests, told["exit_code"]) == ([], 4)
    monkeypatch.setenv("ANT_KEY", "sk-1")
    assert here.json("ask", SONG)["exit_code"] == 0


@pytest.mark.wide
def test_a_budget_that_is_used_up_says_what_was_paid(here: Place, mine: Path, server: WireServer) -> None:
    asks(mine, server, "worker", "turn_tokens = 100\n")
    says(server, Said(text="Let me look. ", calls=[("skill", '{"name": "song-writer"}')]), HELLO)
    told = here.json("ask", SONG)
    assert "used up its budget: 264 tokens" in told["report"]["summary"] and told["usage"]["input_tokens"] == 240
    assert (told["report"]["raw"], len(of_phase_two(server))) == (f"Let me look. \n\n{HELLO.text}", 2)


@pytest.mark.wide
@pytest.mark.requirement("EVT-7")
def test_a_conversation_shows_a_failure_once_and_counts_what_it_cannot_know(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "cut")
    with terminal(here, "chat") as held:
        held.wait_for("> ")
        held.type(f"{SONG}\n")
        shown = held.wait_for("\n> ")
        assert (shown.count("Hello, all is"), shown.count("the answer is not complete")) == (1, 1)
        held.type("/cost\n")
        held.wait_for(
            "all: 1 request, 0 tokens in (0 from a cache), 0 out, price not known; what 1 of them took is not"
        )
        held.wait_for("\n> ")
        assert held.end() == 0


@pytest.mark.wide
def test_a_request_that_the_person_stops_counts_as_one_of_which_nobody_knows_what_it_took(
    here: Place, mine: Path, server: WireServer
) -> None:
    asks(mine, server, "hangs-between-words", "idle = 20\n")
    with terminal(here, "chat") as held:
        held.wait_for("> ")
        held.type(f"{SONG}\n")
        held.wait_for("Hello,")
        held.type("\x03")
        held.wait_for("stopped")
        held.wait_for("> ")
        held.type("/cost\n")
        held.wait_for(
            "song-writer: 1 request, 0 tokens in (0 from a cache), 0 out, price not known; what 1 of them took"
        )
        held.wait_for("\n> ")
        assert held.end() == 0
