"""What a session does with what a person says after a run, at a question, and when nothing is open."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.files.changes import ChangeStore
from navigator_kernel.bootstrap.project import Project
from turns.conftest import Talk, Talker, put

TWO = "run shout-loud on @a.py and then count the words in it"
COUNTED = """import pathlib, sys
pathlib.Path("ran").write_text(" ".join(sys.argv[2:]))
print("sent")
"""
TEXT = 'required_params: \'[{"name": "text", "prompt": "the text"}]\'\n'


@pytest.fixture
def sender(root: Path, talker: Talker) -> Talk:
    put(root, "send-it", "Sends a report to the team", TEXT, COUNTED)
    return talker()


def runs(root: Path) -> list[str]:
    return sorted(path.read_text() for path in root.glob("mybox/workspace/*/ran"))


@pytest.mark.requirement("SAF-1", "STK-2")
@pytest.mark.parametrize(
    "text",
    [
        *["don't", "stop it", "undo that", "that was wrong", "never again", "don't do that again", "no", "yes", "ok"],
        *["不用了", "别发了", "撤回", "发错了", "谢谢", "好", "thanks!", "you sent it to the wrong team"],
    ],
)
def test_nothing_runs_again_by_itself(sender: Talk, root: Path, text: str) -> None:
    sender.say("/send-it the report", consent=True)
    sender.say(text, consent=True)
    assert len(runs(root)) == 1
    assert sender.session.approval is None


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["again", "once more, please", "再来一次", "重发"])
def test_a_run_is_repeated_by_an_explicit_wish_and_asks_again(sender: Talk, root: Path, text: str) -> None:
    sender.say("/send-it the report")
    sender.say("yes")
    assert runs(root) == ["the report"]
    asked = sender.say(text)
    assert (asked.report.state, len(runs(root))) == ("pending", 1)
    sender.say("yes")
    assert runs(root) == ["the report", "the report"]


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["yes", "go ahead", "again", "可以", "1"])
def test_what_was_refused_does_not_come_back(sender: Talk, root: Path, text: str) -> None:
    sender.say("/send-it the report")
    sender.say("no")
    sender.say(text)
    assert (runs(root), sender.session.approval) == ([], None)


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(
    "text",
    ["what will it send?", "wait", "hm", "is this safe", "会发给谁", "等等", "/word-count one two"],
)
def test_an_approval_stays_open_and_is_said_to_be_open(sender: Talk, root: Path, text: str) -> None:
    sender.say("/send-it the report")
    waits = sender.session.approval
    reply = sender.say(text)
    assert sender.session.approval == waits and runs(root) == []
    assert waits is not None and waits.question.partition("\n")[0][:40] in f"{reply.open} {reply.report.summary}"
    sender.say("yes")
    assert runs(root) == ["the report"]


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["never mind, /word-count one two", "不用了，/word-count one two"])
@pytest.mark.parametrize("before", ["/send-it the report", "/send-it", TWO, "paint watercolours of boats at sea"])
def test_what_is_refused_makes_way_for_the_wish_behind_it(sender: Talk, root: Path, before: str, text: str) -> None:
    assert sender.say(before).report.state == "pending"
    done = sender.say(text)
    assert (done.report.state, done.report.data["words"], runs(root)) == ("success", 2, [])
    assert (sender.session.approval, sender.session.question) == (None, None)
    assert done.open.startswith(("no longer open: ", "不再等待回答："))


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("text", ["no, I meant b.md", "wrong file, use b.md", "不是这个，是 b.md"])
def test_a_refusal_that_names_the_right_file_asks_again_for_that_one(sender: Talk, root: Path, text: str) -> None:
    sender.say("/send-it a.md")
    asked = sender.say(text)
    assert (asked.report.state, runs(root)) == ("pending", [])
    sender.say("yes")
    assert runs(root) == ["b.md"]


@pytest.mark.parametrize("text", ["what did we do?", "which skill was that?", "what is waiting?", "刚才用了哪个技能？"])
def test_without_a_model_the_kernel_says_what_ran_last(sender: Talk, text: str) -> None:
    assert "send-it" not in sender.say(text).report.summary
    sender.say("/send-it the report", consent=True)
    told = sender.say(text)
    assert (told.report.state, "send-it" in told.report.summary) == ("success", True)


@pytest.mark.parametrize("text", ["why did it fail?", "为什么失败了？", "y"])
def test_after_a_failure_the_kernel_says_why_and_how_to_go_on(talk: Talk, text: str) -> None:
    talk.say("/fail-hard x", consent=True)
    told = talk.say(text)
    assert (told.report.state, "no luck" in told.report.summary) == ("success", True)
    assert talk.say("retry", consent=True).decision.reason == "approved"


@pytest.mark.parametrize("text", ["no", "stop", "不用了"])
def test_a_refused_choice_of_skills_is_not_said_to_need_a_model(talk: Talk, text: str) -> None:
    assert "ada-painter" in talk.say("paint watercolours of boats at sea").report.summary
    assert talk.say(text).report.summary in {"not done, as you asked", "已取消"}


def test_a_new_question_replaces_an_open_one_and_says_so(sender: Talk, root: Path) -> None:
    put(root, "post-it", "Posts a report", TEXT, COUNTED)
    sender.say("/send-it the report")
    reply = sender.say("/post-it another")
    assert "send-it" in reply.open
    sender.say("yes")
    assert runs(root) == ["another"]


def changed(talk: Talk) -> ChangeStore:
    """The store, in which the last run has changed README.md."""
    store, sticky = Project(talk.kernel.root, agents=False).changes, talk.session.sticky
    assert sticky is not None
    (talk.kernel.root / "README.md").write_text("old\n")
    store.make(sticky.run, "README.md", b"old\n", b"new\n")
    return store


@pytest.mark.requirement("SAF-1")
def test_undo_offers_to_put_back_what_the_last_run_changed(sender: Talk) -> None:
    sender.say("/send-it the report", consent=True)
    changed(sender)
    offered = sender.say("undo that")
    assert (offered.report.state, "README.md" in offered.report.summary) == ("pending", True)
    assert (sender.kernel.root / "README.md").read_text() == "new\n"
    done = sender.say("yes")
    assert (done.report.state, "README.md" in done.report.summary) == ("success", True)
    assert (sender.kernel.root / "README.md").read_text() == "old\n"


@pytest.mark.parametrize("text", ["no", "wait", "what was changed?"])
def test_nothing_is_put_back_without_a_yes(sender: Talk, text: str) -> None:
    sender.say("/send-it the report", consent=True)
    changed(sender)
    sender.say("undo")
    sender.say(text)
    assert (sender.kernel.root / "README.md").read_text() == "new\n"


def test_undo_says_plainly_where_nothing_can_be_taken_back(sender: Talk) -> None:
    sender.say("/send-it the report", consent=True)
    reply = sender.say("撤回")
    assert (reply.report.state, "无法从这里撤回" in reply.report.summary) == ("success", True)


def test_a_run_of_yesterday_is_not_repeated(sender: Talk, root: Path) -> None:
    sender.say("/send-it the report", consent=True)
    sticky = sender.session.sticky
    assert sticky is not None
    sender.session = replace(sender.session, sticky=replace(sticky, at="2026-01-30T01:00:00.000Z"))
    assert sender.say("again", consent=True).decision.reason == "nothing"
    assert len(runs(root)) == 1


@pytest.mark.requirement("SEN-2")
def test_a_fix_is_added_to_the_request_that_failed(root: Path, talker: Talker) -> None:
    script = "import sys\nprint(sys.argv[2])\nsys.exit('no such place' if 'docs/' not in sys.argv[2] else 0)\n"
    put(root, "read-it", "Reads a thing", TEXT, script)
    talk = talker()
    assert talk.say("/read-it the-report", consent=True).report.state == "error"
    fixed = talk.say("it's in docs/", consent=True)
    assert (fixed.report.state, fixed.report.data["output"]) == ("success", "the-report it's in docs/")


@pytest.mark.requirement("SEN-2")
def test_a_path_takes_the_place_of_the_one_that_was_not_there(root: Path, talker: Talker) -> None:
    script = "import sys\nprint(sys.argv[2])\nsys.exit(0 if sys.argv[2] == 'src/b.log' else 'no such file')\n"
    put(root, "read-it", "Reads a thing", TEXT, script)
    talk = talker()
    assert talk.say("/read-it a.log", consent=True).report.state == "error"
    assert talk.say("it's src/b.log, sorry", consent=True).report.state == "success"


@pytest.mark.requirement("WFL-5")
@pytest.mark.parametrize("text", ["skip step 1", "only the second", "先不要第一步", "is that all?"])
def test_a_plan_that_is_to_be_changed_does_not_run_as_shown(talk: Talk, root: Path, text: str) -> None:
    talk.say(TWO)
    waits = talk.session.approval
    reply = talk.say(text)
    assert waits is not None and len(waits.steps) == 2
    assert (reply.report.state, talk.session.approval) == ("pending", waits)
    assert not list(root.glob("mybox/workspace/*/*"))
