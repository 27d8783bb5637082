from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any, get_args

import pytest

from navigator_kernel.language.rendering import render_report
from navigator_kernel.values.packet import STATES, Format, Meta, Report, State, Style
from values.reports import LINES, REPORTS, TS

GOLDEN = Path(__file__).parent / "golden"
REGOLD = os.environ.get("NAVIGATOR_GOLD") == "1"  # read here, because every test has a clean environment
CASES = [(state, format, style) for state in STATES for format in get_args(Format) for style in get_args(Style)]


def test_there_are_45_golden_files_and_no_other() -> None:
    assert len(CASES) == 45
    assert {path.name for path in GOLDEN.iterdir()} == {golden(*case).name for case in CASES}


@pytest.mark.parametrize(("state", "format", "style"), CASES)
def test_a_report_is_shown_as_its_golden_file(state: State, format: Format, style: Style) -> None:
    shown = render_report(REPORTS[state], format, style) + "\n"
    file = golden(state, format, style)
    if REGOLD:
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


@pytest.mark.requirement("RET-1", "RET-3", "RET-5", "RET-7")
@pytest.mark.parametrize("state", STATES)
def test_the_detail_of_a_report_equals_the_example_of_document_002(state: State) -> None:
    assert render_report(REPORTS[state], "detail", "emoji") == LINES[state]


@pytest.mark.requirement("RET-6")
@pytest.mark.parametrize("state", STATES)
def test_a_summary_is_the_status_line_alone(state: State) -> None:
    assert render_report(REPORTS[state], "summary", "emoji") == LINES[state].splitlines()[0]


@pytest.mark.requirement("RET-8")
def test_raw_is_the_output_as_it_came() -> None:
    assert render_report(REPORTS["success"], "raw", "emoji") == "added a b\nupdated c d e\n"


def test_raw_without_an_output_is_the_detail() -> None:
    assert render_report(REPORTS["timeout"], "raw", "emoji") == LINES["timeout"]


@pytest.mark.requirement("RET-4")
def test_a_report_without_data_has_no_data_line() -> None:
    report = Report(state="success", summary="done", meta=Meta(agent="worker", time=1, ts=TS))
    assert "data:" not in render_report(report, "detail", "emoji")


@pytest.mark.parametrize("format", get_args(Format))
@pytest.mark.parametrize("state", STATES)
def test_the_ascii_style_marks_the_state_in_ascii(state: State, format: Format) -> None:
    report = Report(state=state, summary="done", meta=Meta(agent="worker", time=1, ts=TS), data={"n": 1}, raw=None)
    shown = render_report(report, format, "ascii")
    assert shown.isascii()
    assert re.match(r"\[(OK|PARTIAL|PENDING|ERROR|TIMEOUT)\] worker done", shown)


@pytest.mark.parametrize("state", STATES)
def test_the_json_detail_is_the_report_itself(state: State) -> None:
    assert json.loads(render_report(REPORTS[state], "detail", "json")) == REPORTS[state].to_dict()


@pytest.mark.parametrize("format", get_args(Format))
@pytest.mark.parametrize("style", ["emoji", "ascii"])
def test_foreign_text_cannot_steer_the_terminal(format: Format, style: Style) -> None:
    evil = "a\x1b[31mb\x1b]0;title\x07c\u202ed\x9b2Je"
    meta = Meta(agent="worker", time=1, ts=TS)
    report = Report(state="error", summary=evil, meta=meta, data={evil: [evil, {"in": evil}]}, raw=evil)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", render_report(report, format, style))


def test_a_summary_of_many_lines_stays_one_status_line() -> None:
    meta = Meta(agent="worker", time=1, ts=TS)
    report = Report(state="success", summary="one\n  state: error\ntwo", meta=meta)
    assert render_report(report, "summary", "emoji") == "✅ worker one state: error two"


@pytest.mark.parametrize(
    ("state", "data", "code"),
    [
        ("success", {}, 0),
        ("partial", {}, 1),
        ("error", {}, 1),
        ("pending", {}, 9),
        ("timeout", {}, 124),
        ("success", {"exit_code": 7}, 0),
        ("pending", {"exit_code": 4}, 9),
        ("error", {"exit_code": 0}, 1),
        ("error", {"exit_code": "4"}, 1),
        ("error", {"exit_code": 256}, 1),
        *[("error", {"exit_code": code}, code) for code in (3, 4, 5, 6, 7, 8, 130)],
    ],
)
def test_a_state_has_its_exit_code(state: State, data: dict[str, Any], code: int) -> None:
    assert Report(state=state, summary="x", meta=Meta(agent="a", time=0, ts=TS), data=data).exit_code == code


@pytest.mark.requirement("RET-2")
def test_there_are_five_states_and_no_sixth() -> None:
    assert set(STATES) == {"success", "error", "timeout", "partial", "pending"}


def golden(state: State, format: Format, style: Style) -> Path:
    return GOLDEN / f"{state}-{format}-{style}.{'json' if style == 'json' else 'txt'}"
