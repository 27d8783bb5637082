"""A yes to a call of a built-in tool is for one execution of what was shown, and of exactly these bytes."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import ConsentNeeded
from tables import table
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.sample(4)


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


LINES = table(__file__, "LINES")


@pytest.mark.requirement("JIT-12", "X-43")
@pytest.mark.parametrize("line", LINES)
def test_the_same_call_with_other_bytes_of_any_file_that_it_reaches_is_asked_about(box: Toolbox, line: str) -> None:
    files = dict.fromkeys(("job.py", "my job.py", "lib/job.py"), "open('ran.txt', 'a').write('first ')\n")
    files |= {"starts.py": "import job\n", "starts.sh": "python3 lib/job.py\n"}
    for number, (name, text) in enumerate(files.items(), 100):
        box.call("write", number, file_path=name, content=text)
    command = line.format(workspace=box.workspace)
    box.agreed("run", command=command)
    assert any(path.read_text().startswith("first") for path in box.workspace.rglob("ran.txt"))
    for path in box.workspace.rglob("ran.txt"):
        path.unlink()
    with pytest.raises(ConsentNeeded) as again:  # the same id and the same bytes: a yes is for one execution
        box.call("run", command=command)
    box.yes(again.value)
    for number, name in enumerate(("job.py", "my job.py", "lib/job.py"), 200):
        box.call("write", number, file_path=name, content="open('evil.txt', 'w').close()\n")
    with pytest.raises(ConsentNeeded):
        box.call("run", command=command)
    assert not list(box.workspace.rglob("evil.txt")) and not list(box.workspace.rglob("ran.txt"))


@pytest.mark.requirement("JIT-12", "X-43")
@pytest.mark.parametrize(
    "line",
    [
        *LINES,
        "python3 -m lib.job",
        "cd lib; python3 job.py",
        "make -C lib",
        "bash -c 'python3 \"my job.py\"'",
        "python3 link.py",
        "env -S'python3 job.py'",
        "python3 -c 'import job'",
        "python3 lib",
    ],
)
def test_a_question_about_a_command_shows_the_files_that_it_names(box: Toolbox, line: str) -> None:
    names = ("job.py", "my job.py", "lib/job.py", "lib/Makefile", "lib/__main__.py")
    files = {name: f"# {name} and \x1b[8mmore\n" for name in names}
    files |= {"starts.py": "import job\n", "starts.sh": "python3 lib/job.py\n"}
    for number, (name, text) in enumerate(files.items(), 100):
        box.call("write", number, file_path=name, content=text)
    (box.workspace / "link.py").symlink_to("lib/job.py")
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command=line.format(workspace=box.workspace))
    assert (
        "job.py and \\x1b[8mmore" in needed.value.message
        or "__main__.py and \\x1b" in needed.value.message
        or ("make" in line and "Makefile and \\x1b" in needed.value.message)
    )


@pytest.mark.requirement("JIT-12", "X-43")
def test_a_file_of_bytes_is_named_with_its_size_and_digest_and_a_program_is_shown_with_escapes(box: Toolbox) -> None:
    box.workspace.mkdir(parents=True)
    data = bytes(range(256)) * 40
    (box.workspace / "a.bin").write_bytes(data)
    (box.workspace / "latin.py").write_bytes(b"# coding: latin-1\nprint('\xe9')\n")
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command="python3 latin.py a.bin")
    shown = needed.value.message
    assert f"a.bin (10,240 bytes that are not text, sha256:{hashlib.sha256(data).hexdigest()})" in shown
    assert "│ print('\\xe9')" in shown


@pytest.mark.requirement("JIT-12", "X-43")
def test_files_that_are_too_long_to_show_are_refused_with_a_hint(box: Toolbox) -> None:
    box.call("write", file_path="long.txt", content="a line\n" * 20_000)
    answer = box.call("run", 2, command="wc -l long.txt")
    assert answer.failed and "too long to show" in answer.text and "split them" in answer.text
    with pytest.raises(ConsentNeeded):
        box.call("run", 3, command="wc -l $(ls | head -1)")


@pytest.mark.requirement("JIT-12", "X-43")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        ({"argv": ["echo", "a; rm -rf ~", "x"]}, "echo 'a; rm -rf ~' x"),
        ({"command": f"echo a{' ' * 2_000}; rm -rf important"}, "echo a␠×2000; rm -rf important"),
        ({"command": "echo a\n\n" + "\n" * 1_000 + "rm -rf important"}, "echo a↵\n│ ↵×1001\n│ rm -rf important"),
        ({"command": f"echo {'b' * 2_900}; rm x"}, "; rm x"),
    ],
)
def test_nothing_in_a_command_is_out_of_sight(box: Toolbox, arguments: dict[str, Any], shown: str) -> None:
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", **arguments)
    assert shown in needed.value.message and needed.value.message.count(" … ") == 0


@pytest.mark.requirement("JIT-12")
def test_a_yes_covers_one_run_of_one_script_of_the_skill(box: Toolbox) -> None:
    with pytest.raises(ConsentNeeded) as needed:
        box.call("run", command="python3 scripts/hello.py a")
    box.yes(needed.value)
    for number, line in (
        (1, "bash scripts/make.sh"),
        (1, "python3 scripts/hello.py b"),
        (2, "python3 scripts/hello.py a"),
    ):
        with pytest.raises(ConsentNeeded):
            box.call("run", number, command=line)
    assert "hello a" in box.call("run", command="python3 scripts/hello.py a").text
    with pytest.raises(ConsentNeeded):
        box.call("run", command="python3 scripts/hello.py a")


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_was_not_named_asks_about_both_in_one_question(box: Toolbox) -> None:
    edit: dict[str, Any] = {"file_path": str(box.root / "other.txt"), "old_string": "not named", "new_string": "named"}
    with pytest.raises(ConsentNeeded) as needed:
        box.call("edit", **edit)
    assert "read files of" in needed.value.message and "-not named\n+named" in needed.value.message
    assert (box.root / "other.txt").read_text() == "not named\n"
    box.yes(needed.value)
    assert box.call("edit", **edit).changed and (box.root / "other.txt").read_text() == "named\n"
    assert "named" in box.call("read", 2, file_path=str(box.root / "other.txt")).text  # a kind: for the whole order
    with pytest.raises(ConsentNeeded):
        box.call("edit", 3, **{**edit, "old_string": "named", "new_string": "x"})


@pytest.mark.requirement("JIT-12")
@pytest.mark.parametrize("old", ["no such text", "n"])
def test_an_edit_that_cannot_be_made_tells_nothing_of_a_file_that_may_not_be_read(box: Toolbox, old: str) -> None:
    edit: dict[str, Any] = {"file_path": str(box.root / "other.txt"), "old_string": old, "new_string": "x"}
    with pytest.raises(ConsentNeeded) as needed:
        box.call("edit", **edit)
    assert (
        needed.value.message == f"let the skill painter read files of {box.root} that you did not name, all but secrets"
    )
    box.yes(needed.value)
    assert box.call("edit", **edit).failed


@pytest.mark.requirement("JIT-12")
def test_a_command_in_a_workspace_that_cannot_be_bound_is_refused(
    box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("navigator_kernel.adapters.files.tree.FINGERPRINTED", 3)
    for number in range(4):
        box.call("write", number, file_path=f"{number}.txt", content="x")
    answer = box.call("run", 9, command="true")
    assert answer.failed and "cannot be bound" in answer.text and "next message" in answer.text
