"""The reply, its sections, and the session that follows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.language.wording import because_of, say, sentences
from navigator_kernel.turn.answers import resume
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.reply import TurnSummary, compose
from navigator_kernel.values.packet import Context, Meta, Packet, Params, Report, TaskSpec
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.reply import Notice, Reply
from navigator_kernel.values.request import Message, Session, Sticky
from navigator_kernel.values.route import (
    Direct,
    Lifecycle,
    Mcp,
    NeedClarification,
    RouteDecision,
    Skills,
    Unknown,
    Workflow,
)

RAN = RouteDecision(
    result=Skills(names=("x",)), entity="x", candidates=("y",), tier="retrieval", confidence=0.9, reason="leader"
)
NOTHING = DispatchPlan(steps=())


class Standing:
    def now(self) -> str:
        return "2026-01-31T09:30:00.000Z"

    def monotonic(self) -> float:
        return 0.0


def order(agent: str = "skills", target: str = "skill:x", **optional: Any) -> Packet:
    return Packet(
        agent=agent,
        task_spec=TaskSpec(intent="say", operation="run", target=target),
        context=Context(run="r", step=0, idempotency_key=f"r/0/{agent}/{target}"),
        params=Params(required=optional.pop("required", {}), optional=optional),
    )


def plan_of(*packets: Packet) -> DispatchPlan:
    return DispatchPlan(steps=tuple(DispatchStep(packets=(packet,)) for packet in packets))


def report(state: Any = "success", agent: str = "skills", **given: Any) -> Report:
    return Report(
        state=state, summary=f"{state} it is", meta=Meta(agent=agent, time=0.1, ts="2026-01-31T09:30:00Z"), **given
    )


def reply(
    decision: RouteDecision,
    *reports: Report,
    plan: DispatchPlan = NOTHING,
    text: str = "say",
    session: Session | None = None,
    notice: Notice | None = None,
    rounds: int = 0,
) -> Reply:
    request = preprocess(Message(text=text), ProjectFiles(Path("/nowhere"), Path("/nowhere")))
    told = TurnSummary(
        run="r",
        request=request,
        asked=text,
        session=session or Session(id="s"),
        notice=notice,
        elapsed=0.25,
        rounds=rounds,
    )
    return compose(decision, plan, reports, told, Standing())


def ran(state: Any = "success", **given: Any) -> Reply:
    return reply(RAN, report(state), plan=plan_of(order(prompt="run x a b")), **given)


# The kernel's own answers


@pytest.mark.requirement("OUT-4", "RET-2")
def test_without_a_model_nothing_is_ever_a_success() -> None:
    made = reply(RouteDecision(result=Direct(), candidates=("alpha", "beta", "gamma")))
    assert (made.report.state, made.report.exit_code, made.report.data["reason"]) == ("pending", 9, "no_model")
    assert made.report.data["nearest"] == ["alpha", "beta", "gamma"]
    assert all(name in made.report.summary for name in ("alpha", "beta", "gamma"))


@pytest.mark.parametrize(("text", "words"), [("say", "no model"), ("说话", "没有配置")])
def test_the_reply_without_a_model_is_in_the_language_of_the_message(text: str, words: str) -> None:
    assert words in reply(RouteDecision(result=Direct()), text=text).report.summary


@pytest.mark.requirement("RET-9", "SEN-2")
def test_a_question_is_pending_and_lists_what_is_required() -> None:
    asked = NeedClarification(question="x needs: a; b", missing=("a", "b"), optional=("c",))
    made = reply(RouteDecision(result=asked))
    assert (made.report.state, made.report.summary, made.report.exit_code) == ("pending", "x needs: a; b", 9)
    assert (made.report.data["required"], made.report.data["optional"]) == (["a", "b"], ["c"])


@pytest.mark.requirement("SEN-2")
def test_a_question_waits_for_its_answer() -> None:
    made = reply(
        RouteDecision(result=NeedClarification(question="which?", missing=("a",))), text="/x\nplease", rounds=1
    )
    question = made.session.question
    assert question is not None
    assert (question.original, question.question, question.missing, question.rounds) == (
        "/x\nplease",
        "which?",
        ("a",),
        2,
    )


@pytest.mark.parametrize(
    ("result", "code"),
    [
        (Unknown(what="skill", name="nope", suggestions=("a", "b", "c")), 4),
        (Unknown(what="script", name="nope"), 4),
        (Unknown(what="workflow", name="nope"), 4),
        (Unknown(what="file", name="no file is called 'nope'"), 4),
        (Workflow(name="nope"), 4),
    ],
)
@pytest.mark.parametrize("text", ["say", "说话"])
def test_a_missing_resource_is_an_error_with_its_name_and_suggestions(result: Any, code: int, text: str) -> None:
    made = reply(RouteDecision(result=result), text=text)
    assert (made.report.state, made.report.exit_code) == ("error", code)
    assert "nope" in made.report.summary
    for name in getattr(result, "suggestions", ()):
        assert name in made.report.summary


@pytest.mark.requirement("OUT-5", "OUT-6")
@pytest.mark.parametrize("text", ["what can you do", "你能做什么"])
def test_abilities_are_three_lines_of_giving_and_getting_without_commands(text: str) -> None:
    made = reply(RouteDecision(result=Direct(topic="capabilities")), text=text)
    lines = made.report.data["capabilities"]
    assert (made.report.state, len(lines)) == ("success", 3)
    for line in lines:
        assert not re.search(r"`|--|python|bin/|navigator |skill_manager|/\w+", line)


@pytest.mark.requirement("OUT-6")
def test_the_three_lines_go_from_a_link_over_a_source_to_a_name() -> None:
    link, source, name = say("capabilities", "en").split("\n")
    assert ("repository" in link, "see its skills" in link) == (True, True)
    assert ("Name a source" in source, "search for skills" in source) == (True, True)
    assert ("Name a skill" in name, "run or uninstall" in name) == (True, True)


@pytest.mark.parametrize(("topic", "key"), [("released", "ask.release"), ("declined", "declined")])
@pytest.mark.parametrize(("text", "language"), [("say", "en"), ("说话", "zh")])
def test_a_release_and_a_no_are_confirmed(topic: Any, key: str, text: str, language: Any) -> None:
    made = reply(RouteDecision(result=Direct(topic=topic)), text=text)
    assert (made.report.state, made.report.summary) == ("success", say(key, language))


# Sections


@pytest.mark.requirement("OUT-1")
def test_the_logic_trace_says_what_was_chosen_and_why() -> None:
    trace = ran().sections.logic_trace
    assert trace[0] == "skills: x"
    assert trace[1] == f"retrieval: {because_of('leader', 'en', name='x', confidence='0.90')}"
    assert trace[2] == "y"


@pytest.mark.requirement("OUT-2", "PKT-1")
def test_the_action_vector_is_the_call_as_the_document_writes_it() -> None:
    assert ran().sections.action_vector == ('Task(subagent_type="skills", prompt="run x a b")',)


@pytest.mark.requirement("OUT-2")
def test_there_is_one_action_for_each_step_that_was_started() -> None:
    plan = plan_of(order(target="skill:a"), order(target="skill:b"), order(target="skill:c"))
    made = reply(RAN, report(), report("error"), plan=plan)
    assert [action.split('prompt="')[1] for action in made.sections.action_vector] == ['run skill:a")', 'run skill:b")']


@pytest.mark.requirement("OUT-3")
@pytest.mark.parametrize(
    ("effects", "line"), [((), "nothing changed"), (("install x", "install y"), "changed: install x, install y")]
)
def test_the_state_update_contains_the_differences(effects: tuple[str, ...], line: str) -> None:
    made = reply(RAN, report(effects=effects), plan=plan_of(order()))
    assert made.sections.state_update[0] == line


@pytest.mark.requirement("OUT-3")
def test_the_state_update_says_where_follow_ups_go() -> None:
    assert "skills (x)" in ran().sections.state_update[1]


@pytest.mark.requirement("OUT-3", "SAF-5")
def test_a_question_is_added_after_two_failures_in_a_row() -> None:
    assert say("ask.failed_twice", "en") in ran("error", session=Session(id="s", failures=1)).sections.state_update
    assert say("ask.failed_twice", "en") not in ran("error").sections.state_update


@pytest.mark.requirement("OUT-1", "OUT-2", "OUT-3")
def test_sections_are_in_the_language_of_the_message() -> None:
    made = ran(text="说话")
    assert made.sections.state_update[0] == "无变更"


@pytest.mark.requirement("OUT-4")
@pytest.mark.parametrize(
    "result",
    [
        Direct(),
        Direct(topic="capabilities"),
        Direct(topic="released"),
        NeedClarification(question="?"),
        Unknown(what="skill", name="x"),
    ],
)
def test_sections_are_empty_if_no_task_ran(result: Any) -> None:
    made = reply(RouteDecision(result=result))
    assert made.sections.to_dict() == {"logic_trace": [], "action_vector": [], "state_update": []}


@pytest.mark.requirement("OUT-4")
def test_no_sentence_is_a_pleasantry() -> None:
    pleasant = re.compile(
        r"\b(?:sorry|apolog|thank|happy to|glad|great question|unfortunately)|抱歉|对不起|很高兴|感谢|不好意思"
    )
    assert [key for key, said in sentences().items() if pleasant.search(" ".join(said).lower())] == []


# The session after the turn


def test_every_turn_is_counted() -> None:
    assert ran(session=Session(id="s", turn=4)).session.turn == 5


@pytest.mark.requirement("STA-3")
def test_a_notice_that_was_shown_is_not_shown_again() -> None:
    made = ran(notice=Notice(code="few_skills", count=3))
    assert (made.notice, made.session.notice_shown) == (Notice(code="few_skills", count=3), True)


@pytest.mark.requirement("STA-4")
def test_a_notice_blocks_nothing() -> None:
    assert ran(notice=Notice(code="few_skills", count=0)).report.state == "success"


@pytest.mark.requirement("SEN-7")
@pytest.mark.parametrize("state", ["success", "partial"])
def test_a_skill_that_answered_has_the_follow_ups(state: str) -> None:
    sticky = ran(state).session.sticky
    assert sticky is not None and (sticky.agent, sticky.target, sticky.text) == ("skills", "x", "say")


@pytest.mark.requirement("SEN-7")
def test_an_mcp_server_that_answered_has_the_follow_ups() -> None:
    packet = order("mcp", "file:///a.txt", required={"server": "files", "uri": "file:///a.txt"})
    decision = RouteDecision(result=Mcp(operation="read", server="files", uri="file:///a.txt"))
    made = reply(decision, report(agent="mcp"), plan=plan_of(packet))
    sticky = made.session.sticky
    assert sticky is not None and (sticky.agent, sticky.target) == ("mcp", "files")


@pytest.mark.requirement("SEN-7")
@pytest.mark.parametrize("state", ["error", "timeout"])
def test_a_skill_that_failed_does_not(state: str) -> None:
    assert ran(state).session.sticky is None


@pytest.mark.requirement("SEN-7")
def test_a_skill_that_waits_for_a_yes_has_no_follow_ups_yet() -> None:
    waits = report("pending", subject="type_a:x@sha256:1")
    assert reply(RAN, waits, plan=plan_of(order())).session.sticky is None


@pytest.mark.requirement("SEN-7")
def test_a_worker_has_no_follow_ups() -> None:
    decision = RouteDecision(result=Lifecycle(operation="list"))
    session = reply(decision, report(agent="worker"), plan=plan_of(order("worker", "skills"))).session
    assert resume(Message(text="and in blue"), session).message.way == ""
    assert resume(Message(text="again"), session).message.text == "say"


@pytest.mark.requirement("SEN-7")
def test_a_release_ends_follow_ups_and_failures() -> None:
    before = Session(id="s", sticky=Sticky(agent="skills", target="x"), failures=2)
    after = reply(RouteDecision(result=Direct(topic="released")), session=before).session
    assert (after.sticky, after.failures) == (None, 0)


def test_a_no_leaves_the_conversation_where_it_was() -> None:
    before = Session(id="s", sticky=Sticky(agent="skills", target="x"))
    assert reply(RouteDecision(result=Direct(topic="declined")), session=before).session.sticky == before.sticky


@pytest.mark.parametrize(("state", "failures"), [("error", 2), ("timeout", 2), ("success", 0), ("partial", 0)])
def test_failures_in_a_row_are_counted(state: str, failures: int) -> None:
    assert ran(state, session=Session(id="s", failures=1)).session.failures == failures


@pytest.mark.requirement("SAF-1")
def test_a_step_that_needs_approval_waits_with_the_steps_behind_it() -> None:
    plan = plan_of(order(target="skill:a"), order(target="skill:b"), order(target="skill:c"))
    stopped = report("pending", subject="type_a:b@sha256:1")
    approval = reply(RAN, report(), stopped, plan=plan).session.approval
    assert approval is not None
    assert ([p.task_spec.target for p in approval.packets], approval.subject) == (
        ["skill:b", "skill:c"],
        "type_a:b@sha256:1",
    )


def test_a_pending_of_another_kind_waits_for_no_yes() -> None:
    assert reply(RAN, report("pending", data={"reason": "input"}), plan=plan_of(order())).session.approval is None


# The document


@pytest.mark.parametrize(
    "result", [Direct(), Unknown(what="skill", name="x"), NeedClarification(question="?", missing=("a",))]
)
def test_a_reply_is_one_json_document(result: Any) -> None:
    told = json.loads(json.dumps(reply(RouteDecision(result=result)).to_dict()))
    assert {"run", "session", "route", "report", "reports", "sections", "notice", "exit_code"} <= set(told)


@pytest.mark.requirement("RET-5")
def test_the_kernels_own_report_says_who_gave_it_and_when() -> None:
    meta = reply(RouteDecision(result=Direct())).report.meta
    assert (meta.agent, meta.time, meta.ts) == ("kernel", 0.25, "2026-01-31T09:30:00.000Z")
