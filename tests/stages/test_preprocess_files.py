"""What `@path` becomes, which files are refused, and that inserted text is not processed again."""

from __future__ import annotations

from pathlib import Path

import pytest

from stages.messages import calls, project, take
from tables import cases


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return project(tmp_path)


@pytest.mark.requirement("PRE-8")
@pytest.mark.parametrize("text", ['read @"a b.txt"', "read @'a b.txt'", 'read @"a b.txt".', '/review @"a b.txt"'])
def test_a_quoted_path_may_have_spaces(root: Path, text: str) -> None:
    assert [(f.written, f.content) for f in take(root, text).files] == [("a b.txt", "spaces in its name")]


@pytest.mark.requirement("PRE-17")
@pytest.mark.parametrize("word", ["input=@file", "--input=@file"])
def test_a_path_may_be_the_value_of_a_named_argument(root: Path, word: str) -> None:
    found = take(root, f"/review {word}")
    assert (calls(found), len(found.files)) == ([("skill", "review", (word.replace("@", ""),))], 1)


@pytest.mark.requirement("PRE-17")
def test_a_quoted_path_is_one_argument(root: Path) -> None:
    assert calls(take(root, '/review @"a b.txt" now')) == [("skill", "review", ("a b.txt", "now"))]


@pytest.mark.requirement("PRE-8")
def test_several_files_are_read_in_order_and_each_once(root: Path) -> None:
    found = take(root, "compare @file with @notes.md and @file")
    assert [file.written for file in found.files] == ["file", "notes.md"]
    assert found.cleaned_content.count("content of file") == 2


@pytest.mark.parametrize(
    "text", ["see @file.", "see @file, then", "(@file)", "看 @file。", "看：@file，谢谢", "is it @file?"]
)
def test_punctuation_around_a_path_is_not_part_of_it(root: Path, text: str) -> None:
    found = take(root, text)
    assert [file.written for file in found.files] == ["file"]
    assert found.need == text.replace("@", "")


@pytest.mark.parametrize("text", ["ask @alice about it", "thanks @bob!", "@everyone hello", "@", "@ home", "a @@ b"])
def test_an_at_mention_that_is_not_a_file_stays_text(root: Path, text: str) -> None:
    found = take(root, text)
    assert (found.cleaned_content, found.files) == (text, ())


@pytest.mark.parametrize("text", ["mail me@file.com", "x@notes.md", "user@host:/file", "https://a.example/@file"])
def test_an_address_stays_text(root: Path, text: str) -> None:
    (root / "file.com").write_text("never")
    found = take(root, text)
    assert (found.cleaned_content, found.files) == (text, ())


# Nothing is interpreted twice


#
@cases("content")
def test_file_content_is_never_read_as_an_instruction(root: Path, content: str) -> None:
    (root / "hostile.txt").write_text(content)
    found = take(root, "see @hostile.txt")
    assert found.commands == ()
    assert [file.written for file in found.files] == ["hostile.txt"]
    assert f"\n{content}\n" in found.cleaned_content


#
def test_an_instruction_on_a_line_of_its_own_in_a_file_is_content(root: Path) -> None:
    (root / "hostile.txt").write_text("first\n/review it\n!ls\n#flow\n@@agent\n")
    found = take(root, "@hostile.txt")
    assert (found.commands, found.should_halt_conversation) == ((), False)


@pytest.mark.parametrize("body", ["!ls", "/review it", "see @file", "run !`ls`", "#flow", "@@agent go"])
def test_a_fence_is_left_alone(root: Path, body: str) -> None:
    text = f"explain\n```sh\n{body}\n```\nplease"
    found = take(root, text)
    assert (found.cleaned_content, found.commands, found.files) == (text, (), ())


@pytest.mark.parametrize("body", ["!ls", "/review it", "see @file", "run !`ls`"])
def test_a_fence_that_is_never_closed_reaches_to_the_end(root: Path, body: str) -> None:
    text = f"explain\n```sh\n{body}\n"
    found = take(root, text)
    assert (found.cleaned_content, found.commands, found.files) == (text.strip(), (), ())


def test_after_a_fence_instructions_count_again(root: Path) -> None:
    found = take(root, "```\n!ls\n```\n/review @file")
    assert calls(found) == [("skill", "review", ("file",))]


#
@cases("text, left")
def test_a_backslash_makes_a_mark_plain_text(root: Path, text: str, left: str) -> None:
    found = take(root, text)
    assert (found.cleaned_content, found.commands, found.files) == (left, (), ())


def test_a_backslash_makes_a_mark_among_arguments_plain_text(root: Path) -> None:
    found = take(root, "/say \\@file")
    assert (calls(found), found.files) == ([("skill", "say", ("@file",))], ())
