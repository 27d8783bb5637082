"""What `@path` becomes, which files are refused, and that inserted text is not processed again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.project_files import FILE_LIMIT
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


@pytest.mark.requirement("PRE-8")
@pytest.mark.parametrize("name", ["missing.py", "src/missing", "no/such/file.txt"])
def test_a_missing_file_is_named(root: Path, name: str) -> None:
    [file] = take(root, f"look at @{name}").files
    assert name in file.problem
    assert file.content == ""


def test_every_missing_file_is_named(root: Path) -> None:
    assert [f.written for f in take(root, "@one.py @two.py @file").files if f.problem] == ["one.py", "two.py"]


@pytest.mark.parametrize("text", ["ask @alice about it", "thanks @bob!", "@everyone hello", "@", "@ home", "a @@ b"])
def test_an_at_mention_that_is_not_a_file_stays_text(root: Path, text: str) -> None:
    found = take(root, text)
    assert (found.cleaned_content, found.files) == (text, ())


@pytest.mark.parametrize("text", ["mail me@file.com", "x@notes.md", "user@host:/file", "https://a.example/@file"])
def test_an_address_stays_text(root: Path, text: str) -> None:
    (root / "file.com").write_text("never")
    found = take(root, text)
    assert (found.cleaned_content, found.files) == (text, ())


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("written", ["../secret.txt", "/etc/hostname", "link.txt", "out/secret.txt"])
def test_a_file_outside_the_project_is_refused_by_name(root: Path, written: str) -> None:
    (root.parent / "secret.txt").write_text("s3cret")
    (root / "link.txt").symlink_to(root.parent / "secret.txt")
    (root / "out").symlink_to(root.parent)
    [file] = take(root, f"see @{written}").files
    assert written in file.problem and "outside" in file.problem
    assert file.content == ""


def test_a_link_that_stays_inside_is_followed(root: Path) -> None:
    (root / "link.md").symlink_to("notes.md")
    assert take(root, "see @link.md").files[0].content == "# Notes\n"


def test_a_file_of_the_limit_is_read_and_of_a_larger_one_only_the_path_can_be_used(root: Path) -> None:
    (root / "fits.txt").write_bytes(b"a" * FILE_LIMIT)
    (root / "large.txt").write_bytes(b"a" * (FILE_LIMIT + 1))
    fits, large = take(root, "@fits.txt @large.txt").files
    assert (len(fits.content), fits.problem) == (256 * 1024, "")
    assert (large.usable, large.content, large.path) == (True, "", root / "large.txt")
    assert "large.txt" in large.unread and "256 KiB" in large.unread


def test_of_a_file_that_is_not_utf8_only_the_path_can_be_used(root: Path) -> None:
    (root / "latin.txt").write_bytes("café".encode("latin-1"))
    [file] = take(root, "see @latin.txt").files
    assert (file.usable, file.content) == (True, "") and "UTF-8" in file.unread


@pytest.mark.timeout(60)
def test_a_fifo_is_refused_and_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe.txt")
    [file] = take(root, "see @pipe.txt").files
    assert "pipe.txt" in file.problem and "regular" in file.problem


def test_a_folder_is_named_like_a_file(root: Path) -> None:
    (root / "src").mkdir(exist_ok=True)
    [folder] = take(root, "see @src/").files
    assert (folder.folder, folder.usable, folder.path) == (True, True, root / "src")


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
