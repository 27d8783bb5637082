"""`navigator replay`: a hundred turns of all kinds are reproduced byte for byte, and later changes are reported."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import SOURCE, Place, place_in
from models.wire_server import Said, WireServer, serving
from navigator_kernel.cli.commands.replay import replayed
from navigator_kernel.cli.project import App
from person_state import state_of
from skill_repositories import skill_text
from workflows.project import workflow_file

pytestmark = pytest.mark.ci

SERVER = str(SOURCE / "tests" / "mcp_client" / "hostile_server.py")
SECRET = "ghp_" + "abcdefghijklmnopqrstuvwxyz0123456789"

# Without a model: 80 messages of one conversation; none picks a skill, which would teach the router
PLAIN = [
    *(f"word count of this: {'tea and milk ' * at}" for at in range(1, 16)),
    *(f"统计这段文字的字数：{'今天天气很好，' * at}" for at in range(1, 11)),
    "hello", "你好", "tell me a joke", "what can you do", "/help-me", "/word-count", "a b c", "/rust-dev lifetimes",
    "review this code", "审查代码", "@notes.md", "word count of @notes.md", "统计 @notes.md 的字数", "@gone.md", "summarise @../../etc/passwd",
    "skill list", "list skills", "列出技能", "none of them", "info word-count", "yes", "word count of this: x", "enable nothing", "no",
    "install", "install ./nowhere --skill x", "no", "uninstall nothing-like-it", "search for words", "@@word-count one two",
    "#nothing", "!ls", "no", "word count and code review", "both", "none of them", "again: four words are here",
    "mcp list there", "mcp call there echo words=hi", "mcp call there gone", "@there:note://two", "mcp run elsewhere", "mcp tools there",
    "forget it", "thanks", "谢谢", "继续", "count the characters in this paragraph: abc", "todo scan", "扫描待办", "link check", "yes", "no",
    "list the most frequent words of this text: a a b", "word count of this: ‮ hidden \x1b[31m", "what is in notes.md", "/word-count " + "long " * 300,
]  # fmt: skip
# With a model: 20 more
ASKED = [
    *(f"/song-writer a song about the number {at}" for at in range(6)),
    *(f"what is {at} and {at}" for at in range(5)),
    "/song-writer 写一首歌", "write a song", "do something", "make it longer", "yes", "/word-count one two three",
    "create a task: buy milk", "no", "/song-writer the last one",
]  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path) -> Place:
    place = place_in(tmp_path)
    place.write(
        {
            "notes.md": "one two three\n",
            ".claude/skills/song-writer/SKILL.md": skill_text("song-writer", "writes songs"),
        }
    )
    place.said("mcp", "add", "there", "--", sys.executable, SERVER, "good")
    place.said("mcp", "approve", "there")
    return place


def talked(place: Place, messages: list[str]) -> list[str]:
    """Holds a conversation; returns its runs in order."""
    before = set(runs(place))
    for message in messages:
        assert "\n" not in message
    place.run("chat", "--session", f"talk-{len(before)}", stdin="\n".join(messages) + "\n")
    return sorted(set(runs(place)) - before)


def runs(place: Place) -> list[str]:
    return [path.stem for path in (place.root / "mybox" / "logs" / "runs").glob("*.jsonl")]


def again(place: Place, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> dict[str, Any]:
    """Replays the runs; returns the differences by run."""
    monkeypatch.chdir(place.root)
    app = App(root_flag=str(place.root))
    return {run: found for run in names if (found := replayed(app, run)[1])}


def with_model(server: WireServer) -> None:
    file = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "config.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(
        f'[models]\ndefault = "there:worker"\nretries = 0\n[models.providers.there]\nurl = "{server.url}"\n'
    )

    def worker(messages: Sequence[Mapping[str, Any]], number: int) -> Said:
        if messages[-1]["role"] == "user" and "longer" not in str(messages[-1]["content"]):
            return Said(text="Let me look. ", calls=[("skill", '{"name": "song-writer"}')])
        return Said(text=f"La la la, {number} times. 啦啦啦")

    server.scripts["worker"] = worker


@pytest.mark.requirement("EVT-7")
@pytest.mark.ci
@pytest.mark.timeout(300)
def test_a_hundred_turns_are_taken_again_byte_for_byte(
    here: Place, server: WireServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = talked(here, PLAIN)
    with_model(server)
    asked = talked(here, ASKED)
    assert (len(plain) + len(asked) >= 100, len(server.requests) > 20) == (True, True)
    before, requests = here.files(), len(server.requests)
    assert again(here, monkeypatch, plain + asked) == {}
    assert len(server.requests) == requests, "no model is asked"
    assert here.files() == before, "nothing is changed"


def test_the_newest_turn_is_taken_again_and_its_end_is_the_exit_code(here: Place) -> None:
    here.run("ask", "word count of this: one two")
    done = here.run("replay")
    assert (done.code, done.out, "12 events, identical" in done.err) == (0, "", True)


def test_a_skill_that_changed_since_is_a_difference(here: Place) -> None:
    here.run("ask", "/song-writer a song")
    page = here.root / ".claude" / "skills" / "song-writer" / "SKILL.md"
    page.write_text(page.read_text() + "\nIn verse.\n")
    told = here.json("replay")
    assert told["exit_code"] == 1
    assert {(one["type"], one["field"]) for one in told["differences"]} >= {("SkillLoaded", "data.digest")}
    page.unlink()
    gone = here.run("replay")
    assert (gone.code, "RouteDecided" in gone.out) == (1, True)


def test_a_skill_that_came_since_and_takes_the_message_is_a_difference(here: Place) -> None:
    here.run("ask", "when is high tide in Bergen")
    run = runs(here)
    here.said("skill", "new", "tide-tables", "--query", "when is high tide in Bergen")
    told = here.json("replay", *run)
    decided = [one for one in told["differences"] if one["field"] == "data.decision.entity"]
    assert [one["now"] for one in decided] == ['"tide-tables"']


def test_a_secret_is_on_no_tape(here: Place) -> None:
    here.run("ask", f"word count of this: {SECRET}")
    tapes = list((state_of(here.root) / "tapes").iterdir())
    assert [SECRET in tape.read_text() for tape in tapes] == [False]
    assert [tape.stat().st_mode & 0o777 for tape in tapes] == [0o600]
    assert "a secret was removed" in here.run("replay").err


def test_a_workflows_turn_is_not_taken_again_and_says_so(here: Place) -> None:
    workflow_file(here.root, "say", ("rust-dev", "/rust-dev lifetimes"))
    here.run("ask", "#say")
    done = here.run("replay")
    assert (done.code, "journal" in done.err) == (3, True)


@pytest.mark.parametrize(("text", "code"), [("{", 6), ('{"v": 1}', 6), (None, 4)])
def test_a_broken_or_missing_recording_has_its_exit_code(here: Place, text: str | None, code: int) -> None:
    here.run("ask", "hello")
    (tape,) = (state_of(here.root) / "tapes").iterdir()
    tape.unlink() if text is None else tape.write_text(text)
    assert here.run("replay").code == code
    assert here.json("replay", "20200101-000000000-000000")["exit_code"] == 4


def test_a_difference_from_the_log_is_reported_with_its_field_and_logged_value(here: Place) -> None:
    here.run("ask", "word count of this: one two")
    (log,) = (here.root / "mybox" / "logs" / "runs").iterdir()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    lines[-1]["data"]["summary"] = "other"
    log.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    (one,) = here.json("replay")["differences"]
    assert (one["field"], one["then"], one["type"]) == ("data.summary", '"other"', "RunCompleted")
