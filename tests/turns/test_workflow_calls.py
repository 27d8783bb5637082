"""`#name words`: a stored workflow with its words in place, within the limits that its file sets."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from navigator_kernel.errors import Damaged, NotLoadable, Refused, UsageProblem
from tables import cases
from turns.conftest import Talk
from workflows.project import SLEEP, packets, project_in, put_skill, talk_in, workflow_file

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


def inputs(root: Path, said: str, text: str) -> str:
    """The input that a step written as `said` gets from the message `text`."""
    workflow_file(root, "say", ("shout-loud", said))
    talk = talk_in(root)
    talk.say(text, consent=True)
    return talk.kernel.journal.listed()[0].plan.steps[0].input


# Calls


def test_a_stored_workflow_is_run_without_asking_for_the_plan(root: Path) -> None:
    workflow_file(root, "poems", ("draft-poem", "/draft-poem on rain"), ("draft-poem", "/draft-poem on snow"))
    reply = talk_in(root).say("#poems", shows_prompt=True)
    assert (reply.decision.kind, reply.decision.entity, reply.report.state) == ("workflow", "poems", "success")
    assert len(reply.reports) == 2


def test_a_name_that_is_not_there_is_answered_with_those_that_are_near(root: Path) -> None:
    workflow_file(root, "weekly-report", ("draft-poem", "/draft-poem"))
    reply = talk_in(root).say("#weekly-reprot")
    assert (reply.report.state, reply.report.exit_code) == ("error", 4)
    assert reply.report.data["suggestions"] == ["weekly-report"]
    assert "did you mean weekly-report" in reply.report.summary


@pytest.mark.parametrize("text", ["#readme", "#README", "#nothing"])
def test_only_workflows_can_be_called(root: Path, text: str) -> None:
    folder = root / "mybox" / "workflows"
    folder.mkdir(parents=True)
    (folder / "README.md").write_text("# Workflows\n")
    assert talk_in(root).say(text).report.exit_code == 4


def test_an_edited_file_names_the_line_of_the_mistake_and_nothing_runs(root: Path) -> None:
    path = workflow_file(root, "poems", ("draft-poem", "/draft-poem on rain"), ("draft-poem", "/draft-poem"))
    path.write_text(path.read_text().replace("## Step 2", "## Step 7"))
    talk = talk_in(root)
    line = path.read_text().split("\n").index("## Step 7: draft-poem") + 1
    with pytest.raises(NotLoadable, match=f"line {line}: step 7 stands where step 2 belongs"):
        talk.say("#poems")
    assert (packets(talk), talk.kernel.journal.listed()) == ([], [])


def test_a_workflow_file_that_is_not_text_is_named_in_the_error(root: Path) -> None:
    workflow_file(root, "poems", ("draft-poem", "/draft-poem")).write_bytes(b"---\n\xff\xfe\n")
    with pytest.raises(Damaged, match="poems"):
        talk_in(root).say("#poems")


def test_a_workflow_that_is_a_link_is_not_followed(root: Path, tmp_path: Path) -> None:
    path = workflow_file(root, "poems", ("draft-poem", "/draft-poem"))
    path.rename(tmp_path / "elsewhere.md")
    path.symlink_to(tmp_path / "elsewhere.md")
    with pytest.raises(Refused):
        talk_in(root).say("#poems")


def test_a_file_of_another_language_runs_as_well(root: Path) -> None:
    path = workflow_file(root, "诗歌", ("draft-poem", "/draft-poem 雨"))
    path.write_text(path.read_text().replace("- skill:", "- 技能：").replace("- input:", "- 输入："))
    assert talk_in(root).say("#诗歌", shows_prompt=True).report.state == "success"


# Words of a call


@cases("said, text, found")
def test_words_are_put_in_once(root: Path, said: str, text: str, found: str) -> None:
    assert inputs(root, said, text) == found


def test_a_value_that_looks_like_a_placeholder_or_a_file_reaches_the_skill_as_it_is(root: Path) -> None:
    workflow_file(root, "say", ("shout-loud", "/shout-loud $ARGUMENTS"))
    assert talk_in(root).say("#say $2 @x", consent=True).report.data["output"] == "$2 @X"


def test_a_file_that_the_person_names_in_the_call_is_read(root: Path) -> None:
    workflow_file(root, "say", ("shout-loud", "/shout-loud $1"))
    assert talk_in(root).say("#say @notes.txt", consent=True).report.data["output"] == "ONE TWO THREE"


@pytest.mark.parametrize(
    "step", ["total the numbers of $1", "total the numbers of @$1", "total the numbers of $ARGUMENTS"]
)
@pytest.mark.parametrize(
    "named", ["data.csv", "@data.csv", "my data.csv", '"my data.csv"', "far/data.csv", "./data.csv"]
)
def test_a_workflow_takes_a_file_named_in_any_way(root: Path, step: str, named: str) -> None:
    (root / "far").mkdir()
    for path in ("my data.csv", "far/data.csv"):
        (root / path).write_text("Bonn,3\nKiel,5\n")
    workflow_file(root, "say", ("total-column", step))
    reply = talk_in(root).say(f"#say {named}", consent=True)
    assert (reply.report.state, reply.report.data) == ("success", {"output": 8})


@pytest.mark.parametrize("named", ["far.csv", "@far.csv"])
def test_a_file_takes_the_place_of_the_only_one_that_a_workflow_reads(root: Path, named: str) -> None:
    (root / "far.csv").write_text("Rome,9\n")
    head = "sandbox:\n  file_access:\n    read: [data.csv]"
    workflow_file(root, "say", ("total-column", "total the numbers of @data.csv"), head=head)
    assert talk_in(root).say("#say", consent=True).report.data == {"output": 8}
    other = talk_in(root).say(f"#say {named}", consent=True)
    assert other.report.data == {"output": 9}
    assert other.workflow is not None
    assert other.workflow.plan.steps[0].input == "total the numbers of @far.csv"
    with pytest.raises(UsageProblem, match="takes no arguments") as caught:
        talk_in(root).say("#say nowhere.csv")
    assert "in place of 'data.csv'" in caught.value.hint


@cases("text")
def test_a_workflow_is_called_in_a_sentence(root: Path, text: str) -> None:
    workflow_file(root, "say", ("total-column", "total the numbers of $1"))
    assert talk_in(root).say(text, consent=True).report.data == {"output": 8}


def test_a_workflow_that_needs_a_word_says_so_before_it_starts(root: Path) -> None:
    workflow_file(root, "say", ("shout-loud", "/shout-loud $1"))
    talk = talk_in(root)
    with pytest.raises(UsageProblem, match=r"needs a word for \$1"):
        talk.say("#say")
    assert talk.kernel.journal.listed() == []


def test_a_step_is_called_by_what_was_put_in(root: Path) -> None:
    path = workflow_file(root, "say", ("shout-loud", "/shout-loud $1"))
    path.write_text(path.read_text().replace("## Step 1: shout-loud", "## Step 1: shout $1 loudly"))
    reply = talk_in(root).say("#say hello", consent=True)
    assert reply.workflow is not None
    assert reply.workflow.plan.steps[0].text == "shout hello loudly"


def test_words_of_several_lines_are_all_put_in(root: Path) -> None:
    workflow_file(root, "say", ("shout-loud", "/shout-loud $ARGUMENTS"))
    assert "SECOND LINE" in str(talk_in(root).say("#say first line\nsecond line", consent=True).report.data)


@pytest.mark.parametrize("text", ["#plain a", "#plain 你好", '#plain "a b"'])
def test_words_for_a_workflow_that_takes_none_are_refused(root: Path, text: str) -> None:
    workflow_file(root, "plain", ("draft-poem", "/draft-poem"))
    talk = talk_in(root)
    with pytest.raises(UsageProblem, match="takes no arguments") as caught:
        talk.say(text)
    assert caught.value.exit_code == 2
    assert packets(talk) == []


# Files (sandbox.file_access)


def access(root: Path, said: str, **lists: str) -> Talk:
    head = "sandbox:\n  file_access:\n" + "".join(f"    {key}: {value}\n" for key, value in lists.items())
    workflow_file(root, "sum", ("total-column", said), head=head)
    talk = talk_in(root)
    talk.say("#sum", consent=True)
    return talk


@cases("said, lists")
def test_a_file_that_may_be_read_is_read(root: Path, said: str, lists: dict[str, str]) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "in.csv").write_text("a,8\n")
    talk = access(root, said, **lists)
    assert [packet.agent for packet in packets(talk)] == ["skills"]


@cases("said, lists, told")
def test_a_file_that_may_not_be_read_refuses_the_step(root: Path, said: str, lists: dict[str, str], told: str) -> None:
    (root / "sub").mkdir()
    (root / "sub" / "in.csv").write_text("a,8\n")
    (root / "link.csv").symlink_to(root / "sub" / "in.csv")
    (root.parent / "outside.csv").write_text("a,1\n")
    talk = access(root, said, **lists)
    run = talk.kernel.journal.listed()[0]
    assert packets(talk) == []
    assert (run.state, run.done) == ("stopped", 0)
    reply = talk.say("#sum", consent=True).report
    assert (reply.state, reply.exit_code, told in reply.summary) == ("error", 3, True)


# Time (timeout_seconds)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("own", ["", "timeout: 20\n", "timeout: 0.2\n"])
def test_a_step_has_the_time_that_the_workflow_gives_it_at_most(root: Path, own: str) -> None:
    put_skill(root, "nap-long", ("Sleeps", own, SLEEP))
    workflow_file(root, "nap", ("nap-long", "/nap-long"), head="timeout_seconds: 0.5")
    began = time.monotonic()
    report = talk_in(root).say("#nap", consent=True).report
    assert (report.state, report.exit_code) == ("timeout", 124)
    assert time.monotonic() - began < 10
    assert report.data["limit"] <= 0.5


def test_without_a_limit_of_the_workflow_the_skills_own_holds(root: Path) -> None:
    put_skill(root, "nap-long", ("Sleeps", "timeout: 0.4\n", SLEEP))
    workflow_file(root, "nap", ("nap-long", "/nap-long"))
    assert talk_in(root).say("#nap", consent=True).report.data["limit"] == 0.4


# Limits of an edited step


@pytest.mark.parametrize("said", ["!touch made", "! touch made", "!`touch made`", "#nap", "hello !`touch made` there"])
def test_no_input_becomes_a_shell_command_or_another_workflow(root: Path, said: str) -> None:
    workflow_file(root, "odd", ("shout-loud", said))
    talk = talk_in(root)
    talk.say("#odd", consent=True)
    assert {packet.agent for packet in packets(talk)} <= {"skills"}
    assert not list(root.rglob("made"))


def test_a_step_of_the_worker_does_only_what_the_worker_is_for(root: Path) -> None:
    path = workflow_file(root, "odd", ("skill_manager", "!touch made"))
    path.write_text(path.read_text().replace("- input", "- agent: worker\n- input"))
    report = talk_in(root).say("#odd", consent=True).report
    assert (report.state, report.data["reason"]) == ("error", "unfit")
    assert not list(root.rglob("made"))
