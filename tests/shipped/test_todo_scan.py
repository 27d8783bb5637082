"""todo-scan: it finds every mark at the place where it was written, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import pytest

from shipped.place import ESCAPES, Place

pytestmark = pytest.mark.sample(1)

TAGS = ("TODO", "FIXME", "XXX", "HACK", "待办")
FORMS = (
    "# {tag}: {text}",
    "// {tag} {text}",
    "/* {tag}: {text} */",
    "<!-- {tag}: {text} -->",
    "code()  # {tag}：{text}",
)
CODE = (
    "import os",
    "todo = []",
    "TODO_LIST = 1",
    "METHODS = XXXX",
    "autoTODO()",
    "print('hackathon')",
    "",
    "你好，世界",
)


def planted(place: Place, seed: int) -> list[tuple[str, int, str, str]]:
    """File, line, tag and text of the marks in a made-up tree."""
    dice = random.Random(seed)
    found: list[tuple[str, int, str, str]] = []
    for at in range(12):
        name = dice.choice(("a.py", "src/b.rs", "src/深/文件.md", "web/c.vue")).replace(".", f"{at}.", 1)
        lines: list[str] = []
        for number in range(1, dice.randint(2, 40)):
            text = f"{dice.choice(('fix this', '写测试', 'why? (see #12)'))} {dice.randint(0, 99)}"
            tag = dice.choice(TAGS)
            marked = dice.random() < 0.2
            lines.append(dice.choice(FORMS).format(tag=tag, text=text) if marked else dice.choice(CODE))
            found += [(name, number, tag, text)] if marked else []
        place.write(name, dice.choice(("\n", "\r\n")).join(lines))
    return found


def marks(data: Any) -> list[tuple[str, int, str, str]]:
    return [(mark["file"], mark["line"], mark["tag"], mark["text"]) for mark in data["marks"]]


@pytest.mark.parametrize("seed", range(4))
def test_the_marks_are_those_that_were_planted(place: Place, seed: int) -> None:
    expected = planted(place, seed)
    data = place.data("/todo-scan")
    assert sorted(marks(data)) == sorted(expected)
    assert (data["total"], data["files"], data["folder"]) == (len(expected), 12, ".")
    assert data["tags"] == {tag: sum(mark[2] == tag for mark in expected) for tag in data["tags"]}
    for most in data["most"]:
        assert most["count"] == sum(mark[0] == most["file"] for mark in expected)


@pytest.fixture
def tree(place: Place) -> Place:
    place.write("a.py", "# TODO: one\n")
    place.write("src/b.py", "x = 1  # FIXME(ada): two\n")
    place.write("src/deep/c.py", "# 待办：三\n")
    return place


@pytest.mark.parametrize(
    ("text", "files"),
    [
        ("/todo-scan", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("find all TODO comments", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("代码里还有哪些待办注释", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("/todo-scan src", ["b.py", "deep/c.py"]),
        ("use todo-scan on src/deep", ["c.py"]),
        ("/todo-scan path=src/deep", ["c.py"]),
        ("/todo-scan @src/b.py", ["b.py"]),
        ("/todo-scan src/b.py", ["b.py"]),
        ("list the FIXMEs that are left in @src/b.py", ["b.py"]),
    ],
)
def test_a_folder_a_file_or_the_project_is_looked_at(tree: Place, text: str, files: list[str]) -> None:
    assert [mark["file"] for mark in tree.data(text)["marks"]] == files


def test_the_owner_of_a_mark_is_reported(tree: Place) -> None:
    (mark,) = tree.data("/todo-scan src/b.py")["marks"]
    assert mark == {"file": "b.py", "line": 1, "tag": "FIXME", "text": "two", "owner": "ada"}


def test_generated_folders_and_binary_files_are_skipped_and_counted(tree: Place) -> None:
    for name in (".git/x", "node_modules/x.js", "src/__pycache__/x.py", "env/x.py", "cache/x.py", "mybox/logs/x.log"):
        tree.write(name, "# TODO: not mine\n")
    tree.write("env/pyvenv.cfg", "")
    tree.write("cache/CACHEDIR.TAG", "")
    tree.write("picture.png", b"\x89PNG\0 TODO: nor this")
    data = tree.data("/todo-scan")
    assert (data["total"], data["skipped"]) == (3, {"binary": 1, "folders": 6})


def test_links_are_not_followed(tree: Place) -> None:
    outside = tree.root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("# TODO: secret\n")
    (tree.root / "folder").symlink_to(outside)
    (tree.root / "file.py").symlink_to(outside / "secret.py")
    (tree.root / "round").symlink_to(tree.root)
    (tree.root / "gone").symlink_to("nowhere")
    data = tree.data("/todo-scan")
    assert (data["total"], data["skipped"]) == (3, {"folders": 1, "links": 4})
    for name in ("folder", "file.py", "../outside"):
        assert tree.script("todo-scan", name).complaint == f"{name!r} leads out of the project"


@pytest.mark.parametrize("name", ["nowhere", "a.py/b", "a\x1b[31m", "x" * 200])
def test_a_folder_that_is_not_there_is_named_on_one_line(tree: Place, name: str) -> None:
    assert tree.script("todo-scan", "--", name).complaint == f"there is no file or folder {name!r}"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("# TODO: 写文档".encode("utf-16"), "写文档"),
        (b"\xef\xbb\xbf# TODO: first line", "first line"),
        (b"# TODO: caf\xe9 \xff", "caf\ufffd \ufffd"),
        (f"# TODO: {ESCAPES}end".encode(), "red end"),
        (b"# TODO:\ttabs\tstay apart", "tabs stay apart"),
        (b"# TODO: " + b"x" * 300, "x" * 200),
        (b"# TODO", ""),
    ],
)
def test_any_bytes_become_clean_text(place: Place, content: bytes, text: str) -> None:
    place.write("a.txt", content)
    assert [mark["text"] for mark in place.data("/todo-scan")["marks"]] == [text]


def test_a_name_is_shown_without_what_steers_a_terminal(place: Place) -> None:
    place.write("a\x1b[31mb\n.py", "# TODO: x")
    (place.root / "\udcff.py").write_text("# TODO: y")
    assert [mark["file"] for mark in place.data("/todo-scan")["marks"]] == ["ab.py", "?.py"]


def test_two_marks_of_one_line_are_two(place: Place) -> None:
    place.write("a.py", "# TODO one FIXME: two")
    assert marks(place.data("/todo-scan")) == [("a.py", 1, "TODO", "one"), ("a.py", 1, "FIXME", "two")]


def test_more_marks_than_are_listed_are_counted(place: Place) -> None:
    place.write("a.py", "# TODO: again\n" * 750)
    data = place.data("/todo-scan")
    assert (data["total"], data["listed"], len(data["marks"]), data["tags"]) == (750, 200, 200, {"TODO": 750})


@pytest.mark.wide
def test_a_line_without_an_end_does_not_fill_the_memory(place: Place) -> None:
    place.write("min.js", b"// TODO: begin " + b"x" * (120 * 2**20) + b"\n// TODO: second line")
    data = place.script("todo-scan", memory=110 * 2**20).data
    assert [(mark["line"], mark["text"][:6]) for mark in data["marks"]] == [(1, "begin "[:6]), (2, "second")]


def test_an_empty_project_has_no_marks(place: Place) -> None:
    data = place.data("/todo-scan")
    assert (data["total"], data["files"], data["marks"]) == (0, 0, [])
