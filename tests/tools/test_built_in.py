"""The built-in tools of a prompt skill: what they answer, where they write, and when the person is asked."""

from __future__ import annotations

import hashlib
import json
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from navigator_kernel.errors import ConsentNeeded
from navigator_kernel.tools.built_in import example_of, understood
from navigator_kernel.values.allowed import EVERY, left_out
from tables import cases
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.sample(2)


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


def offered(box: Toolbox) -> list[str]:
    return [spec.name for spec in box.tools.offered(box.work)]


@pytest.mark.requirement("JIT-5")
@pytest.mark.parametrize(
    ("allowed", "tools"),
    [
        ((), ["read", "list", "glob", "grep", "write", "edit", "deliver", "run"]),
        (("Read",), ["read", "list", "glob", "grep"]),
        (("Bash(git:*)", "Write"), ["read", "list", "glob", "grep", "write", "deliver", "run"]),
        (("read_file", "replace", "run_shell_command"), ["read", "list", "glob", "grep", "edit", "run"]),
        (("TodoWrite", "WebFetch"), ["read", "list", "glob", "grep"]),
    ],
)
def test_allowed_tools_narrow_what_is_offered(tmp_path: Path, allowed: tuple[str, ...], tools: list[str]) -> None:
    assert offered(toolbox(tmp_path.resolve(), allowed=allowed)) == tools


@pytest.mark.requirement("JIT-5")
@cases("words, missing")
def test_left_out_lists_the_allowed_tools_that_are_not_offered(
    words: tuple[str, ...], missing: tuple[str, ...]
) -> None:
    assert left_out(words, {"skill", "read", "edit", "run", "boat_add"}) == missing


def test_a_long_file_is_read_by_numbered_lines_and_the_next_offset_is_given(box: Toolbox) -> None:
    text = "\n".join(f"line {number}" for number in range(1, 3_001))
    box.call("write", file_path="long.txt", content=text)
    first = box.call("read", file_path="long.txt")
    assert first.text.splitlines()[0] == "     1\tline 1"
    at = int(first.text.rpartition("offset=")[2])
    assert box.call("read", file_path="long.txt", offset=at, limit=1).text.splitlines()[0] == f"{at:>6}\tline {at}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_counted_as_editors_count_them(box: Toolbox, end: str) -> None:
    box.call("write", file_path="a.txt", content=f"one\ftwo\u2028more{end}three\x1c{end}four{end}")
    assert box.call("read", file_path="a.txt", offset=3).text == "     3\tfour"
    assert box.call("grep", pattern="four", path=str(box.workspace)).text == "a.txt:3: four"


@cases("path")
def test_files_of_the_skill_and_files_the_person_named_are_read_without_a_question(box: Toolbox, path: str) -> None:
    written = path.format(skill=box.work.folder, root=box.root)
    assert box.call("read", file_path=written).text.startswith("     1\t")


@pytest.mark.requirement("JIT-12")
def test_other_files_of_the_project_are_asked_about_once(box: Toolbox) -> None:
    assert "not named" in box.agreed("read", file_path=str(box.root / "other.txt")).text
    assert "# Page" in box.call("read", file_path=str(box.root / "docs/page.md")).text
    assert [one.message for one in box.asked] == [
        f"let the skill painter read files of {box.root} that you did not name, all but secrets"
    ]


def test_folders_names_and_text_are_found(box: Toolbox) -> None:
    assert box.call("list").text.splitlines()[:2] == ["references/", "scripts/"]
    assert box.call("glob", pattern="**/*.md").text.splitlines() == ["SKILL.md", "references/colors.md"]
    assert box.call("grep", pattern="^bl.e$").text == "references/colors.md:3: blue"
    assert (
        box.call("grep", pattern="HELLO", ignore_case=True, output_mode="files_with_matches").text == "scripts/hello.py"
    )
    assert box.call("grep", pattern="zebra").text == "(nothing matches)"


def test_names_and_text_are_found_in_the_workspace_and_in_what_was_named_too(box: Toolbox) -> None:
    earlier = box.root / "mybox/workspace/run-0/out/old.md"
    earlier.parent.mkdir(parents=True)
    earlier.write_text("a needle of old\n")
    named = (*box.work.named, str(box.root / "docs/page.md"))
    box.work = replace(box.work, named=named, earlier=(str(earlier),))
    box.call("write", file_path="w.md", content="needle\n")
    box.call("write", file_path=f"{box.workspace}/references/colors.md", content="needle of mine\n")
    everywhere = ["SKILL.md", "docs/page.md", "out/old.md", "references/colors.md", "w.md"]
    assert box.call("glob", pattern="**/*.md").text.splitlines() == everywhere
    assert box.call("glob", pattern="docs/*").text == "docs/page.md"
    assert box.call("glob", pattern="*.txt").text == "notes.txt"
    lines = box.call("grep", pattern="needle|two|^blue").text.splitlines()
    assert lines[:2] == ["w.md:1: needle", "references/colors.md:1: needle of mine"]
    assert lines[2:] == ["notes.txt:2: two", "out/old.md:1: a needle of old"]
    assert box.call("grep", pattern="two", glob="*.md").text == "(nothing matches)"
    for name in everywhere:
        assert box.call("read", file_path=name).text.startswith("     1\t")


@pytest.mark.parametrize("name", EVERY)
def test_wrong_arguments_of_each_tool_are_answered_with_a_call_in_the_right_form(box: Toolbox, name: str) -> None:
    example = json.loads(example_of(name).removeprefix(f"{name} "))
    assert {*example} <= {*understood(name)}
    answer = box.call(name, nothing_of_the_kind=1)
    assert answer.failed and f"for example: {example_of(name)}" in answer.text


def test_a_listing_of_the_project_leaves_out_secrets_and_the_kernels_files(box: Toolbox) -> None:
    shown = box.agreed("glob", pattern="*", path=str(box.root)).text.splitlines()
    assert shown == ["docs/page.md", "notes.txt", "other.txt"]
    assert "TOKEN" not in box.agreed("grep", pattern="TOKEN", path=str(box.root)).text


@cases("pattern, found", lists=True)
def test_names_are_matched_as_a_shell_matches_them(box: Toolbox, pattern: str, found: list[str]) -> None:
    assert box.call("glob", pattern=pattern).text.splitlines() == found


def test_a_pattern_of_many_stars_takes_little_time(box: Toolbox) -> None:
    box.call("write", file_path="a" * 200, content="x")
    began = time.process_time()
    assert box.call("glob", pattern=f"**/{'*a' * 60}b", path=box.work.workspace).text == "(no file matches)"
    assert time.process_time() - began < 5


@pytest.mark.wide
def test_a_pattern_that_never_ends_is_stopped(box: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("navigator_kernel.tools.reading.SECONDS", 1)
    box.call("write", file_path="a.txt", content="a" * 60 + "!")
    answer = box.call("grep", pattern="(a+)+$", path=box.work.workspace)
    assert answer.failed and "the search was stopped" in answer.text


def test_new_files_belong_to_the_workspace(box: Toolbox) -> None:
    before = box.project()
    answer = box.call("write", file_path="out/poem.md", content="Roses\n")
    assert (box.workspace / "out/poem.md").read_text() == "Roses\n"
    assert answer.text == f"wrote {box.workspace}/out/poem.md (6 bytes)" and not answer.changed
    assert box.project() == before


@cases("old, new, every, said")
def test_an_edit_replaces_exactly_what_it_says(box: Toolbox, old: str, new: str, every: bool, said: str) -> None:
    box.call("write", file_path="a.txt", content="one\ntwo\nthree\n")
    answer = box.call("edit", file_path="a.txt", old_string=old, new_string=new, replace_all=every)
    text = (box.workspace / "a.txt").read_text()
    if said:
        assert answer.failed and said in answer.text and text == "one\ntwo\nthree\n"
    else:
        assert (
            text == "one\ntwo\nthree\n".replace(old, new)
            and f"+{text.splitlines()[1] if old == 'two' else 'onE'}" in answer.text
        )


@pytest.mark.requirement("JIT-12")
def test_a_change_in_the_project_is_shown_as_a_diff_and_asked_about_each_time(box: Toolbox) -> None:
    arguments: dict[str, Any] = {"file_path": "notes.txt", "old_string": "two", "new_string": "2"}
    with pytest.raises(ConsentNeeded) as needed:
        box.call("edit", **arguments)
    assert "let the skill painter change notes.txt:" in needed.value.message and "-two\n+2\n" in needed.value.message
    assert (box.root / "notes.txt").read_text() == "one\ntwo\nthree\n"
    assert box.agreed("edit", **arguments).changed
    assert (box.root / "notes.txt").read_text() == "one\n2\nthree\n"
    with pytest.raises(ConsentNeeded):
        box.call("edit", 2, file_path="notes.txt", old_string="three", new_string="3")


@pytest.mark.requirement("JIT-12")
def test_a_yes_for_the_session_covers_the_scripts_of_the_skill_and_no_other_command(box: Toolbox) -> None:
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command="python3 scripts/hello.py a")
    assert "scripts/hello.py a" in needed.value.message
    box.yes(needed.value, session=True)
    assert "hello b" in box.call("run", 2, argv=["python3", f"{box.work.folder}/scripts/hello.py", "b"]).text
    assert "hello c" in box.call("run", 3, command="python3 $SKILL_ROOT/scripts/hello.py 'c'").text
    with pytest.raises(ConsentNeeded):
        box.call("run", 4, command="python3 -c 'print(1)'")


def test_a_file_made_by_a_command_is_available_to_the_next_one(box: Toolbox) -> None:
    assert "wrote: made.txt" in box.agreed("run", command="bash scripts/make.sh").text
    assert "exit code 0\nmade" in box.agreed("run", 2, command="cat made.txt | head -1").text
    assert box.call("read", file_path="made.txt").text == "     1\tmade"


@pytest.mark.requirement("JIT-12")
def test_a_yes_to_a_command_is_not_one_to_the_next_nor_to_other_bytes(box: Toolbox) -> None:
    box.call("write", file_path="a.py", content="print('first')\n")
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command="python3 a.py")
    box.yes(needed.value)
    box.call("write", 2, file_path="a.py", content="print('second')\n")
    with pytest.raises(ConsentNeeded):
        box.call("run", command="python3 a.py")
    with pytest.raises(ConsentNeeded):
        box.call("run", 3, command="python3 a.py")


def test_yes_to_all_orders_covers_no_call_of_a_model(box: Toolbox) -> None:
    box.kernel.consents.allow_orders(box.work.run)
    for number, (tool, arguments) in enumerate(
        [("run", {"command": "python3 scripts/hello.py"}), ("write", {"file_path": "notes.txt", "content": "x"})]
    ):
        with pytest.raises(ConsentNeeded):
            box.call(tool, number, **arguments)


def test_a_long_output_is_cut_and_kept_whole(box: Toolbox) -> None:
    answer = box.agreed("run", command="seq 1 20000")
    assert len(answer.text) < 17_000 and "the whole output is in " in answer.text
    path = answer.text.partition("the whole output is in ")[2].partition(" …")[0]
    assert Path(path).read_text().splitlines()[-1] == "20000"


@pytest.mark.wide
def test_a_command_that_fails_is_an_answer_and_one_that_does_not_end_a_failure(box: Toolbox) -> None:
    wrong = box.agreed("run", command="ls /no-such-folder")
    assert wrong.text.startswith("exit code 2") and "No such file" in wrong.text and not wrong.failed
    slow = box.agreed("run", 2, command="sleep 60", timeout=1)
    assert slow.failed and slow.text.startswith("it was stopped after 1 s")


@cases("command, runs")
def test_run_is_limited_to_the_commands_of_allowed_tools(tmp_path: Path, command: str, runs: bool) -> None:
    box = toolbox(tmp_path.resolve(), allowed=("Bash(git:*)",))
    if runs:
        with pytest.raises(ConsentNeeded):
            box.call("run", command=command)
    else:
        answer = box.call("run", command=command)
        assert answer.failed and "may not run that command" in answer.text


@cases("tool, arguments, said")
def test_an_invalid_tool_call_is_a_failure_with_a_reason(
    box: Toolbox, tool: str, arguments: dict[str, Any], said: str
) -> None:
    answer = box.call(tool, **arguments)
    assert answer.failed and said in answer.text


def test_a_skill_that_was_changed_meanwhile_has_no_tools(box: Toolbox) -> None:
    (Path(box.work.folder) / "scripts/hello.py").write_text("print('another')\n")
    answer = box.call("read", file_path="SKILL.md")
    assert answer.failed and "was changed meanwhile" in answer.text


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("now", ["before", "after", "else"])
def test_an_edit_that_was_under_way_is_made_if_the_file_says_that_it_was_not(box: Toolbox, now: str) -> None:
    """`two` becomes `two two`: if the edit were made again, it would be there three times."""
    texts = {"before": "one two\n", "after": "one two two\n", "else": "two of somebody else\n"}
    box.call("write", file_path="a.txt", content=texts[now])
    half = box.workspace / ".navigator-a.txt-0123456789abcdef.tmp"
    half.write_text("half")
    digests = [hashlib.sha256(texts[name].encode()).hexdigest() for name in ("before", "after")]
    box.work = replace(box.work, begun="call-1", intent=tuple(digests))
    edit: dict[str, Any] = {"file_path": "a.txt", "old_string": "two", "new_string": "two two"}
    if now == "else":
        with pytest.raises(ConsentNeeded, match="may have had an effect"):
            box.call("edit", **edit)
    else:
        assert not box.call("edit", **edit).failed
    assert (box.workspace / "a.txt").read_text() == texts["else" if now == "else" else "after"]
    assert not half.exists()
