from __future__ import annotations

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dispatch.hostile import DATA, HOSTILE, LINES, NEARLY, VALID, YAML_BOMB, Raises, bomb, cyclic, json_text, nearly
from navigator_kernel.dispatch import failure, report_from
from navigator_kernel.errors import ConsentNeeded, InputNeeded, KernelError, NotFound, TimedOut
from navigator_kernel.language.rendering import render_report
from navigator_kernel.values.packet import STATES, Meta, Report, State, Style
from values.reports import LINES as EXAMPLES
from values.reports import REPORTS

MEASURED = Meta(agent="worker", time=0.25, ts="2026-01-31T09:30:00.000Z")
many = settings(max_examples=2_000, suppress_health_check=list(HealthCheck))


def taken(answer: object) -> Report:
    """The report of an answer, after a check that it can be sent."""
    report = report_from(answer, MEASURED)
    assert report.state in STATES
    assert isinstance(report.summary, str)
    assert report.summary
    assert report.agent == "worker"
    json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False).encode("utf-8")
    return report


# 10,000 answers in five kinds


@pytest.mark.ci
@many
@given(VALID)
def test_a_valid_report_keeps_its_state_and_data(answer: dict[str, Any]) -> None:
    report = taken(answer)
    assert (report.state, report.data) == (answer["state"], answer["data"])


@pytest.mark.ci
@many
@given(VALID)
def test_a_valid_report_as_json_text_keeps_its_state_and_data(answer: dict[str, Any]) -> None:
    report = taken(json_text(answer))
    assert (report.state, report.data) == (answer["state"], answer["data"])


@pytest.mark.ci
@many
@given(st.sampled_from(STATES), LINES, DATA, st.sampled_from(["emoji", "ascii"]))
def test_a_valid_report_in_the_layout_of_document_002_keeps_its_state_and_data(
    state: State, summary: str, data: dict[str, Any], style: Style
) -> None:
    given_ = Report(state=state, summary=summary, meta=MEASURED, data=data)
    report = taken(render_report(given_, "detail", style))
    assert (report.state, report.data) == (state, data)


@pytest.mark.ci
@many
@given(NEARLY)
def test_a_report_with_one_thing_wrong_keeps_its_state(case: tuple[dict[str, Any], str]) -> None:
    answer, change = case
    report = taken(nearly(answer, change))
    assert report.state == answer["state"]
    if "data" not in change:
        assert report.data == answer["data"]


@pytest.mark.ci
@many
@given(HOSTILE)
def test_any_answer_becomes_a_valid_report(answer: object) -> None:
    taken(answer)


# one by one


@pytest.mark.requirement("RET-1", "RET-2", "RET-5")
@pytest.mark.parametrize("state", STATES)
def test_the_examples_of_document_002_are_read_whole(state: State) -> None:
    report, meant = taken(EXAMPLES[state]), REPORTS[state]
    assert (report.state, report.summary, report.data) == (meant.state, meant.summary, meant.data)
    assert (report.meta.time, report.meta.ts) == (meant.meta.time, meant.meta.ts)


def test_an_agent_cannot_say_that_it_is_another() -> None:
    assert taken({"state": "success", "meta": {"agent": "kernel"}}).agent == "worker"


def test_an_invalid_time_is_replaced_by_the_measured_one() -> None:
    assert taken({"state": "success", "meta": {"time": -1, "ts": "now"}}).meta == MEASURED


@pytest.mark.parametrize("answer", [None, "", " \n"])
def test_silence_is_an_error(answer: object) -> None:
    report = taken(answer)
    assert (report.state, report.data["type"]) == ("error", "Silence")


def test_prose_is_an_error_that_keeps_the_prose() -> None:
    report = taken("I did it, trust me")
    assert (report.state, report.data["type"], report.raw) == ("error", "InvalidReport", "I did it, trust me")


def test_an_unknown_state_is_an_error_that_keeps_the_data() -> None:
    report = taken({"state": "interrupted", "data": {"n": 1}})
    assert (report.state, report.data["n"], report.data["reported_state"]) == ("error", 1, "interrupted")


def test_an_ampersand_or_star_in_text_costs_no_data() -> None:
    data = {"title": "Tom &Jerry", "note": "*bold*, [*x]"}
    text = render_report(Report(state="success", summary="ok", meta=MEASURED, data=data), "detail", "emoji")
    assert taken(text).data == data


@pytest.mark.parametrize("key", ["yes", "No", "on", "null", "true"])
def test_a_key_that_yaml_takes_for_a_value_stays_a_key(key: str) -> None:
    text = render_report(Report(state="success", summary="ok", meta=MEASURED, data={key: 1}), "detail", "emoji")
    assert taken(text).data == {key: 1}


def test_a_yaml_bomb_does_not_go_off() -> None:
    began = time.process_time()
    report = taken(YAML_BOMB)
    assert (report.state, time.process_time() - began < 5) == ("success", True)


@pytest.mark.parametrize("data", [cyclic(1), cyclic(2), bomb(12, 10), {"a": cyclic(5)}], ids=["1", "2", "shared", "in"])
def test_data_that_contains_itself_ends(data: Any) -> None:
    began = time.process_time()
    assert taken({"state": "partial", "data": data}).state == "partial"
    assert time.process_time() - began < 5


def test_a_shared_text_is_not_copied_without_end() -> None:
    report = taken({"state": "success", "data": {"a": ["x" * 1_000_000] * 1_000}})
    assert len(json.dumps(report.to_dict())) < 10_000_000


@pytest.mark.parametrize(
    "answer", ["x" * 1_000_000, b"x" * 1_000_000, "state: error\n" + "- x\n" * 250_000, " " * 1_000_000 + "x"]
)
def test_a_megabyte_of_anything_is_read_in_seconds(answer: object) -> None:
    began = time.process_time()
    taken(answer)
    assert time.process_time() - began < 5


def test_a_megabyte_of_open_brackets_does_not_end_the_process() -> None:
    code = (
        "from navigator_kernel.dispatch import report_from\n"
        "from navigator_kernel.values.packet import Meta\n"
        "meta = Meta(agent='a', time=0, ts='t')\n"
        "print(report_from('state: partial\\ndata: ' + '[' * 400_000 + ']' * 400_000, meta).state)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": "kernel"}, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "partial\n")


# exceptions


@pytest.mark.requirement("RET-10")
def test_an_exception_is_an_error_with_its_type_and_message() -> None:
    report = failure(RuntimeError("脚本执行失败"), MEASURED)
    assert render_report(report, "summary", "emoji") == "❌ worker RuntimeError: 脚本执行失败"
    assert report.data == {"type": "RuntimeError", "msg": "脚本执行失败"}


def every_error(kind: type[KernelError] = KernelError) -> list[type[KernelError]]:
    return [kind, *(found for below in kind.__subclasses__() for found in every_error(below))]


@pytest.mark.parametrize(
    "kind", [kind for kind in every_error() if not issubclass(kind, ConsentNeeded | InputNeeded | TimedOut)]
)
def test_an_error_of_the_kernel_keeps_its_exit_code(kind: type[KernelError]) -> None:
    report = failure(kind("no", hint="do", n=1), MEASURED)
    assert (report.state, report.exit_code, report.data["code"], report.data["n"]) == (
        "error",
        kind.exit_code,
        kind.code,
        1,
    )
    assert report.recoverable is kind.recoverable


@pytest.mark.requirement("RTE-29")
def test_a_question_from_a_server_is_pending_and_names_its_required_fields() -> None:
    report = failure(InputNeeded("Your name?", question="Your name?", required=["name"], key="k"), MEASURED)
    assert (report.state, report.exit_code, report.summary, report.subject) == ("pending", 9, "Your name?", "")
    assert (report.data["reason"], report.data["required"], report.data["key"]) == ("input", ["name"], "k")


def test_a_time_limit_of_the_kernel_is_the_state_timeout() -> None:
    report = failure(TimedOut("too long"), MEASURED)
    assert (report.state, report.exit_code) == ("timeout", 124)


@pytest.mark.requirement("RET-9")
def test_a_missing_consent_is_pending_and_names_what_is_required() -> None:
    report = failure(ConsentNeeded("run x", subject="type_a:x@sha256:0"), MEASURED)
    assert (report.state, report.exit_code, report.data["subject"]) == ("pending", 9, "type_a:x@sha256:0")
    assert (report.data["required"], report.data["optional"], report.data["reason"]) == (["consent"], [], "consent")


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError("\ud800"),
        ConsentNeeded("\ud800 \x1b[31m"),
        NotFound("\udfff", hint="\ud800", fact={"x": "\ud800"}),
        NotFound("x", fact=Raises(ValueError("no"))),
        KeyError("\ud800"),
        RuntimeError(Raises(ValueError("no"))),
        NotFound("x", facts=cyclic(2)),
    ],
    ids=range(7),
)
def test_the_report_of_any_exception_can_be_sent(error: BaseException) -> None:
    json.dumps(failure(error, MEASURED).to_dict(), ensure_ascii=False, allow_nan=False).encode("utf-8")
