"""folder-inventory: the figures match the generated files."""

from __future__ import annotations

import hashlib
import os
import random
from collections import defaultdict
from pathlib import Path, PurePosixPath

import pytest

from shipped.place import Place
from skill_repositories import git
from tables import cases, table

pytestmark = pytest.mark.sample(1)

ENDINGS = (".py", ".PY", ".md", ".tar.gz", "", ".图")


def made(place: Place, seed: int) -> dict[str, bytes]:
    """Name → content of a generated tree with repeated contents."""
    dice = random.Random(seed)
    contents = [b"", b"x", b"same", b"y" * 70_000, b"y" * 69_999 + b"z", dice.randbytes(5_000), "字".encode() * 9]
    files: dict[str, bytes] = {}
    for at in range(60):
        folder = dice.choice(("", "a/", "a/b/", "空 格/"))
        files[f"data/{folder}f{at}{dice.choice(ENDINGS)}"] = dice.choice([*contents, dice.randbytes(at + 10)])
    for at, (name, content) in enumerate(files.items()):
        path = place.write(name, content)
        os.utime(path, (1_600_000_000 + at, 1_600_000_000 + at))
    return {name.removeprefix("data/"): content for name, content in files.items()}


@pytest.mark.parametrize("seed", range(4))
def test_files_folders_and_bytes_are_counted(place: Place, seed: int) -> None:
    files = made(place, seed)
    data = place.data("/folder-inventory data")
    folders = {parent for name in files for parent in PurePosixPath(name).parents} - {PurePosixPath(".")}
    assert (data["files"], data["folders"]) == (len(files), len(folders))
    assert data["bytes"] == sum(map(len, files.values()))
    assert data["empty"] == list(files.values()).count(b"")


@pytest.mark.parametrize("seed", range(4))
def test_files_are_sorted_by_type_size_and_age(place: Place, seed: int) -> None:
    files = made(place, seed)
    data = place.data("/folder-inventory data")
    sizes: dict[str, list[int]] = defaultdict(list)
    for name, content in files.items():
        sizes[name.rpartition("/")[2].lower().rpartition(".")[2] if "." in name else "none"].append(len(content))
    assert {kind["type"].lstrip("."): (kind["files"], kind["bytes"]) for kind in data["types"]} == {
        kind: (len(held), sum(held)) for kind, held in sizes.items()
    }
    assert [file["bytes"] for file in data["largest"]] == sorted(map(len, files.values()), reverse=True)[:10]
    assert [file["file"] for file in data["newest"]] == list(files)[:-11:-1]
    assert data["newest"][0]["changed"] == "2020-09-13T12:27:39Z"


@pytest.mark.parametrize("seed", range(4))
def test_duplicates_are_files_of_the_same_bytes(place: Place, seed: int) -> None:
    files = made(place, seed)
    data = place.data("/folder-inventory data")
    same: dict[bytes, set[str]] = defaultdict(set)
    for name, content in files.items():
        same[content].add(name)
    groups = [(len(content), names) for content, names in same.items() if content and len(names) > 1]
    assert data["duplicate_groups"] == len(groups)
    assert data["duplicate_bytes"] == sum(size * (len(names) - 1) for size, names in groups)
    told = [(group["bytes"], group["count"], set(group["files"])) for group in data["duplicates"]]
    assert all((size, names) in groups for size, count, names in told if count <= 10)
    wasted = [size * (count - 1) for size, count, _ in told]
    assert wasted == sorted(wasted, reverse=True)


@cases("text, files")
def test_a_folder_or_the_project_is_looked_at(place: Place, text: str, files: int) -> None:
    for name in ("src/a", "src/b", "with space/c"):
        place.write(name, "x")
    assert place.data(text)["files"] == files


def test_links_special_files_and_version_control_are_left_out(place: Place) -> None:
    place.write("a", "x")
    place.write(".git/b", "y")
    place.write("mybox/logs/c", "z")
    (place.root / "file").symlink_to("a")
    (place.root / "folder").symlink_to("/")
    os.mkfifo(place.root / "pipe")
    data = place.data("/folder-inventory")
    assert (data["files"], data["skipped"]) == (1, {"folders": 2, "links": 2, "special": 1})


def test_a_hard_link_is_not_a_duplicate(place: Place) -> None:
    path = place.write("a", "same bytes")
    (place.root / "b").hardlink_to(path)
    assert place.data("/folder-inventory")["duplicates"] == []
    place.write("c", "same bytes")
    (group,) = place.data("/folder-inventory")["duplicates"]
    assert (group["count"], set(group["files"]) < {"a", "b", "c"}) == (2, True)


def test_files_that_are_too_large_to_compare_are_counted(place: Place) -> None:
    for name in ("a", "b"):
        with place.write(name, "").open("wb") as file:
            file.truncate(3 * 2**30)  # sparse: 3 GiB that take no space on disk
    data = place.script("folder-inventory").data
    assert (data["not_compared"], data["duplicates"], data["bytes"]) == (2, [], 6 * 2**30)


def test_a_time_before_1970_is_a_time(place: Place) -> None:
    os.utime(place.write("old", "x"), (-1, -1))
    assert place.data("/folder-inventory")["newest"][0]["changed"] == "1969-12-31T23:59:59Z"


def test_a_name_is_shown_without_what_steers_a_terminal(place: Place) -> None:
    place.write("a\x1b[31m\u202eb.t\x07xt", "x")
    (place.root / "\udcff").write_text("y")
    data = place.data("/folder-inventory")
    assert {file["file"] for file in data["largest"]} == {"ab.txt", "?"}


@pytest.mark.parametrize("name", ["nowhere", "a", "", "a\x1b[31m"])
def test_a_path_that_is_not_a_folder_is_named_in_one_line(place: Place, name: str) -> None:
    place.write("a", "x")
    done = place.script("folder-inventory", "--", name)
    assert done.data["files"] == 1 if not name else done.complaint == f"there is no folder {name!r}"


def test_a_folder_that_leads_out_is_refused(place: Place) -> None:
    (place.root / "out").symlink_to(Path("/"))
    for name in ("out", "..", "out/etc"):
        assert place.script("folder-inventory", name).complaint == f"{name!r} leads out of the project"


TREE = table(__file__, "TREE")
NOT_OURS = ("build/", "src/a.tmp", "vendor/", "node_modules/", ".claude/", "mybox/")
EVERYDAY = (  # language, the folder
    *(
        ("en", name)
        for name in (".", "src", "assets", "one", "vendor", "build", "node_modules", ".claude", "mybox/logs")
    ),
    ("en", "node_modules/p"),
    *(("zh", name) for name in (".", "src/库存", "assets/图标", "数据", "数据/归档", "vendor/库", "assets", "src")),
    *(("zh", name) for name in ("build", "one")),
)


@pytest.fixture
def project(place: Place) -> Place:
    for name, size in TREE.items():
        place.write(name, "build/\n*.tmp\n\n" if name == ".gitignore" else bytes(str(size), "ascii") * size)
        with (place.root / name).open("r+b") as file:
            file.truncate(size)
    git(place.root, "init", "--quiet")
    return place


@pytest.mark.parametrize(("language", "named"), EVERYDAY)
def test_an_everyday_folder_has_the_sizes_of_the_file_system(project: Place, language: str, named: str) -> None:
    inside = [name for name in TREE if named == "." or name.startswith(f"{named}/")]
    inside = [name for name in inside if not name.startswith(NOT_OURS) or f"{named}/".startswith(NOT_OURS)]
    sizes = {name: (project.root / name).stat().st_size for name in inside}
    folders = {parent for name in inside for parent in PurePosixPath(name).relative_to(named).parents}
    same: dict[str, list[str]] = defaultdict(list)
    for name in inside:
        same[hashlib.md5((project.root / name).read_bytes()).hexdigest()].append(name)
    groups = [sorted(names) for names in same.values() if len(names) > 1 and sizes[names[0]]]
    data = project.answer("folder-inventory", "--", named, language=language)
    assert (data["files"], data["bytes"], data["folders"]) == (len(inside), sum(sizes.values()), len(folders) - 1)
    assert [file["bytes"] for file in data["largest"]] == sorted(sizes.values(), reverse=True)[:10]
    assert data["duplicate_groups"] == len(groups)
    lines = data["text"].splitlines()
    assert all(
        any(line.endswith(", ".join(group)) and f"× {len(group)}: " in line for line in lines) for group in groups
    )
    largest = min(inside, key=lambda name: (-sizes[name], name))
    assert lines[1].startswith(f"- {largest} ") and f"{len(inside)} " in data["summary"]
    source = named if named != "." else {"en": "the project", "zh": "整个项目"}[language]
    assert data["summary"].startswith(source) and PurePosixPath(largest).name in data["summary"]


@cases("language, named, summary")
def test_the_summary_is_a_sentence_of_the_persons_language(
    project: Place, language: str, named: str, summary: str
) -> None:
    assert project.answer("folder-inventory", named, language=language)["summary"] == summary


@pytest.mark.requirement("SEN-2")
@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("the smallest file in box", "; the smallest is box/b.txt (2 bytes)"),
        ("which is the oldest file in box?", "; the oldest is box/a.txt (2001-09-09T01:46:40Z)"),
        ("newest file in box", "; the newest is box/c.txt (2020-09-13T12:26:40Z)"),
        ("are there duplicates in box?", "; no duplicates"),
        ("which files are empty in box", "; none of them empty"),
        ("how big are the files in box that changed since 2020-01-01", "box, changed 2020-01-01 – …: 1 file in 0 folders, 4 bytes; the largest is c.txt"),
        ("box 里有重复的文件吗", "；没有重复文件"),
    ],
)  # fmt: skip
def test_the_summary_answers_the_question(place: Place, message: str, told: str) -> None:
    for name, text, at in (("a.txt", "abc", 10**9), ("b.txt", "ab", 15 * 10**8), ("c.txt", "abcd", 16 * 10**8)):
        os.utime(place.write(f"box/{name}", text), (at, at))
    assert told.replace("box/", "") in place.ask(message).summary


def test_what_is_left_out_is_told(project: Place) -> None:
    data = project.script("folder-inventory").data
    assert data["skipped"] == {"folders": 5, "ignored": 2}
    assert data["text"].splitlines()[-1] == "Left out: folders: 5, ignored: 2"


def test_a_folder_without_files_is_an_error(place: Place) -> None:
    (place.root / "empty" / "also empty").mkdir(parents=True)
    assert place.script("folder-inventory", "empty").complaint == "there is no file in 'empty'"
