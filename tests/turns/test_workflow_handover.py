"""A step's result reaches the next step whole, and the last step's goes where the workflow says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.values.packet import Report
from tables import cases
from turns.conftest import Talk
from workflows.project import packets, project_in, put_skill, talk_in, workflow_file

pytestmark = pytest.mark.sample(1)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    monkeypatch.chdir(folder)
    return folder


def ran(root: Path, text: str) -> Report:
    """The report of the last step of an approved plan."""
    talk = talk_in(root)
    assert talk.say(text).decision.kind == "workflow"
    return talk.say("yes").report


def left(root: Path, script: str, second: str = "run shout-loud on it") -> Report:
    """The report of `second` after a skill that runs `script`."""
    put_skill(root, "first-thing", ("Comes first", "", script))
    return ran(root, f"run first-thing and then {second}")


# Text


@pytest.mark.requirement("WFL-7")
@cases("second")
def test_a_step_with_or_without_a_back_reference_works_on_the_previous_output(root: Path, second: str) -> None:
    assert left(root, "print('one two three four five')\n", second).data["words"] == 5


@pytest.mark.requirement("WFL-7")
@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"report.md": "a b c d"}, 4),
        ({"report.md": "a b c d", "notes.acts": "e"}, 4),
        ({"report.md": "a b c d", "other.txt": "e"}, 2),
        ({"empty.md": ""}, 2),
        ({"notes.acts": "e"}, 2),
    ],
    ids=["one document", "a document and another file", "several documents", "an empty document", "another file"],
)
def test_the_only_document_of_a_step_is_what_the_next_one_works_on(
    root: Path, files: dict[str, str], words: int
) -> None:
    script = "".join(f"open({name!r}, 'w').write({text!r})\n" for name, text in files.items())
    assert left(root, f"{script}print('report written')\n", "count the terms in it").data["words"] == words


@pytest.mark.parametrize(
    ("second", "words"),
    [("run count-terms on it is what it is", 5), ('run count-terms on "it"', 1), ("run count-terms on @notes.txt", 3)],
)
def test_words_that_are_said_are_meant_as_they_are(root: Path, second: str, words: int) -> None:
    assert left(root, "print('a b c d e f g')\n", second).data["words"] == words


@pytest.mark.requirement("WFL-7")
@pytest.mark.parametrize("size", [10, 32 * 1024, 200_000])
def test_an_output_of_any_length_is_handed_over_whole(root: Path, size: int) -> None:
    put_skill(
        root,
        "count-letters",
        ("Counts", 'required_params: \'[{"name": "text"}]\'\ncommand: python ${SKILL_ROOT}/run.py\n', ""),
    )
    folder = root / ".claude" / "skills" / "count-letters"
    (folder / "run.py").write_text(
        "import json, os\nprint(len(json.load(open(os.environ['NAVIGATOR_PREVIOUS']))['raw']))\n"
    )
    assert left(root, f"print('x' * {size})\n", "run count-letters on it").data["output"] == size


def test_a_long_output_is_the_next_ones_text(root: Path) -> None:
    assert left(root, "print('a ' * 60_000)\n", "count the terms in it").data["words"] == 60_000


def test_input_over_the_limit_of_a_command_gets_an_error_that_names_another_way(root: Path) -> None:
    """Linux accepts up to 128 KiB as one argument; nothing is cut off silently."""
    report = left(root, "print('a ' * 100_000)\n", "count the terms in it")
    assert (report.state, report.exit_code) == ("error", 2)
    assert "128 KiB" in report.summary
    assert "NAVIGATOR_PREVIOUS" in report.data["hint"]


@pytest.mark.parametrize(
    "said", ["统计：一 二", "a 'b' \"c\" $1 {text} @notes.txt `d`", "--flag", "/count-terms x", "#x"]
)
def test_an_output_of_any_characters_is_text_and_never_an_instruction(root: Path, said: str) -> None:
    assert left(root, f"print({said!r})\n").data["output"] == said.upper()


def test_data_that_a_step_prints_is_handed_over_as_it_was_printed(root: Path) -> None:
    assert left(root, "print('{\"b\": [1, 2]}')\n").data == {"B": [1, 2]}


# Files


@pytest.mark.requirement("WFL-7")
@pytest.mark.parametrize(
    "second", ["run total-column", "run total-column on it", "run total-column on the file", "用 total-column 处理它"]
)
def test_a_file_that_a_step_writes_is_the_next_ones_file(root: Path, second: str) -> None:
    assert ran(root, f"make a grid and then {second}").data["output"] == 3


def test_a_files_own_name_wins_over_the_file_that_was_handed_over(root: Path) -> None:
    assert ran(root, "make a grid and then run total-column on @data.csv").data["output"] == 8


def test_a_step_that_wrote_no_file_hands_none_over(root: Path) -> None:
    talk = talk_in(root)
    talk.say("run shout-loud on @notes.txt and then run total-column on it")
    report = talk.say("yes").report
    assert (report.state, report.data["reason"], len(packets(talk))) == ("error", "missing", 1)


@pytest.mark.parametrize(
    "files",
    ["12", '"table.csv"', "{}", "[1, null]", '["gone.csv"]', '["../../../../notes.txt"]', '["/etc/passwd"]', "true"],
)
def test_an_invalid_files_list_from_a_skill_does_not_fail_the_workflow(root: Path, files: str) -> None:
    assert left(root, f"print('{{\"files\": {files}}}')\n").state == "success"


@pytest.mark.parametrize("files", ['["../../../data.csv"]', '["gone.csv"]', '"data.csv"'])
def test_a_file_that_a_step_did_not_write_is_not_handed_over(root: Path, files: str) -> None:
    report = left(root, f"print('{{\"files\": {files}}}')\n", "run total-column on it")
    assert (report.state, report.data["reason"]) == ("error", "missing")


def test_a_file_that_a_skill_declares_as_offloaded_is_not_read(root: Path) -> None:
    (root / "secret.json").write_text(json.dumps({"data": {}, "raw": "the secret"}))
    report = left(root, 'print(\'{"offloaded": "secret.json"}\')\n')
    assert "SECRET.JSON" in str(report.data)
    assert "THE SECRET" not in str(report.data)


# The whole report


@pytest.mark.requirement("WFL-7")
def test_the_whole_report_of_the_step_before_is_a_file_that_the_next_one_can_read(root: Path) -> None:
    found = ran(root, "make a grid and then run echo-previous").data
    assert (found["step"], found["state"], found["raw"]) == (1, "success", "table written")
    (file,) = found["data"].pop("files")
    assert found["data"] == {"output": "table written"}
    assert (root / file).read_text() == "a,1\nb,2\n"


def test_the_first_step_has_nothing_before_it(root: Path) -> None:
    put_skill(root, "look-back", ("Looks", "", "import os\nprint(os.environ.get('NAVIGATOR_PREVIOUS', 'nothing'))\n"))
    talk = talk_in(root)
    talk.say("run look-back and then run shout-loud on it")
    assert talk.say("yes").reports[0].data["output"] == "nothing"


@pytest.mark.requirement("WFL-7")
def test_a_prompt_shows_the_step_before_it_in_a_block(root: Path) -> None:
    talk = talk_in(root)
    talk.say("run shout-loud on @notes.txt and then run draft-poem")
    prompt = str(talk.say("yes", shows_prompt=True).report.raw)
    assert prompt.endswith('run draft-poem\n\n<step number="1">\nONE TWO THREE\n</step>')


def test_steps_share_a_folder_of_their_own(root: Path) -> None:
    talk = talk_in(root)
    talk.say("make a grid and then run total-column on it")
    talk.say("yes")
    [folder] = (root / "mybox" / "workspace").iterdir()
    assert {path.name for path in folder.iterdir()} >= {"table.csv", "handover-1.json", "handover-2.json"}


# Destination of the last result (part 3, item 5)


def result(root: Path, output: dict[str, str]) -> tuple[Any, Talk]:
    head = "output:\n" + "".join(f"  {key}: {value}\n" for key, value in output.items())
    workflow_file(root, "loud", ("shout-loud", "/shout-loud hello"), head=head)
    talk = talk_in(root)
    return talk.say("#loud", consent=True), talk


@pytest.mark.parametrize("location", ["file", "both"])
@pytest.mark.parametrize(("form", "name"), [("markdown", "result.md"), ("json", "result.json"), ("text", "result.txt")])
def test_the_result_is_written_as_the_workflow_says(root: Path, location: str, form: str, name: str) -> None:
    reply, _ = result(root, {"location": location, "format": form})
    text = (root / "mybox" / "workspace" / reply.run / name).read_text()
    assert text.endswith("\n")
    match form:
        case "json":
            held = json.loads(text)
            assert (held["state"], held["raw"], held["data"]) == ("success", "HELLO", {"output": "HELLO"})
        case "text":
            assert text == "HELLO\n"
        case _:
            assert text.startswith("# loud\n")
            assert "HELLO" in text


def test_the_result_may_have_a_place_of_its_own(root: Path) -> None:
    reply, _ = result(root, {"location": "file", "format": "text", "file_path": "out/of/it.txt"})
    assert (root / "mybox" / "workspace" / reply.run / "out" / "of" / "it.txt").read_text() == "HELLO\n"


def test_a_result_that_is_only_shown_is_not_written(root: Path) -> None:
    reply, _ = result(root, {"location": "inline", "format": "text"})
    assert not (root / "mybox" / "workspace" / reply.run / "result.txt").exists()


@pytest.mark.parametrize("location", ["file", "both"])
def test_the_reply_says_where_the_result_is(root: Path, location: str) -> None:
    reply, _ = result(root, {"location": location, "format": "text"})
    assert f"mybox/workspace/{reply.run}/result.txt" in json.dumps(reply.to_dict(), ensure_ascii=False)


def test_a_long_result_is_written_whole(root: Path) -> None:
    workflow_file(root, "flood", ("flood-words", "/flood-words"), head="output:\n  location: file\n  format: text")
    talk = talk_in(root)
    reply = talk.say("#flood", consent=True)
    text = (root / "mybox" / "workspace" / reply.run / "result.txt").read_text()
    assert len(text.split()) == 20_000
