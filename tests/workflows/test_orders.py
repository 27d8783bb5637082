"""Stored workflows in plain words: run again, run by name, listed, stored under a name (WFL-9, PRE-24)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from navigator_kernel.errors import UsageProblem
from navigator_kernel.language.clauses import WorkflowOrder, workflow_order
from workflows.project import project_in, put_skill, talk_in

if TYPE_CHECKING:
    from pathlib import Path

    from navigator_kernel.values.reply import Reply
    from navigator_kernel.values.workflow import WorkflowStep
    from turns.conftest import Talk

TWO = "run shout-loud on @notes.txt and then count the terms in it"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def talk(root: Path) -> Talk:
    return talk_in(root)


def ran(reply: Reply) -> list[str]:
    """The skills of the reply's reports."""
    return [report.target.partition(":")[2] for report in reply.reports]


def steps_of(reply: Reply) -> tuple[WorkflowStep, ...]:
    assert reply.workflow is not None
    return reply.workflow.plan.steps


def done(talk: Talk) -> Reply:
    talk.say(TWO)
    return talk.say("yes")


@pytest.mark.requirement("WFL-9")
@pytest.mark.parametrize("text", ["and for other.txt?", "now other.txt", "那 other.txt 呢？"])
def test_a_plan_goes_on_with_another_file(talk: Talk, root: Path, text: str) -> None:
    (root / "other.txt").write_text("one two\n")
    first = done(talk)
    reply = talk.say(text, consent=True)
    assert ran(reply) == ran(first) and "@other.txt" in steps_of(reply)[0].input
    stored = sorted(path.name for path in (root / "mybox" / "workflows").glob("*.md"))
    talk.say(TWO.replace("notes.txt", "other.txt"))  # the same plan needs no second name
    assert ran(talk.say("yes", consent=True)) == ran(first)
    assert sorted(path.name for path in (root / "mybox" / "workflows").glob("*.md")) == stored
    assert "@other.txt" in steps_of(talk.say("run it again", consent=True))[0].input
    talk.say("save that as a workflow called weekly")
    assert "@other.txt" in (root / "mybox" / "workflows" / "weekly.md").read_text()


@pytest.mark.requirement("WFL-9")
@pytest.mark.parametrize("text", ["run it again", "again", "再来一次"])
def test_again_runs_the_whole_plan_not_its_last_step(talk: Talk, text: str) -> None:
    before = done(talk)
    again = talk.say(text, consent=True)
    assert again.workflow is not None
    assert [step.input for step in again.workflow.plan.steps] == [step.input for step in steps_of(before)]
    assert ([report.summary for report in again.reports], again.report.state) == (
        [report.summary for report in before.reports],
        "success",
    )


@pytest.mark.requirement("WFL-9", "PRE-24")
@pytest.mark.parametrize(
    "text", ["run daily", "run the daily workflow", "run the workflow daily", "运行 daily", "#daily"]
)
def test_a_stored_workflow_runs_by_its_name(talk: Talk, root: Path, text: str) -> None:
    before = done(talk)
    stored = talk.say("save that as a workflow called daily")
    assert (stored.report.state, (root / "mybox/workflows/daily.md").is_file()) == ("success", True)
    again = talk.say(text, consent=True)
    assert again.workflow is not None
    assert (again.workflow.plan.name, ran(again)) == ("daily", ran(before))


@pytest.mark.requirement("WFL-9")
def test_it_runs_while_something_else_waits(talk: Talk) -> None:
    done(talk)
    talk.say("save that as a workflow called daily")
    talk.say(TWO.replace("notes.txt", "data.csv"))
    listed, again = talk.say("which workflows do I have?"), talk.say("run the workflow daily")
    assert "#daily" in listed.report.summary
    assert again.workflow is not None
    assert again.workflow.plan.name == "daily"
    assert again.session.approval is not None


@pytest.mark.requirement("WFL-9")
def test_one_run_of_a_skill_can_be_stored_and_takes_another_file(talk: Talk, root: Path) -> None:
    (root / "other.csv").write_text("city,sum\nUlm,1\n")
    put_skill(root, "total-up", ("Adds the sums of a table", 'required_params: \'[{"name": "input", "prompt": "the file", '
              '"validation": "file_exists"}]\'\n', "import sys\nprint(open(sys.argv[-1]).read().split()[1])\n"))  # fmt: skip
    assert talk.say("/total-up @data.csv", consent=True).report.state == "success"
    talk.say("把它保存为工作流 合计")
    again = talk.say("运行工作流 合计 处理 @other.csv", consent=True)
    assert (again.report.data["output"], again.report.state) == ("Ulm,1", "success")


@pytest.mark.requirement("WFL-9")
@pytest.mark.parametrize("name", ["README", "x_", "a" * 90])
def test_an_invalid_name_is_refused(talk: Talk, root: Path, name: str) -> None:
    done(talk)
    before = sorted((root / "mybox/workflows").iterdir())
    with pytest.raises(UsageProblem):
        talk.say(f"save that as a workflow called {name}")
    assert sorted((root / "mybox/workflows").iterdir()) == before


@pytest.mark.requirement("WFL-9")
def test_no_other_workflow_is_replaced_and_nothing_is_stored_of_nothing(talk: Talk, root: Path) -> None:
    with pytest.raises(UsageProblem, match="nothing ran"):
        talk.say("save that as a workflow called daily")
    done(talk)
    talk.say("save that as a workflow called daily")
    first = (root / "mybox/workflows/daily.md").read_bytes()
    talk.say("/shout-loud hello", consent=True)
    with pytest.raises(UsageProblem, match="another workflow"):
        talk.say("save that as a workflow called daily")
    assert (root / "mybox/workflows/daily.md").read_bytes() == first


@pytest.mark.requirement("PRE-24")
def test_a_skill_of_the_name_is_meant_unless_the_message_says_workflow(talk: Talk) -> None:
    done(talk)
    talk.say("save that as a workflow called shout-loud")
    assert talk.say("run shout-loud on hello").workflow is None
    assert talk.say("run the shout-loud workflow").workflow is not None


@pytest.mark.parametrize(
    ("text", "order"),
    [
        ("run the tests", WorkflowOrder("run", "tests", is_sure=False)),
        ("run #a-b for two words", WorkflowOrder("run", "a-b", "two words")),
        ("run the a-b workflow on x.md", WorkflowOrder("run", "a-b", "x.md")),
        ("请执行工作流 周报", WorkflowOrder("run", "周报")),
        ("我有哪些工作流？", WorkflowOrder("list")),
        ("show me all my workflows", WorkflowOrder("list")),
        ("把这个保存成叫周报的工作流", WorkflowOrder("save", "周报")),
        ("save it as a workflow", WorkflowOrder("save")),
        ("write a github workflow", None),
        ("list the workflows in .github", None),
        ("save that as summary.txt", None),
        ("what does the workflow daily do?", None),
        ("run all tests and fix what fails", None),
    ],
)
def test_orders_about_workflows(text: str, order: WorkflowOrder | None) -> None:
    assert workflow_order(text) == order


@pytest.mark.requirement("WFL-9")
def test_a_run_with_a_secret_is_not_stored(talk: Talk, root: Path) -> None:
    talk.say(f"/shout-loud password={'hunter2' * 2}", consent=True)
    with pytest.raises(UsageProblem):
        talk.say("save that as a workflow called daily")
    assert not (root / "mybox/workflows").exists()
