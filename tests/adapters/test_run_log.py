from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from dispatch.orders import stream
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.stores.run_log import RunLog
from navigator_kernel.errors import Damaged, NotFound
from navigator_kernel.events import Event, Progress, RunCompleted, RunContent, RunStarted

NUMBERS = count()


def log_in(folder: Path) -> RunLog:
    return RunLog(folder, FolderWriter([folder]))


def test_emitted_events_are_read_back_in_order(tmp_path: Path) -> None:
    emit = stream(tmp_path)
    told = [emit(RunStarted(session="s", message="你好\u2028😀", language="zh"))]
    told += [emit(Progress(text=str(n)), step=1, parent=0) for n in range(5)]
    assert list(log_in(tmp_path).read("run-1")) == told


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=100)
@given(text=st.text(st.characters(codec="utf-8")))
def test_any_text_survives_the_log(tmp_path: Path, text: str) -> None:
    run = f"run-{next(NUMBERS)}"
    event = stream(tmp_path, run)(RunContent(text=text))
    assert log_in(tmp_path).read(run) == [event]


def test_a_lone_surrogate_costs_no_event(tmp_path: Path) -> None:
    stream(tmp_path)(RunContent(text="a\ud800b"))
    assert len(log_in(tmp_path).read("run-1")) == 1


def test_each_event_is_one_line_of_json(tmp_path: Path) -> None:
    emit = stream(tmp_path)
    emit(RunContent(text="one\ntwo\r\x85"))
    emit(RunCompleted(state="success", summary="x"))
    lines = (tmp_path / "run-1.jsonl").read_bytes().split(b"\n")
    assert [json.loads(line)["seq"] for line in lines[:-1]] == [0, 1]


def test_an_event_is_in_the_log_before_a_listener_hears_of_it(tmp_path: Path) -> None:
    emit, seen = stream(tmp_path), list[int]()

    def listens(event: Event) -> None:
        seen.append(len(log_in(tmp_path).read(event.run)))

    emit.listeners = (listens,)
    emit(RunContent(text="a"))
    emit(RunContent(text="b"))
    assert seen == [1, 2]


def test_an_open_log_is_as_readable_as_a_closed_one(tmp_path: Path) -> None:
    event = stream(tmp_path, "run-2")(RunContent(text="a"))
    log = log_in(tmp_path)
    with log.opened("run-1") as opened:
        events = [replace(event, run="run-1", seq=number) for number in range(2)]
        for at, each in enumerate(events, 1):
            opened.append(each)
            assert list(log.read("run-1")) == events[:at]


def test_a_last_line_that_a_crash_cut_off_is_left_out(tmp_path: Path) -> None:
    event = stream(tmp_path)(RunContent(text="a"))
    with (tmp_path / "run-1.jsonl").open("a") as file:
        file.write('{"v":1,"run":"run-1","tu')
    assert log_in(tmp_path).read("run-1") == [event]


@pytest.mark.parametrize("line", ["no json\n", "[]\n", '{"v":1}\n', '{"v":1,"type":"RunContent","data":{"odd":1}}\n'])
def test_a_damaged_line_is_reported_and_the_file_left_alone(tmp_path: Path, line: str) -> None:
    file = tmp_path / "run-1.jsonl"
    file.write_text(line)
    with pytest.raises(Damaged, match="run-1"):
        log_in(tmp_path).read("run-1")
    assert file.read_text() == line


def test_a_log_that_is_not_utf_8_is_reported_as_damaged(tmp_path: Path) -> None:
    (tmp_path / "run-1.jsonl").write_bytes(b"\xff\n")
    with pytest.raises(Damaged):
        log_in(tmp_path).read("run-1")


@pytest.mark.parametrize("run", ["missing", "../run-1", "RUN", "", "a/b", "a" * 81])
def test_a_run_that_is_not_there_or_no_name_is_not_found(tmp_path: Path, run: str) -> None:
    with pytest.raises(NotFound):
        log_in(tmp_path).read(run)


def test_runs_are_listed_newest_first(tmp_path: Path) -> None:
    for run in ("20260101-1", "20260103-1", "20260102-1"):
        stream(tmp_path, run)(RunContent(text="a"))
    (tmp_path / "notes.txt").write_text("x")
    assert log_in(tmp_path).runs() == ["20260103-1", "20260102-1", "20260101-1"]


def test_a_missing_folder_has_no_runs(tmp_path: Path) -> None:
    assert list(log_in(tmp_path / "none").runs()) == []


@pytest.mark.requirement("SAF-8")
def test_only_the_person_can_read_a_log_or_look_into_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "logs" / "runs"
    stream(folder)(RunContent(text="a"))
    assert [path.stat().st_mode & 0o777 for path in (folder, folder / "run-1.jsonl")] == [0o700, 0o600]


def test_a_folder_that_an_earlier_version_made_for_everybody_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "runs"
    folder.mkdir(mode=0o755)
    stream(folder)(RunContent(text="a"))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_work_over_several_runs_began_in_the_first_of_them(tmp_path: Path) -> None:
    """A name that is none, as a foreign project's log may hold it, is not followed."""
    for run, before in (("a", ""), ("b", "a"), ("c", "b"), ("d", "gone"), ("e", "../a"), ("f", "f")):
        stream(tmp_path, run)(RunStarted(session="s", message="", language="en", continues=before))
    log = log_in(tmp_path)
    assert [log.began(run) for run in ("a", "b", "c", "d", "e", "f", "x", "")] == [
        "a",
        "a",
        "a",
        "gone",
        "e",
        "f",
        "x",
        "",
    ]
