"""A plan drops nothing, runs nothing that was not shown, and tries nothing for ever."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from navigator_kernel.turn.split import split
from navigator_kernel.turn.workflow_file import stored_names
from tables import cases
from workflows.project import FILE, TEXT, packets, project_in, put_skill, talk_in, workflow_file

if TYPE_CHECKING:
    from pathlib import Path

    from turns.conftest import Talk

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def talk(root: Path) -> Talk:
    return talk_in(root)


def targets(talk: Talk) -> list[str]:
    return [packet.task_spec.target.partition(":")[2] or packet.task_spec.target for packet in packets(talk)]


@pytest.mark.requirement("SAF-1")
def test_a_yes_to_a_plan_does_not_cover_a_skill_that_could_not_be_hashed(root: Path, talk: Talk) -> None:
    link = root / ".claude" / "skills" / "make-grid" / "link"
    link.symlink_to("/etc/hostname")
    talk.say("count the terms in @notes.txt and then make a grid")
    link.unlink()
    (link.parent / "run.py").write_text("print('other bytes')\n")
    reply = talk.say("yes")
    assert (reply.report.state, reply.report.subject.startswith("type_a:make-grid@sha256:")) == ("pending", True)


@pytest.mark.requirement("WFL-4", "SAF-1")
@pytest.mark.parametrize("order", ["uninstall flood-words?", "disable flood-words, please", "卸载flood-words吧"])
def test_an_order_to_remove_a_skill_never_runs_it(talk: Talk, order: str) -> None:
    talk.say(f"make a grid and then {order}")
    assert talk.session.approval is not None
    talk.say("yes")
    assert "flood-words" not in [name for name in targets(talk)[1:] if packets(talk)[-1].agent == "skills"]
    assert packets(talk)[-1].task_spec.operation in {"skill.uninstall", "skill.disable"}


@pytest.mark.requirement("WFL-1", "WFL-5")
@pytest.mark.parametrize(
    "text", ["count the terms in @notes.txt and then delete @notes.txt", "统计 @notes.txt 的词条数，然后发布"]
)
def test_a_step_that_nothing_fits_is_asked_about_and_not_dropped(talk: Talk, text: str) -> None:
    reply = talk.say(text)
    assert (reply.report.state, reply.report.data["required"]) == ("pending", ["skill"])
    assert packets(talk) == []


@pytest.mark.requirement("WFL-3")
def test_a_step_beyond_the_limit_is_named_if_one_skill_does_the_rest(talk: Talk) -> None:
    reply = talk.say("make a grid, then make a grid, then make a grid, then uninstall make-grid")
    assert reply.workflow is not None
    assert reply.workflow.left == ("uninstall make-grid",)


def test_a_step_that_calls_a_skill_which_is_not_there_is_an_error(talk: Talk) -> None:
    assert talk.say("make a grid and then /make-gird").report.exit_code == 4


@pytest.mark.parametrize("name", ["data.csv", "input=data.csv"])
def test_a_file_without_its_mark_may_be_read_by_the_plan_that_names_it(talk: Talk, name: str) -> None:
    talk.say(f"run total-column {name} and then draft-poem on it")
    reply = talk.say("yes")
    assert (reply.reports[0].state, reply.reports[0].data["output"]) == ("success", 8)


def test_many_empty_lines_take_no_time() -> None:
    began = time.process_time()
    split("count it" + "\n" * 3_900 + "x then")
    assert time.process_time() - began < 1


def test_a_file_name_that_is_too_long_does_not_fail_a_turn(root: Path) -> None:
    put_skill(root, "name-long", ("Names", "", f'print(\'{{"files": ["{"a" * 300}"]}}\')\n'))
    talk = talk_in(root)
    talk.say("run name-long and then run shout-loud on it")
    assert talk.say("yes").report.state == "success"
    assert talk.say(f"/total-column {'b' * 300}").report.data["required"] == ["input"]


@pytest.mark.requirement("WFL-8")  # SAF-5
def test_a_step_that_may_not_be_ordered_is_not_offered_forever(root: Path) -> None:
    workflow_file(root, "sum", ("total-column", "run total-column on @data.csv"), head="sandbox: {}")
    talk = talk_in(root)
    asked = [talk.say(text).session.approval is not None for text in ("#sum", "yes", "yes")]
    assert asked == [True, False, False]


def test_a_skill_has_no_say_in_the_exit_code(root: Path) -> None:
    put_skill(root, "forge-code", ("Forges", "", "import sys\nprint('{\"exit_code\": 9}')\nsys.exit(1)\n"))
    report = talk_in(root).say("/forge-code", consent=True).report
    assert (report.state, report.exit_code) == ("error", 1)


@cases("text, said")
def test_words_stay_inside_the_quotes_that_they_are_put_into(root: Path, text: str, said: str) -> None:
    workflow_file(root, "say", ("shout-loud", '/shout-loud text="$ARGUMENTS"'))
    assert talk_in(root).say(text, consent=True).report.data["output"] == said


@pytest.mark.requirement("SAF-1")
def test_a_step_is_shown_to_its_last_word(talk: Talk) -> None:
    reply = talk.say(f"run shout-loud on {'x ' * 200}HIDDEN and then make a grid")
    assert "HIDDEN" in reply.report.data["steps"][0]


@cases("said, lists")
def test_a_list_of_files_cannot_be_walked_around(root: Path, said: str, lists: dict[str, str]) -> None:
    put_skill(root, "show-any", ("Shows", TEXT.replace('"text"', '"path"'), "print('shown')\n"))
    (root / "data" / "real").mkdir(parents=True)
    (root / "data" / "real" / "s.csv").write_text("a,1\n")
    (root / "data" / "link").symlink_to(root / "data" / "real")
    (root / "secret.csv").write_text("a,1\n")
    head = "sandbox:\n  file_access:\n" + "".join(f"    {key}: {value}\n" for key, value in lists.items())
    workflow_file(root, "sum", (said.split()[0][1:], said), head=head)
    talk = talk_in(root)
    assert talk.say("#sum", consent=True).report.exit_code == 3
    assert packets(talk) == []


@pytest.mark.requirement("PKT-10")
@pytest.mark.parametrize("answer", ["to a@b.cc with https://x.yy/z", "to=a@b.cc link=https://x.yy/z"])
def test_two_things_that_are_missing_may_be_answered_at_once(root: Path, answer: str) -> None:
    specs = '[{"name": "to", "validation": "email"}, {"name": "link", "validation": "url_format"}]'
    put_skill(root, "mail-page", ("Mails a page", f"required_params: '{specs}'\n", ""))
    talk = talk_in(root)
    talk.say("make a grid and then run mail-page")
    talk.say(answer)
    assert talk.session.approval is not None
    talk.say("yes")
    assert dict(packets(talk)[-1].params.required) == {"to": "a@b.cc", "link": "https://x.yy/z"}


def test_a_file_that_is_answered_and_may_not_be_read_is_refused_before_there_is_a_plan(root: Path) -> None:
    (root / ".env").write_text("a=1\n")
    put_skill(root, "total-column", ("Totals", FILE, "print(1)\n"))
    talk = talk_in(root)
    talk.say("run total-column and then make a grid")
    assert talk.say("@.env").report.exit_code == 3


def test_an_unwritable_result_file_gives_a_partial_report_with_the_result(root: Path) -> None:
    put_skill(root, "block-it", ("Blocks", "", "import os\nos.makedirs('result.md')\nprint('done')\n"))
    workflow_file(root, "block", ("block-it", "/block-it"), head="output: {location: file}")
    reply = talk_in(root).say("#block", consent=True)
    assert (reply.report.state, reply.report.data["output"]) == ("partial", "done")
    assert (reply.workflow and reply.workflow.state) == "done"


def test_a_number_without_end_in_one_file_hides_no_other(root: Path) -> None:
    workflow_file(root, "fine", ("draft-poem", "/draft-poem"))
    path = workflow_file(root, "odd", ("draft-poem", "/draft-poem"))
    path.write_text(path.read_text().replace("Step 1", f"Step {'1' * 5_000}"))
    assert stored_names(talk_in(root).kernel) == ["fine", "odd"]
    assert talk_in(root).say("#fine", shows_prompt=True).report.state == "success"
