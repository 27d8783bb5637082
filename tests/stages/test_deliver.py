from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatch.orders import NOW, StillClock, order, stream
from navigator_kernel.dispatch import InProcessDispatcher
from navigator_kernel.errors import NotFound, NotLoadable, Refused, TimedOut
from navigator_kernel.events import Event
from navigator_kernel.turn.deliver import OFFLOAD_AT, DispatchDeps, checked, deliver
from navigator_kernel.values.packet import Meta, OnError, Packet, Report, ReturnSpec, State, packet_from_yaml
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from tables import cases


@dataclass(kw_only=True)
class Actor:
    """An agent whose answer depends on the target; it keeps the targets that it receives."""

    answers: Mapping[str, object]
    name: str = "skills"
    aliases: Sequence[str] = ()
    description: str = "for a test"
    seen: list[str] = field(default_factory=list)

    async def handle(self, prompt: str) -> object:
        target = packet_from_yaml(prompt).task_spec.target
        self.seen.append(target)
        answer = self.answers[target]
        if isinstance(answer, BaseException):
            raise answer
        return answer


@dataclass(kw_only=True)
class Done:
    reports: tuple[Report, ...]
    seen: list[str]
    events: list[Event]
    folder: Path


def done(folder: Path, steps: Sequence[Sequence[Packet]], answers: Mapping[str, object]) -> Done:
    """Carries out steps, each a list of candidates, and returns the result."""
    agent, events = Actor(answers=answers), list[Event]()
    emit = stream(folder / "log")
    emit.listeners = (events.append,)

    def offload(packet: Packet, text: str) -> str:
        (folder / f"step-{packet.context.step}.json").write_text(text, encoding="utf-8")
        return f"step-{packet.context.step}.json"

    delivery = DispatchDeps(
        dispatcher=InProcessDispatcher({"skills": agent}, StillClock()),
        clock=StillClock(),
        offload=offload,
        describe=lambda name: ("A", f"sha256:{name}"),
    )
    plan = DispatchPlan(steps=tuple(DispatchStep(packets=tuple(packets)) for packets in steps))
    return Done(reports=asyncio.run(deliver(plan, delivery, emit)), seen=agent.seen, events=events, folder=folder)


def one(folder: Path, answer: object, **given: Any) -> Report:
    return done(folder, [[order(target="skill:a", **given)]], {"skill:a": answer}).reports[0]


def candidates(folder: Path, *answers: object) -> Done:
    """Carries out one step with a candidate for each answer, called `skill:a`, `skill:b` …"""
    names = [f"skill:{letter}" for letter in "abcdef"[: len(answers)]]
    return done(folder, [[order(target=name) for name in names]], dict(zip(names, answers, strict=True)))


OK = {"state": "success", "summary": "fine", "data": {"n": 1}}
BAD = {"state": "error", "summary": "broke", "data": {"type": "X", "msg": "broke"}}
AGAIN = {**BAD, "recoverable": True}


# one after another


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (BAD, "error"),
        ({"state": "timeout"}, "timeout"),
        ({"state": "pending"}, "pending"),
        (RuntimeError("x"), "error"),
        ("garbage", "error"),
    ],
)
def test_a_step_that_did_not_succeed_is_the_last(tmp_path: Path, answer: object, state: State) -> None:
    packets = [[order(target=name, step=n)] for n, name in enumerate(["skill:a", "skill:b"])]
    found = done(tmp_path, packets, {"skill:a": answer, "skill:b": OK})
    assert (found.seen, [report.state for report in found.reports]) == (["skill:a"], [state])


def test_a_partial_step_lets_the_next_one_run(tmp_path: Path) -> None:
    packets = [[order(target=name, step=n)] for n, name in enumerate(["skill:a", "skill:b"])]
    assert len(done(tmp_path, packets, {"skill:a": {"state": "partial"}, "skill:b": OK}).reports) == 2


# candidates


@pytest.mark.requirement("CAN-2", "CAN-8")
def test_a_candidate_that_is_not_there_gives_way_to_the_next(tmp_path: Path) -> None:
    found = candidates(tmp_path, NotFound("gone"), OK)
    assert (found.seen, found.reports[0].state) == (["skill:a", "skill:b"], "success")


@pytest.mark.requirement("CAN-3")
def test_a_candidate_that_cannot_be_loaded_gives_way_to_the_next(tmp_path: Path) -> None:
    found = candidates(tmp_path, NotLoadable("broken"), OK)
    assert (found.seen, found.reports[0].state) == (["skill:a", "skill:b"], "success")


@pytest.mark.requirement("CAN-4")
def test_a_failure_that_is_recoverable_gives_way_to_the_next(tmp_path: Path) -> None:
    found = candidates(tmp_path, AGAIN, OK)
    assert (found.seen, found.reports[0].state) == (["skill:a", "skill:b"], "success")


@pytest.mark.parametrize(
    "answer",
    [
        BAD,
        {**AGAIN, "effects": ["a.txt"]},
        RuntimeError("x"),
        Refused("no"),
        TimedOut("late"),
        {"state": "pending", "recoverable": True},
        {"state": "partial", "recoverable": True},
        "garbage",
    ],
    ids=["plain", "with effects", "crash", "refused", "timeout", "pending", "partial", "garbage"],
)
def test_a_failure_that_may_have_changed_something_stops_there(tmp_path: Path, answer: object) -> None:
    assert candidates(tmp_path, answer, OK).seen == ["skill:a"]


@pytest.mark.requirement("CAN-5")
def test_no_candidate_at_all_is_an_error_that_says_so(tmp_path: Path) -> None:
    report = done(tmp_path, [[]], {}).reports[0]
    assert (report.state, report.summary, report.data["type"]) == (
        "error",
        "the intent names no candidate",
        "NoCandidate",
    )


@pytest.mark.requirement("CAN-6")
def test_when_all_fail_the_error_has_the_type_what_was_tried_and_the_reason(tmp_path: Path) -> None:
    report = candidates(tmp_path, NotFound("gone"), AGAIN, NotLoadable("broken")).reports[0]
    assert (report.state, report.data["type"], report.data["resource_type"]) == ("error", "CandidatesFailed", "skill")
    assert report.data["tried"] == ["skill:a", "skill:b", "skill:c"]
    assert report.data["reason"] == "NotLoadable: broken"
    assert "skill:a, skill:b, skill:c" in report.summary


# the success criterion and the fields


@cases("rule, met", lists=True)
def test_a_success_criterion_has_effect(rule: str | dict[str, Any], met: bool) -> None:
    data = {"n": 1, "files": ["out/a.md", "mybox/workspace/run-1/c.md"], "word": "三"}
    report = Report(state="success", summary="fine", meta=Meta(agent="a", time=0, ts=NOW), data=data)
    assert checked(order(validation=rule), report).state == ("success" if met else "error")


def test_an_unmet_criterion_keeps_the_data_and_names_the_rule(tmp_path: Path) -> None:
    report = one(tmp_path, OK, validation="contains:gold")
    assert (report.state, report.data["n"], report.data["type"]) == ("error", 1, "ValidationUnmet")
    assert "contains:gold" in report.summary


def test_a_path_matches_as_a_whole_and_not_by_its_ending() -> None:
    meta = Meta(agent="a", time=0, ts=NOW)
    report = Report(state="success", summary="fine", meta=meta, data={"files": ["not-a.md"]})
    assert checked(order(validation="file_exists:a.md"), report).state == "error"


def test_a_boolean_is_not_an_integer() -> None:
    report = Report(state="success", summary="fine", meta=Meta(agent="a", time=0, ts=NOW), data={"n": True})
    assert checked(order(validation={"properties": {"n": {"type": "integer"}}}), report).state == "error"


@pytest.mark.requirement("PKT-5")
def test_a_field_that_is_missing_makes_the_report_partial_and_is_named(tmp_path: Path) -> None:
    report = one(tmp_path, OK, fields=["n", "m", "k"])
    assert (report.state, report.data["missing_fields"], report.data["n"]) == ("partial", ["m", "k"], 1)


@pytest.mark.parametrize("state", ["error", "timeout", "pending"])
def test_an_unsuccessful_report_is_not_validated(tmp_path: Path, state: State) -> None:
    report = one(tmp_path, {"state": state, "data": {"n": 1}}, validation="contains:gold", fields=["m"])
    assert (report.state, report.data) == (state, {"n": 1})


# output that is too long for a report


def size(report: Report) -> int:
    return len(json.dumps(report.to_dict(), ensure_ascii=False))


@pytest.mark.parametrize(
    "answer",
    [
        {"state": "success", "data": {"text": "中" * 40_000, "n": 1}},
        {"state": "success", "data": {"n": 1}, "raw": "x" * 60_000},
        {"state": "error", "data": {"n": 1, "rows": [{"row": n} for n in range(5_000)]}},
        {"state": "success", "data": {"n": 1, **{f"key-{n}": "x" * 100 for n in range(2_000)}}},
    ],
    ids=["text", "raw", "rows", "many keys"],
)
def test_long_output_goes_to_a_file_that_the_report_names(tmp_path: Path, answer: Any) -> None:
    report = one(tmp_path, answer)
    assert (report.state, report.data["n"], report.data["offloaded"]) == (answer["state"], 1, "step-1.json")
    kept = json.loads((tmp_path / "step-1.json").read_text(encoding="utf-8"))
    assert kept == {"data": answer["data"], "raw": answer.get("raw")}
    assert size(report) <= OFFLOAD_AT


LONG_FAILURE = {
    "state": "error",
    "summary": "it broke",
    "data": {"type": "ExitCode", "status": 3, "msg": "line\n" * 40, "items": [1, 2]},
    "raw": "everything that was printed",
}


def failed(folder: Path, on_error: OnError) -> Done:
    packet = replace(order(target="skill:a"), return_spec=ReturnSpec(on_error=on_error))
    return done(folder, [[packet]], {"skill:a": LONG_FAILURE})


@pytest.mark.requirement("PKT-5")
@pytest.mark.parametrize("on_error", ["propagate", "fix"])
def test_a_failure_is_as_it_came_where_it_is_to_be_propagated_or_no_model_can_fix_it(
    tmp_path: Path, on_error: OnError
) -> None:
    report = failed(tmp_path, on_error).reports[0]
    assert (report.data, report.raw) == (LONG_FAILURE["data"], LONG_FAILURE["raw"])


@pytest.mark.parametrize(
    ("msg", "summary"),
    [
        ("Traceback\n  File\nthere is no .png file in the project\n", "it broke: there is no .png file in the project"),
        ("\x1b[31mno luck\x1b[0m\n----\n}\n", "it broke: no luck"),
        ("word " * 60, f"it broke: {('word ' * 60)[:199]}…"),
        ("", "it broke"),
    ],
)
def test_the_summary_of_a_failed_program_ends_with_the_last_line_that_it_wrote(
    tmp_path: Path, msg: str, summary: str
) -> None:
    packet = order(target="skill:a")
    found = {"state": "error", "summary": "it broke", "data": {"type": "ExitCode", "msg": msg}}
    assert done(tmp_path, [[packet]], {"skill:a": found}).reports[0].summary == summary


@pytest.mark.requirement("PKT-5")
def test_a_failure_that_is_to_be_summarised_is_one_line_and_the_rest_is_in_a_file(tmp_path: Path) -> None:
    report = failed(tmp_path, "summarize").reports[0]
    assert (report.state, report.summary, report.raw) == ("error", "it broke: line", None)
    assert report.data == {"type": "ExitCode", "status": 3, "offloaded": "step-1.json"}
    whole = json.loads((tmp_path / "step-1.json").read_text("utf-8"))
    assert whole == {"data": LONG_FAILURE["data"], "raw": LONG_FAILURE["raw"]}


def test_a_success_is_never_summarised_away(tmp_path: Path) -> None:
    packet = replace(order(target="skill:a"), return_spec=ReturnSpec(on_error="summarize"))
    report = done(tmp_path, [[packet]], {"skill:a": {"state": "success", "summary": "ok", "data": {"n": 1}}}).reports[0]
    assert report.data == {"n": 1}
