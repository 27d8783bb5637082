"""A real model on this machine, over the wire: it answers, streams, keeps to a schema, and can be cancelled.

Its answers need not be clever: the tests check that each of them leads to a result.
"""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path

import pytest

from cli.support import Place, place_in
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Models
from navigator_kernel.routing.phase_one import ModelJudge
from navigator_kernel.text import language_of
from navigator_kernel.values.chat import Asked, ChatMessage
from navigator_kernel.values.route import Candidate, Retrieval
from specialist.turns import events, song
from tables import table

pytestmark = pytest.mark.local_llm

MESSAGES = table(__file__, "MESSAGES")


@pytest.fixture
def here(tmp_path: Path, home: Path, url: str) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        f'[models]\ndefault = "here:smollm2"\nretries = 0\nfirst = 120\n[models.providers.here]\nurl = "{url}"\n'
    )
    here = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": song()})
    return here


def asked(text: str, tokens: int) -> Asked:
    return Asked(messages=(ChatMessage(role="user", text=text),), tokens=tokens, temperature=0.1)


def test_it_answers(here: Place) -> None:
    done = here.run("model", "test")
    assert (done.code, "here:smollm2" in done.out) == (0, True)


def test_words_come_as_they_are_made(models: Models) -> None:
    """The first piece arrives well before the last, and together they are the answer."""
    pieces: list[tuple[float, str]] = []

    async def run() -> str:
        model = WireModel("here:smollm2", models)
        try:
            wanted = asked("Count from one to thirty in words.", 80)
            return (await model.complete(wanted, lambda text: pieces.append((time.monotonic(), text)))).message.text
        finally:
            await model.close()

    text = asyncio.run(run())
    assert len(pieces) > 10 and "".join(piece for _, piece in pieces) == text
    assert pieces[-1][0] - pieces[0][0] > 0.1


@pytest.mark.requirement("RTE-5", "RTE-13")
def test_it_keeps_to_the_schema_of_phase_1(models: Models, tmp_path: Path) -> None:
    """Each answer has one of the three forms, in both languages, and names an offered skill or nothing."""
    catalogue = Project(tmp_path, agents=False).catalogue
    names = ["task_manager", "git-summary", "link-check", "word-count"]
    candidates = tuple(Candidate(name=name, score=1.0) for name in names)
    found = Retrieval(candidates=candidates, band="ambiguous", reason="near")

    async def run() -> list[str]:
        model = WireModel("here:smollm2", models)
        judge = ModelJudge(lambda: model, catalogue)
        try:
            return [(await judge.judge(text, found, (), language_of(text))).failure for text in MESSAGES]
        finally:
            await model.close()

    assert asyncio.run(run()) == [""] * len(MESSAGES)


def test_one_that_is_cancelled_is_let_go_of(models: Models) -> None:
    """The server stops writing too: the next request is answered at once; the first would have taken half a minute."""

    async def run() -> tuple[float, float]:
        model, heard = WireModel("here:smollm2", models), asyncio.Event()
        task = asyncio.ensure_future(
            model.complete(asked("Write a very long story of a hundred chapters.", 4000), lambda _: heard.set())
        )
        await heard.wait()
        began = time.monotonic()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        cancelled = time.monotonic() - began
        await model.complete(asked("Say hello.", 8))
        await model.close()
        return cancelled, time.monotonic() - began

    cancelled, answered = asyncio.run(run())
    assert cancelled < 1.0
    assert answered < 10.0


def test_a_whole_turn_is_answered_and_its_usage_is_recorded(here: Place) -> None:
    done = here.run("ask", "--json", "/song-writer a song about rain")
    told = json.loads(done.out)
    assert told["report"]["state"] in {"success", "partial"}, told
    kinds = [event["type"] for event in events(here, told["run"])]
    assert kinds.count("Usage") >= 1 and kinds[-1] == "RunCompleted"
    assert told["report"]["data"]["usage"]["input_tokens"] > 100


def test_hello_is_answered_with_a_sentence(here: Place) -> None:
    told = here.json("ask", "hello")
    assert (told["exit_code"], told["report"]["state"]) == (0, "success"), told
    assert told["report"]["raw"].rstrip().endswith((".", "!", "?")), told["report"]
