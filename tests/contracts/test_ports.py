"""What other parts can rely on: one contract for each port, run against the kernel's implementation."""

from __future__ import annotations

import asyncio
import json
import re
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatch.orders import NOW, StillClock, order, stream
from navigator_kernel.adapters.clock import SystemClock, TimedIds
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.adapters.stores.run_log import RunLog
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.dispatch import InProcessDispatcher
from navigator_kernel.errors import ConsentNeeded, NotFound, Refused
from navigator_kernel.events import BODIES, VERSION, Event, Progress, RunContent, UnknownBody, event_from
from navigator_kernel.ports import Agent
from navigator_kernel.sandbox.consents import ConsentStore
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.values.job import Job
from navigator_kernel.values.packet import STATES, Meta, Report, packet_from, packet_from_yaml
from navigator_kernel.values.receipt import InstalledFile, Receipt, receipt_from
from navigator_kernel.values.route import Retrieval

ENVELOPE = ["v", "run", "turn", "step", "seq", "ts", "parent", "type", "data"]
DOCUMENTED = (
    "RunStarted RunContent RunCompleted RunError ToolCallStarted ToolCallCompleted UICommand SkillActivated".split()
)
OURS = [
    *"StepStarted StepCompleted ApprovalRequested ApprovalResolved".split(),
    *"ClarificationAsked Progress Usage RunCancelled ToolsLeftOut".split(),
]
FUNNEL = "SkillsOffered SkillsShortlisted SkillChosen SkillLoaded SkillUsed".split()


# packet


def test_a_packet_is_six_sections_in_the_order_of_document_002() -> None:
    assert list(order().to_dict()) == ["subagent_type", "task_spec", "params", "constraints", "return_spec", "context"]


def test_a_packet_survives_json_and_yaml() -> None:
    packet = order(text="x\u2028", validation={"type": "object"}, fields=["a"], language="zh")
    assert packet_from(json.loads(json.dumps(packet.to_dict()))) == packet == packet_from_yaml(packet.to_yaml())


# report


@pytest.mark.requirement("RET-1", "RET-5")
def test_a_report_is_state_agent_summary_data_and_meta() -> None:
    report = Report(state="success", summary="done", meta=Meta(agent="worker", time=0.5, ts=NOW))
    assert report.to_dict() == {
        "state": "success",
        "agent": "worker",
        "summary": "done",
        "data": {},
        "meta": {"agent": "worker", "time": 0.5, "ts": NOW},
        "recoverable": False,
    }


def test_effects_raw_and_cached_are_there_only_where_they_say_something() -> None:
    meta = Meta(agent="worker", time=0.5, ts=NOW, cached=True)
    full = Report(state="error", summary="x", meta=meta, raw="", effects=("a",)).to_dict()
    assert (full["raw"], full["effects"], full["meta"]["cached"]) == ("", ["a"], True)


# event envelope


def example(kind: type[Any]) -> Any:
    """A body with a value of the right shape in every field."""
    values: dict[str, Any] = {
        "str": "x",
        "int": 1,
        "float": 0.5,
        "bool": True,
        "float | None": 0.5,
        "tuple[str, ...]": ("a", "b"),
        "tuple[Mapping[str, Json], ...]": ({"name": "a", "parts": {"x": 1}},),
        "Mapping[str, Json]": {"a": [1, {"b": None}]},
    }
    return kind(**{name: values.get(kind.__annotations__[name], "toast") for name in kind.__struct_fields__})


def event(body: Any, **given: Any) -> Event:
    return Event(**{"run": "r", "turn": 0, "step": 1, "seq": 2, "ts": NOW, "parent": 1, "body": body, **given})


@pytest.mark.requirement("EVT-7")
@pytest.mark.parametrize("kind", BODIES.values(), ids=BODIES)
def test_an_event_has_exactly_the_keys_of_the_envelope(kind: type[Any]) -> None:
    assert list(event(example(kind)).to_dict()) == ENVELOPE


@pytest.mark.parametrize("kind", BODIES.values(), ids=BODIES)
def test_every_event_survives_json(kind: type[Any]) -> None:
    told = event(example(kind))
    assert event_from(json.loads(json.dumps(told.to_dict()))) == told


@pytest.mark.requirement("EVT-1")
def test_the_events_have_the_documented_names_and_ours() -> None:
    assert set(BODIES) == {*DOCUMENTED, *OURS, *FUNNEL, "RouteDecided"}


def test_an_event_of_a_type_that_nobody_knows_is_kept_whole() -> None:
    raw = {**event(Progress(text="x")).to_dict(), "type": "Tomorrow", "data": {"a": [1], "b": None}}
    read = event_from(raw)
    assert (read.type, read.body, read.to_dict()) == (
        "Tomorrow",
        UnknownBody(type="Tomorrow", data={"a": [1], "b": None}),
        raw,
    )


def test_an_event_of_a_newer_version_is_kept_whole() -> None:
    raw = {**event(Progress(text="x")).to_dict(), "v": VERSION + 1, "data": {"text": "x", "colour": "red"}}
    assert event_from(raw).to_dict() == raw


def test_the_version_of_the_envelope_is_1() -> None:
    assert event(Progress(text="x")).to_dict()["v"] == 1


# run log


def test_the_run_log_is_one_line_of_compact_json_an_event_in_a_file_named_by_the_run(tmp_path: Path) -> None:
    told = stream(tmp_path)(RunContent(text="你"))
    line = json.dumps(told.to_dict(), ensure_ascii=False, separators=(",", ":"))
    assert (tmp_path / "run-1.jsonl").read_text(encoding="utf-8") == line + "\n"


def test_a_line_of_the_run_log_is_this(tmp_path: Path) -> None:
    stream(tmp_path)(Progress(text="half", done=0.5), step=3, parent=0)
    assert (tmp_path / "run-1.jsonl").read_text() == (
        f'{{"v":1,"run":"run-1","turn":0,"step":3,"seq":0,"ts":"{NOW}","parent":0,'
        '"type":"Progress","data":{"text":"half","done":0.5}}\n'
    )


def test_seq_counts_from_0_without_a_gap(tmp_path: Path) -> None:
    emit = stream(tmp_path)
    assert [emit(RunContent(text="x")).seq for _ in range(4)] == [0, 1, 2, 3]


def test_the_run_log_reads_a_line_of_a_newer_kernel(tmp_path: Path) -> None:
    emit = stream(tmp_path)
    emit(RunContent(text="x"))
    raw = {**event(Progress(text="x")).to_dict(), "v": 9, "type": "Tomorrow", "extra": 1}
    with (tmp_path / "run-1.jsonl").open("a") as file:
        file.write(json.dumps(raw) + "\n")
    log = RunLog(tmp_path, FolderWriter([tmp_path]))
    assert [read.type for read in log.read("run-1")] == ["RunContent", "Tomorrow"]


# clock and ids


def test_the_clock_says_iso_8601_in_utc_to_the_millisecond() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", SystemClock().now())


def test_the_monotonic_clock_never_goes_back() -> None:
    clock = SystemClock()
    seen = [clock.monotonic() for _ in range(1_000)]
    assert seen == sorted(seen)


def test_ids_are_new_and_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = count()
    monkeypatch.setattr("os.urandom", lambda length: next(drawn).to_bytes(length))
    made = [TimedIds(StillClock()).new() for _ in range(200)]
    assert len(set(made)) == len(made)
    assert all(re.fullmatch(r"[a-z0-9-]{1,80}", name) for name in made)


def test_ids_sort_by_time() -> None:
    class Ticking(StillClock):
        ticks = 0

        def now(self) -> str:
            self.ticks += 1
            return f"2026-01-31T09:30:{self.ticks:02d}.000Z"

    ids = TimedIds(Ticking())
    made = [ids.new() for _ in range(20)]
    assert made == sorted(made)


# writer


def test_the_writer_replaces_a_file_as_a_whole(tmp_path: Path) -> None:
    writer = FolderWriter([tmp_path])
    for data in (b"one", b"two"):
        writer.write(tmp_path / "a" / "b.txt", data, mode=0o600)
    assert (tmp_path / "a" / "b.txt").read_bytes() == b"two"
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b.txt"]
    assert (tmp_path / "a" / "b.txt").stat().st_mode & 0o777 == 0o600


def test_the_writer_appends_moves_and_removes(tmp_path: Path) -> None:
    writer = FolderWriter([tmp_path])
    writer.append(tmp_path / "log", b"1\n")
    writer.append(tmp_path / "log", b"2\n")
    writer.move(tmp_path / "log", tmp_path / "old")
    assert (tmp_path / "old").read_bytes() == b"1\n2\n"
    writer.remove(tmp_path / "old")
    writer.remove(tmp_path / "old")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", ["../out", "../../etc/x", "box/../../out", "link/out"])
def test_the_writer_refuses_what_is_outside(tmp_path: Path, path: str) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (box / "link").symlink_to(tmp_path)
    with pytest.raises(Refused):
        FolderWriter([box]).write(box / path, b"x")
    assert not (tmp_path / "out").exists()


# receipts


RECEIPTS = st.builds(
    Receipt,
    name=st.text(max_size=8),
    source=st.text(max_size=8),
    ref=st.text(max_size=8),
    commit=st.text("0123456789abcdef", max_size=40),
    subpath=st.text(max_size=8),
    tree=st.text("0123456789abcdef", max_size=40),
    files=st.lists(
        st.builds(
            InstalledFile,
            path=st.text(max_size=8),
            sha256=st.text("0123456789abcdef", max_size=64),
            mode=st.sampled_from([0o644, 0o755]),
            size=st.integers(0, 2**40),
        ),
        max_size=3,
    ).map(tuple),
    digest=st.text(max_size=8),
    verdict=st.sampled_from(["ok", "warn", "block", "not_scanned"]),
    installed_at=st.just(NOW),
)


@settings(max_examples=100)
@given(RECEIPTS)
def test_a_receipt_survives_json(receipt: Receipt) -> None:
    assert receipt_from(json.loads(json.dumps(receipt.to_dict()))) == receipt


@pytest.mark.parametrize("key", ["name", "commit", "files", "digest", "v"])
def test_a_receipt_without_a_required_key_is_rejected(key: str) -> None:
    whole = receipt_from(
        {
            **dict.fromkeys("name source ref commit subpath tree digest installed_at".split(), "x"),
            "verdict": "ok",
            "files": [],
            "v": 1,
        }
    )
    with pytest.raises(KeyError, match=key):
        receipt_from({name: value for name, value in whole.to_dict().items() if name != key})


# sandbox


def job(folder: Path, **given: Any) -> Job:
    base: dict[str, Any] = {"actor": "script", "subject": "s", "digest": "sha256:1", "run": "run-1"}
    base |= {"argv": ("sh", "-c", "echo ran > ran; echo ok; exit 3"), "cwd": folder, "timeout": 10}
    return Job(**{**base, **given})


def gate(folder: Path) -> ConsentGate:
    return ConsentGate(ConsentStore(folder / "trust.json", FolderWriter([folder]), SystemClock()), ProcessRunner())


def test_the_sandbox_runs_a_shipped_job_and_returns_its_outcome(tmp_path: Path) -> None:
    outcome = asyncio.run(gate(tmp_path).run(job(tmp_path, shipped=True)))
    assert (outcome.exit_code, outcome.stdout, outcome.timed_out) == (3, b"ok\n", False)


def test_the_sandbox_starts_nothing_without_consent_and_names_what_to_agree_to(tmp_path: Path) -> None:
    with pytest.raises(ConsentNeeded) as caught:
        asyncio.run(gate(tmp_path).run(job(tmp_path)))
    assert caught.value.data["subject"] == "script:s@sha256:1"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("other", [{"digest": "sha256:2"}, {"subject": "t"}, {"actor": "shell"}])
def test_consent_is_to_one_actor_subject_and_digest(tmp_path: Path, other: dict[str, Any]) -> None:
    held = gate(tmp_path)
    held.consents.trust("script:s@sha256:1", note="test")
    with pytest.raises(ConsentNeeded):
        asyncio.run(held.run(job(tmp_path, **other)))


# dispatcher


class Echo:
    name, aliases, description = "echo", (), "Repeats"

    async def handle(self, prompt: str) -> object:
        return {"state": "success", "data": {"target": packet_from_yaml(prompt).task_spec.target}}


def test_an_object_with_name_aliases_description_and_handle_is_an_agent() -> None:
    assert isinstance(Echo(), Agent)


def test_the_dispatcher_submits_a_packet_has_a_heartbeat_and_returns_one_report() -> None:
    async def done() -> tuple[str, Report, float, list[Event]]:
        held = InProcessDispatcher({"echo": Echo()}, SystemClock())
        task = await held.submit(order("echo", "t", key="k"))
        events = [told async for told in held.events(task)]
        report = await held.result(task)
        return task, report, held.heartbeat(task), events

    task, report, pulse, events = asyncio.run(done())
    assert (task, report.state, report.data, pulse >= 0, events) == ("k", "success", {"target": "t"}, True, [])


def test_the_dispatcher_does_not_know_a_task_that_was_never_submitted() -> None:
    held = InProcessDispatcher({}, SystemClock())
    for ask in (held.result("x"), held.cancel("x")):
        with pytest.raises(NotFound):
            asyncio.run(ask)


# router


@pytest.fixture
def router(tmp_path: Path) -> Any:
    return Project(tmp_path, load_settings(tmp_path)).router


@pytest.mark.parametrize("text", ["", " ", "x", "你好", "\x00\ud800", "(((", "a" * 20_000, "AND OR NOT", 'name:"'])
def test_the_router_retrieves_for_any_text(router: Any, text: str) -> None:
    found = router.retrieve(text, 3)
    assert isinstance(found, Retrieval)
    assert found.band in {"route", "ambiguous", "direct"}
    assert len(found.candidates) <= 3


def test_the_router_gives_candidates_best_first_with_a_probability(router: Any) -> None:
    found = router.retrieve("review this code", 12).candidates
    assert [candidate.score for candidate in found] == sorted((c.score for c in found), reverse=True)
    assert all(0 <= candidate.confidence <= 1 for candidate in found)


@pytest.mark.parametrize("text", ["good morning", "早上好", "", "run", "执行"])
def test_the_router_recognises_nothing_in_small_talk_or_a_bare_verb(router: Any, text: str) -> None:
    assert router.recognise(text) is None


def test_the_states_are_settled() -> None:
    assert STATES == ("success", "error", "timeout", "partial", "pending")
