"""The events of a run as pages get them: in pieces of a limited size, with each frame built once."""

from __future__ import annotations

from navigator_kernel.events import Body, Event, RunContent, RunStarted, SkillActivated, StepStarted
from navigator_kernel.gateway.streams.page_events import PIECE, Frames

TIME = "2026-01-31T09:30:00.123Z"


def event(seq: int, body: Body) -> Event:
    return Event(run="r", turn=0, step=None, seq=seq, ts=TIME, parent=None, body=body)


def started(language: str) -> Event:
    return event(0, RunStarted(session="t1.s", message="hello", language=language))


def test_all_that_is_there_is_one_piece() -> None:
    said = [started("en"), *(event(number, RunContent(text=f"{number}")) for number in range(1, 20))]
    (piece,) = Frames("s", "page").pieces(said)
    assert piece.count(b"\n\n") == 20
    assert [f"id: r:{number}\n".encode() in piece for number in range(20)] == [True] * 20


def test_a_long_history_is_cut_into_pieces_between_two_events() -> None:
    said = [event(number, RunContent(text="a" * 1_000)) for number in range(200)]
    pieces = list(Frames("s", "page").pieces(said))
    assert len(pieces) == 4 and max(map(len, pieces)) < PIECE + 2_000
    assert all(piece.startswith(b"id: ") and piece.endswith(b"\n\n") for piece in pieces)
    assert b"".join(pieces).count(b"\n\n") == 200


def test_only_events_behind_the_position_are_sent() -> None:
    said = [event(number, RunContent(text=f"{number}")) for number in range(5)]
    assert list(Frames("s", "page").pieces(said, 3)) == list(Frames("s", "page").pieces(said[4:]))
    assert list(Frames("s", "page").pieces(said, 4)) == []


def test_an_event_that_pages_are_not_sent_makes_no_piece() -> None:
    step = event(1, StepStarted(agent="skills", packet={}))
    assert list(Frames("s", "page").pieces([step])) == []
    (piece,) = Frames("s", "all").pieces([step])
    assert b"event: StepStarted" in piece


def test_a_client_that_comes_back_reads_on_in_the_run_s_language() -> None:
    loading = event(1, SkillActivated(skill="song-writer", agent="skills"))
    frames = Frames("s", "page")
    (piece,) = frames.pieces([started("zh"), loading], 0)
    assert "正在加载 song-writer 模块…" in piece.decode()
    assert list(frames.pieces([loading])) == [piece]


def test_a_frame_is_made_once_for_all_readers() -> None:
    frames, said = Frames("s", "page"), [event(1, RunContent(text="x"))]
    first = next(frames.pieces(said))
    assert next(frames.pieces([event(1, RunContent(text="another"))])) == first
