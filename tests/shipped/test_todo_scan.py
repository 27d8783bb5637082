"""todo-scan: it finds every mark at the place where it was written, and nothing else."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from typing import Any

import pytest

from shipped.place import ESCAPES, Place
from skill_repositories import git
from tables import cases, table

pytestmark = pytest.mark.sample(1)

TAGS = ("TODO", "FIXME", "XXX", "HACK", "待办")
FORMS = table(__file__, "FORMS")
CODE = table(__file__, "CODE")


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
        (b"# TODO: caf\xe9 \xff", "café ÿ"),
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
    data = place.script("todo-scan").data
    assert (data["total"], data["listed"], len(data["marks"]), data["tags"]) == (750, 200, 200, {"TODO": 750})
    assert data["text"].splitlines()[-1] == "and 550 more"


@pytest.mark.wide
def test_a_line_without_an_end_does_not_fill_the_memory(place: Place) -> None:
    place.write("min.js", b"// TODO: begin " + b"x" * (120 * 2**20) + b"\n// TODO: second line")
    data = place.script("todo-scan", memory=110 * 2**20).data
    assert [(mark["line"], mark["text"][:6]) for mark in data["marks"]] == [(1, "begin "[:6]), (2, "second")]


def test_a_folder_without_text_files_is_an_error(place: Place) -> None:
    place.write("pictures/a.png", b"\x89PNG\0")
    assert place.script("todo-scan", "pictures").complaint == "there is no text file in 'pictures'"
    assert place.script("todo-scan", "--endings", ".py", "pictures").complaint == "there is no .py file in 'pictures'"


@pytest.mark.requirement("SEN-2")
def test_what_the_message_leaves_out_is_not_looked_at(place: Place) -> None:
    for name in ("src/a.py", "tests/b.py", "docs/c.md", "docs/deep/d.md"):
        place.write(name, f"# TODO: {name}\n")
    for message, files in {
        "find the TODO comments in this repo, except in tests": {"src/a.py", "docs/c.md", "docs/deep/d.md"},
        "find the TODO comments, without tests and docs": {"src/a.py"},
        "find all TODO comments but not those in *.md": {"src/a.py", "tests/b.py"},
        "find the TODO comments in docs, ignoring docs/deep": {"c.md"},
        "查找 TODO 注释，不包括 tests 目录": {"src/a.py", "docs/c.md", "docs/deep/d.md"},
        "扫描 TODO 注释，tests 和 docs 目录除外": {"src/a.py"},
        "besides tests, also find the TODO comments in src": {"a.py"},
    }.items():
        assert {mark["file"] for mark in place.data(message)["marks"]} == files, message
    refused = place.ask("show the commits of this repository except docs")
    assert "cannot leave out 'docs'" in refused.summary


@pytest.mark.requirement("SEN-2")
def test_only_the_kind_of_files_that_is_named_is_looked_at(place: Place) -> None:
    place.write("src/a.py", "# TODO: one\n")
    place.write("src/b.rs", "// TODO: two\n// FIXME: three\n")
    for message, total in {
        "list the todos in the python files": 1,
        "list the todos in *.py and *.rs": 3,
        "list the todos in *.rs": 2,
        "查找 *.rs 里的 TODO 注释": 2,
    }.items():
        assert place.data(message)["total"] == total, message


TREE: dict[str, bytes] = {
    "src/app.py": b"# TODO: one\n# FIXME(ada): two\nx = 'TODO_LIST'\n",
    "src/web/x.js": b"// TODO a TODO b\n/* HACK: c */\n",
    "src/库存/盘点.py": "# 待办：支持多个仓库\n# TODO 处理负库存\n".encode(),
    "文档/旧编码.txt": "待办：改写这一段\nFIXME 更新截图\n".encode("gb18030"),
    "文档/宽字符.txt": "TODO：翻译\n待办事项：校对\n".encode("utf-16"),
    "带 空格/说明.md": "<!-- TODO: 补充 -->\n".encode(),
    "docs/notes.md": b"XXX: check\n",
    "tests/café.py": "# TODO: café\n".encode("cp1252"),
    ".gitignore": b"dist/\nlogs/\n*.tmp\n",
    "vendor/lib/lib.js": b"// TODO: theirs\n",
    "vendor/二维码/qr.js": "// TODO: 别人的\n".encode(),
    "node_modules/pkg/i.js": b"// FIXME: theirs\n",
    ".claude/skills/a/SKILL.md": b"TODO: of a skill\n",
    "dist/打包.js": b"// TODO: built\n// TODO: twice\n",
    "src/scratch.tmp": b"TODO: ignored\n",
    "logs/run.log": b"XXX: in a log\n",
}

OTHERS = ("vendor/", "node_modules/", ".claude/", "dist/", "src/scratch.tmp", "logs/")  # not written here, or ignored
EVERYDAY = (  # language, what is named
    *(("en", name) for name in (".", "src", "src/web", "src/app.py", "vendor", "dist", "docs", ".claude", "tests")),
    ("en", "node_modules/pkg"),
    *(("zh", name) for name in (".", "src/库存", "src/库存/盘点.py", "文档", "文档/旧编码.txt", "文档/宽字符.txt")),
    *(("zh", name) for name in ("带 空格", "vendor/二维码", "dist/打包.js", "logs")),
)


@pytest.fixture
def project(place: Place) -> Place:
    for name, content in TREE.items():
        place.write(name, content)
    git(place.root, "init", "--quiet")
    git(place.root, "add", "src/app.py", ".gitignore", "docs")  # the rest is new, as in a project that people work on
    return place


def read(content: bytes) -> str:
    for encoding in ("utf-16",) if content[:2] == b"\xff\xfe" else ("utf-8", "gb18030"):
        try:
            return content.decode(encoding)
        except UnicodeDecodeError:
            continue
    return content.decode("cp1252")


@pytest.mark.parametrize(("language", "named"), EVERYDAY)
def test_the_marks_of_what_is_named_are_those_that_grep_finds(project: Place, language: str, named: str) -> None:
    inside = [name for name in TREE if name == named or name.startswith(f"{named}/") or named == "."]
    inside = [name for name in inside if not name.startswith(OTHERS) or f"{named}/".startswith(OTHERS)]
    marks: list[tuple[str, str]] = []
    for name in inside:
        words = ("grep", "-onP", r"\b(TODO|FIXME|XXX|HACK)\b|待办")
        env = {**os.environ, "LC_ALL": "C.UTF-8"}
        done = subprocess.run(words, input=read(TREE[name]).encode(), env=env, capture_output=True, check=False)
        lines = done.stdout.decode().split()
        marks += [(f"{name}:{line}", tag) for line, tag in (line.split(":") for line in lines)]
    data = project.answer("todo-scan", "--", named, language=language)
    assert (data["total"], data["files"]) == (len(marks), len(inside))
    assert data["tags"] == Counter(tag for _, tag in marks)
    told: list[tuple[str, str]] = []
    file = ""
    for line in data["text"].splitlines():
        if line.startswith("  "):
            at, tag = line.split()[:2]
            told.append((f"{file}:{at.rstrip(':')}", tag.partition("(")[0]))
        else:
            file = line
    assert sorted(told) == sorted(marks)
    source = named if named != "." else {"en": "the project", "zh": "整个项目"}[language]
    assert data["summary"].startswith(source) and f"{len(marks):,}" in data["summary"]


@cases("language, named, summary")
def test_the_summary_tells_the_number_of_each_tag(project: Place, language: str, named: str, summary: str) -> None:
    assert project.answer("todo-scan", named, language=language)["summary"] == summary


def test_without_git_only_the_usual_folders_are_left_out(project: Place) -> None:
    data = project.script("todo-scan", env={"PATH": "/nowhere"}).data
    assert {mark["file"] for mark in data["marks"]} >= {"dist/打包.js", "src/scratch.tmp", "logs/run.log"}
    assert not any(mark["file"].startswith(("vendor", "node_modules", ".claude")) for mark in data["marks"])


def test_a_repository_within_the_project_has_its_own_ignored_files(project: Place) -> None:
    for name in ("sub/a.py", "sub/out/b.py", "sub/.gitignore"):
        project.write(name, "# TODO: x" if name.endswith("py") else "out/")
    git(project.root / "sub", "init", "--quiet")
    names = [mark["file"] for mark in project.script("todo-scan").data["marks"] if mark["file"].startswith("sub")]
    assert names == ["sub/a.py"]


def test_no_program_of_the_repository_is_run_to_learn_what_git_ignores(project: Place) -> None:
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "diff.external"):
        git(project.root, "config", name, f"touch {project.root}/ran")
    git(project.root, "config", "core.hooksPath", str(project.root))
    assert project.script("todo-scan").data["total"] and not (project.root / "ran").exists()


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "tags"),
    [
        ("list the FIXMEs in src, not the TODOs", {"FIXME": 1}),
        ("列出 src 里的 FIXME，不要 TODO", {"FIXME": 1}),
        ("list the todos in src", {"FIXME": 1, "HACK": 1, "TODO": 1}),
        ("only the TODOs in src", {"TODO": 1}),
    ],
)
def test_only_the_tags_of_a_message_count(place: Place, message: str, tags: dict[str, int]) -> None:
    place.write("src/a.py", "# TODO: one\n# FIXME: two\n# HACK: three\n")
    assert place.data(message)["tags"] == tags
