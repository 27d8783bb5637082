"""A lesson that a person confirmed for a skill is kept, within limits, until it is forgotten."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores import lessons as adapter
from navigator_kernel.adapters.stores.lessons import ALL, EACH, LENGTH, Lessons
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.errors import Damaged, KernelError


class Ticking:
    """Implements `ports.Clock`: each moment is a millisecond after the one before."""

    def __init__(self) -> None:
        self._moments = count()

    def now(self) -> str:
        return f"2026-01-31T09:30:{next(self._moments) / 1000:06.3f}Z"

    def monotonic(self) -> float:
        return 0.0


def lessons_at(root: Path) -> Lessons:
    return Lessons(root / "mybox" / "state" / "lessons.json", FolderWriter([root]), Ticking())


@pytest.fixture
def lessons(tmp_path: Path) -> Lessons:
    return lessons_at(tmp_path)


def harm(lessons: Lessons, body: str | bytes) -> bytes:
    """Writes `body` to the file; returns its bytes."""
    lessons.path.parent.mkdir(parents=True, exist_ok=True)
    lessons.path.write_bytes(body if isinstance(body, bytes) else body.encode())
    return lessons.path.read_bytes()


# Stored lessons


def test_lessons_are_kept_and_returned_newest_first(lessons: Lessons, tmp_path: Path) -> None:
    assert lessons.learn("painter", "a boat at sea") and lessons.learn("painter", "画一条船")
    assert lessons.of("painter") == ("画一条船", "a boat at sea")
    assert lessons_at(tmp_path).all() == {"painter": ("画一条船", "a boat at sea")}


def test_the_file_says_what_was_learned_and_when(lessons: Lessons) -> None:
    lessons.learn("painter", "画一条船")
    told = {"v": 1, "skills": {"painter": [{"text": "画一条船", "at": "2026-01-31T09:30:00.000Z"}]}}
    assert json.loads(lessons.path.read_text(encoding="utf-8")) == told


def test_nothing_is_written_by_asking(lessons: Lessons, tmp_path: Path) -> None:
    assert (lessons.all(), lessons.known(), lessons.of("painter"), lessons.forget()) == ({}, {}, (), 0)
    assert list(tmp_path.iterdir()) == []


def test_the_oldest_of_a_skill_leave(lessons: Lessons) -> None:
    for at in range(EACH + 3):
        lessons.learn("painter", f"boat {at}")
    assert lessons.of("painter") == tuple(f"boat {at}" for at in reversed(range(3, EACH + 3)))


def test_the_oldest_of_all_leave(lessons: Lessons) -> None:
    skills = {
        f"s{skill}": [{"text": f"{skill} {at}", "at": f"2025-01-{skill % 28 + 1:02}"} for at in range(EACH)]
        for skill in range(ALL // EACH)
    }
    skills["s7"] = [{**one, "at": "2024"} for one in skills["s7"]]
    harm(lessons, json.dumps({"v": 1, "skills": skills}))
    lessons.learn("painter", "a boat at sea")
    assert sum(map(len, lessons.all().values())) == ALL
    assert lessons.of("s7") == tuple(f"7 {at}" for at in reversed(range(1, EACH)))


def test_a_file_of_somebody_elses_is_held_to_the_bounds(lessons: Lessons) -> None:
    many = [{"text": f"boat {at}\x1b[31m\n" + "x" * 900, "at": "2026"} for at in range(EACH * 3)]
    harm(lessons, json.dumps({"v": 1, "skills": {"painter": many}}))
    found = lessons.of("painter")
    assert len(found) == EACH and found[0].startswith(f"boat {EACH * 3 - 1} xx")
    assert {len(text) for text in found} == {LENGTH}


@pytest.mark.parametrize(
    ("said", "kept"),
    [("a\x1b[31m boat\r\n at\u202e  sea ", "a boat at sea"), ("x" * 900, "x" * LENGTH), ("船" * 900, "船" * LENGTH)],
)
def test_a_lesson_is_one_clean_line_of_a_length(lessons: Lessons, said: str, kept: str) -> None:
    lessons.learn("painter", said)
    assert lessons.of("painter") == (kept,)


@pytest.mark.parametrize("text", ["", " \n ", "\u200b", "A Boat at sea", "a  boat at sea\n"])
def test_nothing_and_nothing_new_are_not_kept(lessons: Lessons, text: str) -> None:
    lessons.learn("painter", "a boat at sea")
    assert lessons.learn("painter", text) is False
    assert lessons.of("painter") == ("a boat at sea",)


def test_an_address_with_a_password_is_not_kept(lessons: Lessons) -> None:
    assert lessons.learn("deploy", "push to https://ada:s3cret@example.com/x.git") is False
    assert not lessons.path.exists()


def test_a_correction_takes_a_message_from_the_skill_that_had_it(lessons: Lessons) -> None:
    lessons.learn("ada-painter", "a boat at sea")
    lessons.learn("ada-painter", "a tree")
    assert lessons.learn("bob-painter", "A boat at sea")
    assert lessons.all() == {"ada-painter": ("a tree",), "bob-painter": ("A boat at sea",)}


def test_lessons_learned_by_another_instance_are_visible_at_once(lessons: Lessons, tmp_path: Path) -> None:
    lessons.learn("painter", "a boat at sea")
    assert lessons.of("painter") == ("a boat at sea",)
    lessons_at(tmp_path).learn("painter", "a tree")
    assert lessons.of("painter") == ("a tree", "a boat at sea")


def test_a_file_that_did_not_change_is_read_once(lessons: Lessons, monkeypatch: pytest.MonkeyPatch) -> None:
    lessons.learn("painter", "a boat at sea")
    lessons.all()
    monkeypatch.setattr(adapter, "read_bounded", None)
    assert lessons.of("painter") == lessons.known()["painter"] == ("a boat at sea",)


def test_processes_that_learn_at_once_lose_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from navigator_kernel.bootstrap.project import Project\n"
        "held = Project(Path(sys.argv[1]), agents=False).lessons\n"
        "for at in range(12): assert held.learn('painter', f'{sys.argv[2]} {at}')\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path), name]) for name in ("boat", "tree")]
    assert [process.wait(60) for process in running] == [0, 0]
    lessons = Project(tmp_path, agents=False).lessons
    assert sorted(lessons.of("painter")) == sorted(f"{name} {at}" for name in ("boat", "tree") for at in range(12))


# Forgotten lessons and damaged files


def test_a_skill_is_forgotten_alone_by_its_folded_name(lessons: Lessons) -> None:
    for name in ("ada-painter", "bob-painter"):
        lessons.learn(name, f"a boat by {name}")
        lessons.learn(name, f"a tree by {name}")
    assert lessons.forget("Ada Painter") == 2
    assert set(lessons.all()) == {"bob-painter"}
    assert (lessons.forget("ada-painter"), lessons.forget(), lessons.all(), lessons.forget()) == (0, 2, {}, 0)


DAMAGED = [b"", b"{", b"[]", b"\xff\xfe", b'{"skills": 7}', b'{"skills": {"a": [7]}}', b'{"skills": {"a": [{"text": 7, "at": ""}]}}', b"[" * 9_999]  # fmt: skip


@pytest.mark.parametrize("body", DAMAGED)
def test_a_damaged_file_is_reported_and_left_as_it_is(lessons: Lessons, body: bytes) -> None:
    harm(lessons, body)
    for asked in (lessons.all, lambda: lessons.learn("painter", "a boat"), lambda: lessons.forget("painter")):
        with pytest.raises(Damaged) as caught:
            asked()
        assert "navigator route --forget" in caught.value.hint
    assert lessons.path.read_bytes() == body


@pytest.mark.parametrize("body", DAMAGED)
def test_a_damaged_file_yields_no_lessons_and_one_warning(
    lessons: Lessons, body: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    harm(lessons, body)
    assert [lessons.known(), lessons.known(), lessons.known()] == [{}, {}, {}]
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert lessons.forget() == 0
    assert lessons.learn("painter", "a boat") and lessons.known() == {"painter": ("a boat",)}


def test_a_file_that_is_a_link_is_not_followed(lessons: Lessons, tmp_path: Path) -> None:
    (tmp_path / "theirs.json").write_text('{"skills": {"painter": [{"text": "a boat", "at": ""}]}}')
    lessons.path.parent.mkdir(parents=True)
    lessons.path.symlink_to(tmp_path / "theirs.json")
    assert lessons.known() == {}
    with pytest.raises(KernelError):
        lessons.learn("painter", "a tree")
    lessons.forget()
    assert (tmp_path / "theirs.json").exists() and not lessons.path.is_symlink()
