"""Whole turns about a plan: it is shown, agreed to or not, and then run step by step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from navigator_kernel.errors import Refused
from navigator_kernel.turn.workflow_file import stored_names
from navigator_kernel.values.request import PendingApproval, Session
from workflows.project import SKILLS, packets, project_in, put_skill, talk_in

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.workflow import WorkflowStep
    from turns.conftest import Talk

pytestmark = pytest.mark.sample(1)

TWO = "run shout-loud on @notes.txt and then count the terms in it"
TWO_ZH = "用 shout-loud 处理 @notes.txt，然后统计结果的词条数"
NAME = "shout-loud-then-count-terms"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def talk(root: Path) -> Talk:
    return talk_in(root)


def token_of(talk: Talk) -> str:
    return talk.kernel.journal.listed()[0].token


def plan_of(reply: Reply) -> Sequence[WorkflowStep]:
    assert reply.workflow is not None
    return reply.workflow.plan.steps


# The plan


@pytest.mark.requirement("WFL-1", "WFL-5", "WFL-10")
@pytest.mark.parametrize(
    ("text", "scope"),
    [
        (TWO, "scope: installed skills; docs/skills-mapping.md has more"),
        (TWO_ZH, "仅在已安装的技能中匹配；更多技能见 docs/skills-mapping.md"),
    ],
    ids=["en", "zh"],
)
def test_a_plan_is_shown_first_with_its_scope_its_file_and_its_token(talk: Talk, text: str, scope: str) -> None:
    reply = talk.say(text)
    data = reply.report.data
    assert (reply.decision.kind, reply.report.state, reply.report.exit_code) == ("workflow", "pending", 9)
    assert (data["reason"], data["scope"], data["file"]) == ("plan", scope, f"mybox/workflows/{NAME}.md")
    assert [line.split(" → ")[1:] for line in data["steps"]] == [
        ["shout-loud", "skills_agent"],
        ["count-terms", "skills_agent"],
    ]
    assert data["token"] == reply.run == token_of(talk)


@pytest.mark.requirement("WFL-9")
def test_before_a_yes_nothing_ran_and_nothing_is_stored(talk: Talk, root: Path) -> None:
    talk.say(TWO)
    assert packets(talk) == []
    assert stored_names(talk.kernel) == []
    assert not (root / "mybox" / "workspace").exists()
    assert talk.kernel.journal.load(token_of(talk)).state == "proposed"


def test_a_plan_that_waits_is_asked_about_in_the_stream_of_events(talk: Talk) -> None:
    talk.say(TWO)
    asked = next(event.body for event in talk.events if event.type == "ApprovalRequested")
    assert getattr(asked, "subject", "") == "plan"


@pytest.mark.requirement("WFL-6", "WFL-7")
@pytest.mark.parametrize(("text", "yes"), [(TWO, "yes"), (TWO_ZH, "是")], ids=["en", "zh"])
def test_a_yes_runs_the_steps_one_after_another(talk: Talk, text: str, yes: str) -> None:
    talk.say(text)
    reply = talk.say(yes)
    assert (reply.report.state, reply.report.data["words"]) == ("success", 3)
    assert [packet.task_spec.target for packet in packets(talk)] == ["skill:shout-loud", "skill:count-terms"]
    steps = [(event.type, event.step) for event in talk.events if event.type in {"StepStarted", "StepCompleted"}]
    assert steps == [("StepStarted", 1), ("StepCompleted", 1), ("StepStarted", 2), ("StepCompleted", 2)]
    assert (reply.workflow and reply.workflow.state, len(reply.reports)) == ("done", 2)


@pytest.mark.requirement("WFL-9")
def test_a_yes_stores_the_plan_as_it_was_shown(talk: Talk, root: Path) -> None:
    talk.say(TWO)
    talk.say("yes")
    text = (root / "mybox" / "workflows" / f"{NAME}.md").read_text()
    assert f'description: "{TWO}"' in text
    assert "## Step 2: count the terms in it\n\n- skill: count-terms\n- input: count the terms in it" in text


@pytest.mark.requirement("WFL-9")
def test_a_plan_that_is_agreed_to_beforehand_runs_at_once_and_is_stored(talk: Talk) -> None:
    reply = talk.say(TWO, consent=True)
    assert (reply.report.state, reply.report.data["words"]) == ("success", 3)
    assert stored_names(talk.kernel) == [NAME]


def test_a_stored_plan_can_be_run_again_by_its_name(talk: Talk) -> None:
    talk.say(TWO)
    talk.say("yes")
    assert talk.say(f"#{NAME}", consent=True).report.data["words"] == 3


@pytest.mark.wide
def test_the_same_plan_is_stored_once_and_another_one_beside_it(talk: Talk) -> None:
    for text in (TWO, TWO, f"{TWO} again"):
        talk.say(text)
        talk.say("yes")
    assert stored_names(talk.kernel) == [NAME, f"{NAME}-2"]


def test_plans_with_long_names_are_stored_under_names_that_can_be_called(root: Path) -> None:
    long = ["a-" + "x" * 40, "b-" + "y" * 40]
    for name in long:
        put_skill(root, name, SKILLS["shout-loud"])
    talk = talk_in(root)
    for word in ("one", "two"):
        talk.say(f'run {long[0]} on "{word}" and then run {long[1]} on it')
        reply = talk.say("yes")
        assert reply.workflow is not None
        assert reply.workflow.plan.name in stored_names(talk.kernel)
    assert len(stored_names(talk.kernel)) == 2


@pytest.mark.parametrize("odd", ["\x7f", "\x1b[31m", "\u2028"], ids=ascii)
def test_a_message_with_odd_characters_is_stored_as_a_workflow_that_can_be_called(talk: Talk, odd: str) -> None:
    talk.say(f"run shout-loud on a{odd}b and then count the terms in it")
    assert talk.say("yes").report.state == "success"
    [name] = stored_names(talk.kernel)
    assert talk.say(f"#{name}", consent=True).report.state == "success"


# A "no" to a plan


@pytest.mark.requirement("WFL-8", "WFL-9")
@pytest.mark.parametrize("no", ["no", "否"])
def test_a_no_ends_it_for_good(talk: Talk, no: str) -> None:
    talk.say(TWO)
    token = token_of(talk)
    assert talk.say(no).report.state == "success"
    assert talk.kernel.journal.load(token).state == "aborted"
    assert (packets(talk), stored_names(talk.kernel)) == ([], [])
    assert talk.session.approval is None
    talk.session = Session(id="session-1", approval=PendingApproval(packets=(), subject="", workflow=token))
    with pytest.raises(Refused, match="aborted"):
        talk.say("yes")
    assert packets(talk) == []


def test_a_yes_to_a_plan_that_was_aborted_elsewhere_runs_nothing(talk: Talk) -> None:
    talk.say(TWO)
    talk.kernel.journal.mark(token_of(talk), "aborted")
    with pytest.raises(Refused, match="aborted"):
        talk.say("yes")
    assert (packets(talk), stored_names(talk.kernel)) == ([], [])
    assert talk.kernel.journal.load(token_of(talk)).state == "aborted"


def test_another_message_leaves_the_plan_waiting_for_its_token(talk: Talk) -> None:
    talk.say(TWO)
    token = token_of(talk)
    talk.say("what can you do?")
    assert talk.session.approval is not None and talk.session.approval.workflow == token
    assert talk.kernel.journal.load(token).state == "proposed"
    assert talk.say("yes").report.data["words"] == 3


# A step that fails


@pytest.mark.requirement("WFL-7", "WFL-8")
def test_a_step_that_fails_stops_the_run_and_asks(talk: Talk) -> None:
    talk.say("run fail-hard on x and then count the terms in it")
    reply = talk.say("yes")
    assert (reply.report.state, reply.report.exit_code, reply.report.data["msg"]) == ("error", 1, "no luck")
    assert [packet.task_spec.target for packet in packets(talk)] == ["skill:fail-hard"]
    assert "step 1 of 2" in reply.question
    assert (reply.workflow and reply.workflow.state, talk.session.approval is None) == ("stopped", False)


@pytest.mark.requirement("WFL-8")  # SAF-5
def test_after_two_failures_nothing_is_offered_again(talk: Talk) -> None:
    talk.say("run fail-hard on x and then count the terms in it")
    talk.say("yes")
    reply = talk.say("yes")
    assert ("twice" in reply.question, talk.session.approval) == (True, None)
    assert len(packets(talk)) == 2


@pytest.mark.requirement("WFL-7", "WFL-8")
def test_a_retry_continues_from_the_step_that_failed(root: Path) -> None:
    put_skill(root, "wait-ready", ("Waits", "", "import os\nprint(os.stat('../ready').st_size, 'bytes')\n"))
    talk = talk_in(root)
    talk.say("run shout-loud on @notes.txt and then run wait-ready")
    assert talk.say("yes").report.state == "error"
    (root / "mybox" / "workspace" / token_of(talk) / "ready").write_text("12345")
    reply = talk.say("yes")
    assert [packet.task_spec.target for packet in packets(talk)] == [
        "skill:shout-loud",
        "skill:wait-ready",
        "skill:wait-ready",
    ]
    assert [report.meta.cached for report in reply.reports] == [True, False]
    assert (reply.report.data["output"], reply.workflow and reply.workflow.state) == ("5 bytes", "done")


# The history of the conversation


def test_the_history_contains_the_message_and_the_result_of_the_workflow(talk: Talk) -> None:
    reply = talk.say(TWO, consent=True)
    assert [(said.role, said.text) for said in reply.said] == [("user", TWO), ("assistant", "count-terms done")]


def test_a_waiting_plan_is_not_in_the_history(talk: Talk) -> None:
    assert talk.say(TWO).said == ()


def test_after_a_yes_the_history_still_says_what_was_asked(talk: Talk) -> None:
    talk.say(TWO)
    said = talk.say("yes").said
    assert (said[0].role, TWO in said[0].text) == ("user", True)
    assert (said[-1].role, said[-1].text) == ("assistant", "count-terms done")


def test_a_follow_up_goes_to_the_skill_of_the_last_step(talk: Talk) -> None:
    talk.say(TWO)
    talk.say("yes")
    assert talk.session.sticky is not None
    assert talk.session.sticky.target == "count-terms"
    assert talk.say("and again: four five").decision.entity == "count-terms"


# Questions on the way to a plan


def test_an_answer_completes_the_plan(talk: Talk) -> None:
    assert talk.say("run shout-loud, then count the terms in it").report.data["required"] == ["text"]
    assert talk.say("four more words here").decision.kind == "workflow"
    assert talk.say("yes").report.data["words"] == 4


def test_a_file_that_is_answered_completes_the_plan(talk: Talk) -> None:
    talk.say("run total-column and then run shout-loud on it")
    assert talk.say("@data.csv").decision.kind == "workflow"
    assert talk.say("yes").report.data["output"] == 8


def test_two_questions_one_after_another_end_in_a_plan(talk: Talk) -> None:
    """The answer to the first is not lost when the second is asked."""
    talk.say("run shout-loud, then list the zibs, then run draft-poem")
    talk.say("count-terms")
    talk.say("four more words here")
    assert talk.session.approval is not None
    talk.say("yes")
    assert [packet.task_spec.target.partition(":")[2] for packet in packets(talk)] == [
        "shout-loud",
        "count-terms",
        "draft-poem",
    ]


@pytest.mark.requirement("WFL-5", "X-11")
@pytest.mark.parametrize("name", ["count-terms", "cuont-terms", "use count-terms please"])
def test_a_plan_without_a_skill_stays_open_through_other_messages_until_one_is_named(talk: Talk, name: str) -> None:
    asked = talk.say("run shout-loud on @notes.txt, then list the zibs").report.summary
    assert "no installed skill is called that" in talk.say("banana").report.summary
    assert talk.say("/count-terms two words", consent=True).report.data["words"] == 2
    for text in ("banana", "apples and pears"):
        assert asked[:40] in talk.say(text).open
    assert [step.skill for step in plan_of(talk.say(name))] == ["shout-loud", "count-terms"]


@pytest.mark.requirement("WFL-5", "X-11")
def test_a_yes_after_another_message_runs_the_other_steps_and_closes_the_question(talk: Talk) -> None:
    talk.say("run shout-loud on @notes.txt, then list the zibs")
    talk.say("/count-terms two words", consent=True)
    reply = talk.say("yes", consent=True)
    assert (reply.report.data["output"], reply.open, talk.session.question) == ("ONE TWO THREE", "", None)


@pytest.mark.requirement("X-11")
def test_a_question_that_another_one_replaces_is_named(talk: Talk) -> None:
    asked = talk.say("run shout-loud on @notes.txt, then list the zibs").report.summary
    assert talk.say("/shout-loud").open.startswith(f"no longer open: {asked[:40]}")


@pytest.mark.requirement("WFL-5")
def test_a_folder_that_is_named_with_its_slash_has_one_in_the_plan(talk: Talk, root: Path) -> None:
    (root / "parts").mkdir()
    reply = talk.say("run total-column on parts/ and then run shout-loud on it")
    assert "parts//" not in str(reply.report.data)
