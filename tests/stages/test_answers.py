"""What a message means to a session that waits."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from time import thread_time
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from navigator_kernel.language.answers import OpenState, Situation, read
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.turn.answers import Resumed, resume
from navigator_kernel.values.chat import ChatMessage, ToolCall
from navigator_kernel.values.packet import Context, Packet, Params, TaskSpec
from navigator_kernel.values.request import Message, PendingApproval, PendingQuestion, Session, Sticky
from navigator_kernel.values.work import PROGRESS, AgentState, progress_of
from tables import cases

APPROVAL = PendingApproval(packets=(), subject="shell:ls@sha256:1")
ASKED = Session(id="s", approval=APPROVAL)


def waiting(original: str = "/word-count", rounds: int = 1) -> Session:
    return Session(
        id="s", question=PendingQuestion(original=original, question="the text?", missing=("text",), rounds=rounds)
    )


@pytest.mark.requirement("SAF-1")
@cases("text")
def test_a_yes_lets_what_waits_go_on(text: str) -> None:
    assert resume(Message(text=text), ASKED).approved == APPROVAL


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["no", "No.", "n", "cancel", "don't", "否", "不", "不用", "不要", "取消", "不同意！"])
def test_a_no_declines(text: str) -> None:
    found = resume(Message(text=text), ASKED)
    assert (found.approved, found.declined) == (None, True)


@pytest.mark.requirement("SAF-1")
@cases("text")
def test_a_message_that_is_neither_yes_nor_no_approves_and_declines_nothing(text: str) -> None:
    found = resume(Message(text=text), ASKED)
    assert (found.approved, found.declined, found.message.text) == (None, False, text)


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["yes", "no", "stop", "yes but use another folder"])
def test_an_approval_is_used_up_by_its_answer(text: str) -> None:
    assert resume(Message(text=text), ASKED).session.approval is None


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["what does it do?", "wait", "/word-count a", "summarise notes.md", "hm"])
def test_an_approval_stays_open_until_it_is_answered(text: str) -> None:
    found = resume(Message(text=text), ASKED)
    assert (found.session.approval, found.approved, found.declined) == (APPROVAL, None, False)


@pytest.mark.parametrize("text", ["yes", "是", "no", "否"])
def test_a_yes_that_nobody_asked_for_does_nothing(text: str) -> None:
    found = resume(Message(text=text), Session(id="s"))
    assert (found.approved, found.declined, found.topic) == (None, False, "nothing")


# Questions


@pytest.mark.requirement("SEN-2", "LIF-12")
@cases("original, answer, merged")
def test_an_answer_is_appended_to_the_original_message(original: str, answer: str, merged: str) -> None:
    assert resume(Message(text=answer), waiting(original)).message.text == merged


@cases("text")
def test_an_instruction_is_not_an_answer_and_leaves_the_question_open(text: str) -> None:
    found = resume(Message(text=text), waiting())
    assert found.message.text == text
    assert found.session.question is not None and found.session.question.aside


@pytest.mark.requirement("STK-2")
@pytest.mark.parametrize("text", ["停止", "stop", "switch task", "我来处理", "I'll handle it"])
def test_a_release_word_drops_the_question(text: str) -> None:
    found = resume(Message(text=text), waiting())
    assert (found.topic, found.session.question) == ("declined", None)


def test_a_question_that_stands_aside_is_answered_by_a_value_and_dropped_by_a_refusal() -> None:
    question = PendingQuestion(original="/log-summary", question="Which file?", missing=("file",), aside=True)
    session = Session(id="s", question=question)
    assert resume(Message(text="app.log"), session).message.text == "/log-summary app.log"
    assert resume(Message(text="review this code: return a - b"), session).session.question == question
    assert resume(Message(text="cancel"), session).session.question is None


@pytest.mark.parametrize("text", ["yes", "thanks", "好的"])
def test_a_bare_yes_is_not_the_text_that_was_asked_for(text: str) -> None:
    assert resume(Message(text=text), waiting()).topic == "open"


def test_a_request_is_not_the_text_that_was_asked_for_even_later() -> None:
    found = resume(Message(text="now translate it"), waiting())
    assert (found.outcome, found.message.text) == ("other", "now translate it")
    assert resume(Message(text="review this code: return a - b"), found.session).message.text.startswith("review")


@pytest.mark.parametrize("text", ["which files are there?", "idk", "hm"])
def test_a_doubt_leaves_the_question_as_it_is(text: str) -> None:
    question = PendingQuestion(original="/log-summary", question="Which file?", missing=("file",))
    found = resume(Message(text=text), Session(id="s", question=question))
    assert (found.topic, found.session.question) == ("open", question)


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(("rounds", "text"), [(1, "/word-count hm"), (2, "/word-count hm"), (3, "hm")])
def test_after_two_rounds_a_message_stands_for_itself(rounds: int, text: str) -> None:
    assert resume(Message(text="hm"), waiting(rounds=rounds)).message.text == text


def test_an_answer_keeps_the_settings_of_its_message() -> None:
    found = resume(Message(text="hm", format="raw", language="zh", consent=True), waiting())
    assert (found.message.format, found.message.language, found.message.consent) == ("raw", "zh", True)


@pytest.mark.parametrize(
    "session", [Session(id="s"), Session(id="s", turn=3, sticky=Sticky(agent="skills", target="x"))]
)
def test_a_session_that_waits_for_nothing_is_left_as_it_is(session: Session) -> None:
    found = resume(Message(text="hello"), session)
    assert (found.session, found.message.text, found.rounds) == (session, "hello", 0)


FOLDER = "right:edit:docs/@x@sha256:1"


def of_a_model(*, answered: bool = False, wider: str = "") -> Session:
    """A session in which a model's call waits, or already has its answer."""
    call = ChatMessage(role="assistant", calls=(ToolCall(id="1", name="edit"),))
    messages = (call, ChatMessage(role="tool", call="1", name="edit")) if answered else (call,)
    spec = TaskSpec(intent="x", operation="run", target="skill:x")
    params = Params(optional={PROGRESS: AgentState(messages=messages).kept()})
    packet = Packet(
        agent="skills", task_spec=spec, params=params, context=Context(run="r", step=0, idempotency_key="r/0")
    )
    held = PendingApproval(packets=(packet, packet), subject="tool:edit#1", agreed=("skill:x@sha256:0",), wider=wider)
    return Session(id="s", approval=held)


def refusal(found: Resumed) -> str | None:
    assert found.approved is not None
    return progress_of(str(found.approved.packets[0].params.optional[PROGRESS])).refusal


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("n", ""),
        ("No.", ""),
        ("不同意", ""),
        ("e", ""),
        ("e: use words", "use words"),
        ("E use\x1b[31m words\u202e\nand no digits", "use words and no digits"),
        (f"e {'x' * 3_000}", "x" * 1_000),
    ],
)
def test_a_model_continues_with_the_reason_when_its_call_is_declined(text: str, why: str) -> None:
    found = resume(Message(text=text), of_a_model())
    assert (found.declined, found.subject, refusal(found)) == (True, "tool:edit#1", why)
    assert found.approved is not None and len(found.approved.packets) == 2 and found.session.approval is None


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("text", ["cancel", "取消"])
def test_a_call_of_a_models_can_be_cancelled_with_all_that_comes_after_it(text: str) -> None:
    found = resume(Message(text=text), of_a_model())
    assert (found.declined, found.approved) == (True, None)


@pytest.mark.parametrize(
    ("session", "attended"), [(ASKED, True), (of_a_model(answered=True), True), (of_a_model(), False)]
)
def test_a_no_to_anything_else_or_without_a_terminal_ends_it(session: Session, attended: bool) -> None:
    found = resume(Message(text="n", attended=attended), session)
    assert (found.declined, found.approved) == (True, None)


@pytest.mark.requirement("JIT-12")
@cases("text, attended, granted")
def test_a_yes_for_the_session_covers_the_folder_that_the_question_names(
    text: str,
    attended: bool,
    granted: tuple[str, ...],
) -> None:
    found = resume(Message(text=text, attended=attended), of_a_model(wider=FOLDER))
    assert found.approved is not None and not found.declined
    assert found.session.grants == granted


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("text", ["yes, but not the second line", "use a comma, please", "太早了，先备份"])
def test_words_that_change_what_was_shown_go_to_the_model_from_every_surface(text: str) -> None:
    for attended in (True, False):
        found = resume(Message(text=text, attended=attended), of_a_model())
        assert (found.outcome, found.declined, refusal(found)) == ("no_with_reason", True, text)


@pytest.mark.parametrize("letter", ["a", "s"])
def test_a_letter_for_the_session_grants_nothing_that_cannot_last(letter: str) -> None:
    found = resume(Message(text=letter), of_a_model())
    assert found.approved is not None and found.session.grants == ()


@pytest.mark.parametrize("text", ["yes", "好的"])
def test_a_yes_to_the_other_steps_continues_with_them_alone(text: str) -> None:
    question = PendingQuestion(original="a, then b", question="only a?", missing=("skill",), rest="a")
    found = resume(Message(text=text), Session(id="s", question=question))
    assert (found.message.text, found.message.answers, found.session.question) == ("a", (), None)


SKILL_ASKED = PendingQuestion(original="a, then b", question="only a?", missing=("skill",), rest="a")


@pytest.fixture
def answered_with(tmp_path: Path) -> Callable[..., Resumed]:
    """What a text means where a skill is to be named, and skills of some names are installed."""

    def answered(text: str, *names: str, rounds: int = 1, aside: bool = False) -> Resumed:
        for name in names:
            (tmp_path / name).mkdir(exist_ok=True)
            (tmp_path / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: Does it\n---\nDo it.\n")
        catalogue = ResourceCatalogue(roots=(Root(path=tmp_path, level="project"),))
        question = replace(SKILL_ASKED, rounds=rounds, aside=aside)
        return resume(Message(text=text), Session(id="s", question=question), "", catalogue)

    return answered


@pytest.mark.requirement("X-11", "WFL-5")
@cases("text, names")
def test_another_answer_to_the_other_steps_names_a_skill(
    answered_with: Callable[..., Resumed], text: str, names: str
) -> None:
    for aside in (False, True):
        found = answered_with(text, "word-count", "draw-chart", "pdf", aside=aside)
        assert (found.message.text, found.message.answers) == (f"a, then b {names}", (names,))
        assert found.session.question is None


@pytest.mark.requirement("X-11", "WFL-5")
@cases("text")
def test_what_names_no_skill_and_asks_or_orders_something_else_is_a_message_of_its_own(
    answered_with: Callable[..., Resumed], text: str
) -> None:
    found = answered_with(text, "word-count", "draw-chart", "count", "translate")
    assert (found.outcome, found.message.text, found.message.answers) == ("other", text, ())
    assert found.session.question == replace(SKILL_ASKED, aside=True)


@pytest.mark.requirement("X-10", "X-11")
@pytest.mark.parametrize("text", ["banana", "lorem ipsum dolor", "use whisper", "香蕉苹果"])
def test_what_names_no_skill_is_explained_once_and_then_stands_for_itself(
    answered_with: Callable[..., Resumed], text: str
) -> None:
    first = answered_with(text, "word-count")
    assert (first.topic, first.note) == ("open", "no_skill")
    assert first.session.question == replace(SKILL_ASKED, rounds=2)
    second = answered_with(text, "word-count", rounds=2)
    assert (second.outcome, second.message.text) == ("other", text)
    assert second.session.question == replace(SKILL_ASKED, rounds=2, aside=True)


@pytest.mark.requirement("X-11")
@pytest.mark.parametrize(
    ("text", "asks"), [("how many words does it have?", True), ("它有多少行？", True), ("wait", False)]
)
def test_a_doubt_about_the_missing_skill_asks_again(
    answered_with: Callable[..., Resumed], text: str, asks: bool
) -> None:
    found = answered_with(text, "word-count")
    assert (found.topic, found.note, found.session.question) == ("open", "later" if asks else "", SKILL_ASKED)


@pytest.mark.requirement("X-11")
@pytest.mark.parametrize(("text", "goes_on"), [("yes", True), ("好的", True), ("lunch is ready", False)])
def test_a_yes_to_the_other_steps_counts_after_something_else_too(
    answered_with: Callable[..., Resumed], text: str, goes_on: bool
) -> None:
    found = answered_with(text, aside=True)
    assert (found.message.text, found.session.question is None) == ("a" if goes_on else text, goes_on)


def asked_which(*options: str, text: str) -> Resumed:
    question = PendingQuestion(
        original="make a chart ", question="which?", missing=("skill",), options=options, answers=("before",), rounds=2
    )
    return resume(Message(text=text, format="raw"), Session(id="s", question=question, turn=3))


CHARTS = ("csv-report", "json-table", "json-report")


@cases("text, chosen")
def test_an_answer_that_names_one_option_chooses_it_and_leaves_the_message(text: str, chosen: str) -> None:
    found = asked_which(*CHARTS, text=text)
    assert (found.message.target, found.message.way, found.message.text) == (chosen, "chosen", "make a chart ")
    assert (found.message.answers, found.message.format, found.rounds) == (("before",), "raw", 2)
    assert found.session == Session(id="s", turn=3)


@pytest.mark.parametrize("text", ["report", "yes", "csv-report and json-table", "4"])
def test_an_answer_that_names_no_single_option_leaves_the_question_open(text: str) -> None:
    found = asked_which(*CHARTS, text=text)
    assert (found.topic, found.message.target) == ("open", "")
    assert found.session.question is not None and found.session.question.options == CHARTS


@pytest.mark.parametrize("text", ["with a line per month", "最后导出成 pdf"])
def test_what_is_added_to_the_message_is_routed_together_with_it(text: str) -> None:
    found = asked_which(*CHARTS, text=text)
    assert (found.message.text, found.rounds) == (f"make a chart {text}", 2)
    assert (found.message.target, found.message.answers) == ("", ("before", text))


def test_a_yes_to_the_only_option_chooses_it() -> None:
    assert asked_which("csv-report", text="yes").message.target == "csv-report"


def test_a_no_to_all_options_leaves_the_message_to_be_answered_without_a_skill() -> None:
    found = asked_which(*CHARTS, text="no")
    assert (found.message.text, found.message.way, found.message.answers) == ("make a chart ", "plain", ("before",))
    assert (found.session, found.rounds) == (Session(id="s", turn=3), 2)


OPEN = {
    "approval": OpenState(situation="approval", question="send-it wants to run: send.py -- the report"),
    "plan": OpenState(situation="plan", question="2 steps, nothing done yet", options=("word-count", "log-summary")),
    "missing": OpenState(situation="missing", question="log-summary needs: the log file"),
    "text": OpenState(situation="missing", question="word-count needs: the text or the file"),
    "choice_one": OpenState(situation="choice_one", question="Use csv-report?", options=("csv-report",)),
    "choice_many": OpenState(situation="choice_many", question="Which skill?", options=("ada-painter", "bob-painter")),
    "skill": OpenState(situation="skill", question="no installed skill fits: 'order a pizza'"),
    "interrupted": OpenState(situation="interrupted", question="todo-scan was interrupted"),
    "after_run": OpenState(situation="after_run", question="how many words has other.txt"),
    "after_error": OpenState(situation="after_error", question="how many words has other.txt"),
    "idle": OpenState(),
}


@pytest.mark.parametrize("situation", OPEN)
@cases("text, wish")
def test_a_refusal_with_a_wish_behind_it_is_both(situation: str, text: str, wish: str) -> None:
    reading = read(text, OPEN[situation])
    assert reading.wish == wish
    assert reading.outcome in {"other", "no_with_reason"}


@pytest.mark.requirement("SAF-1")
@cases("situation, text")
def test_words_behind_a_refusal_that_are_about_what_is_open_are_not_a_wish(situation: str, text: str) -> None:
    assert read(text, OPEN[situation]).wish == ""


@pytest.mark.parametrize("situation", ["approval", "plan", "choice_one", "choice_many", "interrupted", "after_run"])
@pytest.mark.parametrize("text", ["what's the weather?", "what time is it?", "今天天气怎么样？", "你还能做什么？"])
def test_a_question_that_nothing_open_is_about_is_a_message_of_its_own(situation: str, text: str) -> None:
    assert read(text, OPEN[situation]).outcome == "other"


@cases("text, outcome")
def test_the_file_that_was_meant_is_taken_up_after_a_run(text: str, outcome: str) -> None:
    assert read(text, OPEN["after_run"]).outcome == outcome


def test_a_model_is_told_what_to_do_instead_of_its_call() -> None:
    found = resume(Message(text="no, count the words in a.md"), of_a_model())
    assert (found.declined, found.withdrawn, found.approved is None) == (True, "", False)
    found = resume(Message(text="never mind, count a.md"), of_a_model())
    assert (found.message.text, found.declined, found.approved) == ("count a.md", True, None)


# What people say next: 840 messages in nine situations, half of them in Chinese

ROWS = [json.loads(line) for line in Path(__file__).with_name("answers.jsonl").read_text("utf-8").splitlines()]


def outcome_of(row: dict[str, Any]) -> str:
    state = OpenState(situation=row["state"], question=row.get("question", ""), options=tuple(row.get("options", ())))
    reading = read(row["text"], state)
    told = "question" if reading.outcome == "help" else reading.outcome
    return f"{told}:{folded(reading.value)}" if told in {"pick", "value"} else told


def folded(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(re.sub(r"\s*(?:[,;、]|\s(?:and|和|与)\s)\s*", " ", text).split())


def fits(outcome: str, wanted: Sequence[str]) -> bool:
    kinds = {f"{kind}:{folded(value)}" if value else kind for kind, _, value in (one.partition(":") for one in wanted)}
    return outcome in kinds or (outcome == "no_with_reason" and "no" in kinds)


@pytest.mark.requirement("SAF-1")
def test_no_message_does_what_its_writer_would_regret() -> None:
    harmful = []
    for row in ROWS:
        outcome = outcome_of(row)
        any_value = f"{outcome.partition(':')[0]}:*" in row["never"]
        if not fits(outcome, row["ok"]) and (any_value or fits(outcome, row["never"])):
            harmful.append((row["text"], outcome, row["ok"]))
    assert harmful == []


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nineteen_of_twenty_messages_are_understood(language: str) -> None:
    rows = [row for row in ROWS if row["lang"] == language]
    wrong = [(row["text"], outcome_of(row)) for row in rows if not fits(outcome_of(row), row["ok"])]
    assert len(wrong) <= len(rows) / 20, wrong


@pytest.mark.parametrize("situation", get_args(Situation))
def test_an_answer_of_blanks_and_of_any_length_is_read_at_once(situation: Situation) -> None:
    state = OpenState(situation=situation, question="send a mail", options=("a-b", "c-d"))
    began = thread_time()
    for text in (
        "",
        " ",
        "yes" + " " * 20_000 + "x",
        "no " * 5_000,
        "“" * 9_000,
        "?" * 9_000,
        "是" * 9_000,
        "1、" * 9_000,
    ):
        assert read(text, state).outcome not in {"yes", "yes_session", "always"}
    assert thread_time() - began < 2


FEW: Sequence[OpenState] = (
    OpenState(situation="approval", question="send a mail to the team"),
    OpenState(situation="plan", question="run these 2 steps?", options=("csv-report", "send-report")),
    OpenState(situation="choice_one", question="use send-report?", options=("send-report",)),
    OpenState(situation="choice_many", question="which skill? 1 mail 2 chat", options=("mail", "chat")),
    OpenState(situation="interrupted", question="todo-scan was interrupted; yes continues"),
)


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("state", FEW, ids=[state.situation for state in FEW])
@cases("text")
def test_a_question_about_a_file_that_nobody_asked_about_is_a_message_of_its_own(state: OpenState, text: str) -> None:
    assert read(text, state).outcome == "other"


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("state", FEW, ids=[state.situation for state in FEW])
@cases("text")
def test_a_question_about_what_would_happen_is_for_what_is_open(state: OpenState, text: str) -> None:
    assert read(text, state).outcome == "question"


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("state", FEW, ids=[state.situation for state in FEW])
@cases("text")
def test_an_order_about_something_else_is_a_message_of_its_own(state: OpenState, text: str) -> None:
    assert read(text, state).outcome == "other"


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("state", FEW, ids=[state.situation for state in FEW])
@cases("text")
def test_an_order_about_what_is_open_is_not(state: OpenState, text: str) -> None:
    assert read(text, state).outcome not in {"other", "yes", "yes_session", "always"}


@pytest.mark.requirement("SAF-1")
@cases("text, outcome")
def test_a_file_that_is_asked_for_is_told_from_one_that_is_asked_about(text: str, outcome: str) -> None:
    assert read(text, OpenState(situation="missing", question="csv-report needs: the CSV file")).outcome == outcome


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    ("text", "note"),
    [("how many rows does it have?", "later"), ("它有多少行？", "later"), ("banana", "unclear"), ("hm", ""), ("?", "")],
)
def test_what_is_open_is_asked_again_with_the_reason(text: str, note: str) -> None:
    found = resume(Message(text=text), ASKED)
    assert (found.topic, found.note, found.session.approval) == ("open", note, APPROVAL)


@cases("text, outcome")
def test_a_whole_task_takes_the_place_of_a_plan_and_words_about_the_plan_do_not(text: str, outcome: str) -> None:
    """ "Say the whole task as it should be", says the plan, so that is what a person does."""
    state = OpenState(situation="plan", question="2 steps, nothing done yet; run them?", options=("a", "b"))
    assert read(text, state).outcome == outcome
