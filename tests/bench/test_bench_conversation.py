"""The tool that names what follows an answer: it reports what happened, and not what the reply says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from bench.bench_conversation import evasive
from bench.conversation_rows import Row
from bench.conversation_scenes import scene_of
from bench.conversation_stage import CommandLine, Stage
from models.wire_server import WireServer, serving

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

MAIL = "send-report wants to send mail to ann@example.com. Continue?"
CHOICE = 'user: "put this into another language" - assistant: Use translate? (y or n)'


def row(state: str, context: str, text: str) -> Row:
    return {"id": text, "state": state, "lang": "en", "context": context, "text": text, "ok": [], "never": []}


@pytest.fixture
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


def stage_for(row: Row, folder: Path, server: WireServer) -> Stage:
    """A new project of the kind that the row needs."""
    wanted, stage = scene_of(row).wanted, Stage(folder, server)
    stage.build(wanted.skills, model=wanted.model, settings=wanted.settings, warm=wanted.warm)
    return stage


class Lying(CommandLine):
    """A product that says that it did nothing."""

    def say(self, session: str, text: str) -> Mapping[str, Any]:
        return {**super().say(session, text), "answer": {"outcome": "no", "value": "", "reason": ""}}


def test_an_effect_that_happened_is_a_yes_whatever_the_reply_says(tmp_path: Path, server: WireServer) -> None:
    agreed, refused = row("approval", MAIL, "yes"), row("approval", MAIL, "no")
    stage = stage_for(agreed, tmp_path, server)
    assert scene_of(refused).on(stage).outcome == "no"
    assert stage.effects() == []
    stage.surface = Lying(stage)
    assert scene_of(agreed).on(stage).outcome == "yes"
    assert [(one.name, one.input["to"]) for one in stage.effects()] == [("send_mail", "ann@example.com")]


def test_a_consent_for_more_than_once_is_told_from_a_yes(tmp_path: Path, server: WireServer) -> None:
    asked = "fetch-page wants to access the network: example.org. Allow?"
    rows = [row("approval", asked, text) for text in ("yes", "for this session", "always")]
    stage = stage_for(rows[0], tmp_path, server)
    assert [scene_of(one).on(stage).outcome for one in rows] == ["yes", "yes_session", "always"]


def test_the_value_is_the_one_that_the_skill_got(tmp_path: Path, server: WireServer) -> None:
    given = row("missing", "log-summary needs a log. Which one?", "app.log")
    assert scene_of(given).on(stage_for(given, tmp_path, server)).outcome == "value:app.log"


def test_a_chosen_skill_is_told_from_one_that_was_refused(tmp_path: Path, server: WireServer) -> None:
    rows = [row("choice_one", CHOICE, text) for text in ("y", "n")]
    stage = stage_for(rows[0], tmp_path, server)
    assert [scene_of(one).on(stage).outcome for one in rows] == ["yes", "no"]


def test_a_question_counts_as_evasive_only_where_there_is_a_better_answer() -> None:
    rows = [{"id": "1", "ok": ["no"]}, {"id": "2", "ok": ["question", "no"]}, {"id": "3", "ok": ["yes", "question"]}]
    assert evasive(rows, {"1": "no", "2": "question", "3": "question"}) == (2, 1)
