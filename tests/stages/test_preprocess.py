"""Which instructions are taken out of a message, and which text stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.request import Message
from stages.messages import calls, project, take
from tables import cases


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path)


# The documents' own examples


@pytest.mark.requirement("PRE-14")
def test_hello_world_has_no_commands_and_does_not_halt(root: Path) -> None:
    found = take(root, "hello world")
    assert (found.commands, found.should_halt_conversation) == ((), False)


@pytest.mark.requirement("PRE-5", "PRE-7", "PRE-15")
def test_commit_with_a_quoted_message_is_a_skill_and_halts(root: Path) -> None:
    found = take(root, "/commit -m 'wip'")
    assert calls(found) == [("skill", "commit", ("-m", "wip"))]
    assert found.should_halt_conversation is True


@pytest.mark.requirement("PRE-16")
def test_ls_after_an_exclamation_mark_is_a_shell_command_and_halts(root: Path) -> None:
    found = take(root, "!ls -la")
    assert [(c.type, c.name) for c in found.commands] == [("shell", "ls -la")]
    assert found.should_halt_conversation is True


@pytest.mark.requirement("PRE-17")
def test_a_file_after_a_skill_is_read_although_routing_halts(root: Path) -> None:
    found = take(root, "/review @src/index.ts")
    assert calls(found) == [("skill", "review", ("src/index.ts",))]
    assert [file.content for file in found.files] == ["export const answer = 42\n"]
    assert found.should_halt_conversation is True


@pytest.mark.requirement("PRE-17")
def test_a_file_after_a_skill_that_is_not_there_was_looked_for(root: Path) -> None:
    found = take(root, "/review @src/other.ts")
    assert [(file.written, bool(file.problem)) for file in found.files] == [("src/other.ts", True)]


@pytest.mark.requirement("PRE-8", "PRE-18")
def test_a_file_in_a_sentence_is_replaced_by_its_content(root: Path) -> None:
    found = take(root, "check this @file")
    assert "content of file" in found.cleaned_content
    assert "@file" not in found.cleaned_content


@pytest.mark.requirement("PRE-9")
def test_routing_reads_the_bare_path_where_the_model_reads_the_content(root: Path) -> None:
    found = take(root, "check this @file now")
    assert found.need == "check this file now"
    assert found.cleaned_content.startswith("check this <file") and found.cleaned_content.endswith(" now")


@pytest.mark.requirement("PRE-9")
def test_a_path_resolves_to_the_real_file(root: Path) -> None:
    assert take(root, "see @src/../src/index.ts").files[0].path == root / "src" / "index.ts"


# The result


@pytest.mark.requirement("PRE-2", "PRE-3")
@cases("text, left")
def test_instructions_are_removed_from_the_remaining_text(root: Path, text: str, left: str) -> None:
    assert take(root, text).cleaned_content == left


@pytest.mark.requirement("PRE-4")
@cases("text, type, name, args, original")
def test_an_instruction_has_a_name_its_words_a_type_and_the_source_text(
    root: Path, text: str, type: str, name: str, args: tuple[str, ...], original: str
) -> None:
    [command] = take(root, text).commands
    assert (command.type, command.name, command.args, command.original_string) == (type, name, args, original)


@pytest.mark.requirement("PRE-5")
@cases("text, halt")
def test_it_halts_where_all_is_an_instruction(root: Path, text: str, halt: bool) -> None:
    assert take(root, text).should_halt_conversation is halt


@pytest.mark.requirement("PRE-21")
@cases("text")
def test_natural_language_is_returned_as_it_is(root: Path, text: str) -> None:
    found = take(root, text)
    assert (found.cleaned_content, found.need, found.commands, found.files) == (text, text, (), ())


@given(st.text())
def test_no_text_makes_it_raise(text: str) -> None:
    preprocess(Message(text=text), ProjectFiles(Path("/nowhere"), Path("/nowhere")))


# Skills, subagents, workflows


@pytest.mark.requirement("PRE-7")
@cases("text, name, args")
def test_a_skill_is_named_after_a_slash_with_its_arguments(
    root: Path, text: str, name: str, args: tuple[str, ...]
) -> None:
    assert calls(take(root, text)) == [("skill", name, args)]


@pytest.mark.requirement("PRE-24")
@pytest.mark.parametrize(
    ("text", "type"),
    [("@@tester do it", "subagent"), ("/tester do it", "skill"), ("#tester do it", "workflow")],
)
def test_the_mark_says_who_is_called(root: Path, text: str, type: str) -> None:
    assert calls(take(root, text)) == [(type, "tester", ("do", "it"))]


#
@cases("text")
def test_a_mark_that_does_not_start_a_line_or_a_name_is_text(root: Path, text: str) -> None:
    assert take(root, text).commands == ()


#
def test_a_command_may_start_any_line(root: Path) -> None:
    assert calls(take(root, "first\n/review it\nlast")) == [("skill", "review", ("it",))]


# Shell


@pytest.mark.requirement("PRE-6")
@pytest.mark.parametrize("text", ["!touch made", "! touch made", "!`touch made`"])
def test_a_shell_command_is_taken_out_and_not_run(root: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    [command] = take(root, text).commands
    assert (command.type, command.name, command.args) == ("shell", "touch made", ("made",))
    assert not (root / "made").exists()


@pytest.mark.requirement("PRE-6")
def test_a_shell_command_keeps_its_line_as_it_was_typed(root: Path) -> None:
    [command] = take(root, "!grep -c 'a  b' x | sort > y && echo $HOME").commands
    assert command.name == "grep -c 'a  b' x | sort > y && echo $HOME"


def test_files_named_in_a_shell_command_are_the_shells_own(root: Path) -> None:
    assert take(root, "!cat @file").files == ()


# The prefix


@pytest.mark.requirement("PRE-19")
@pytest.mark.parametrize(
    "text", ["需求理解：写一个函数", "需求理解:写一个函数", "  需求理解 ： 写一个函数", "需求理解：\n写一个函数"]
)
def test_the_prefix_is_stripped(root: Path, text: str) -> None:
    found = take(root, text)
    assert (found.cleaned_content, found.need) == ("写一个函数", "写一个函数")


@pytest.mark.requirement("PRE-19")
@pytest.mark.parametrize("text", ["请看需求理解：写", "需求理解不对"])
def test_the_prefix_counts_at_the_start_and_with_its_colon_only(root: Path, text: str) -> None:
    assert take(root, text).cleaned_content == text


@pytest.mark.requirement("PRE-19")
@pytest.mark.parametrize("text", ["/master-orchestrator 需求理解：写 测试", "/master-orchestrator 需求理解: 写 测试"])
def test_the_prefix_is_stripped_after_a_command_too(root: Path, text: str) -> None:
    assert calls(take(root, text)) == [("skill", "master-orchestrator", ("写", "测试"))]


@cases("text, language")
#
def test_the_language_is_the_messages(root: Path, text: str, language: str) -> None:
    assert take(root, text).language == language


#
def test_a_language_that_was_set_wins(root: Path) -> None:
    files = ProjectFiles(root, root)
    assert preprocess(Message(text="review", language="zh"), files).language == "zh"


@pytest.mark.requirement("PRE-4")
def test_the_original_is_kept_whole(root: Path) -> None:
    text = "需求理解：see @file\n/review"
    assert take(root, text).original == text
