"""What every turn has in common: its first and last events, its order, and what it leaves behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.events import BODIES, Event, SkillActivated, StepStarted, event_from
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.values.packet import STATES, packet_from
from turns.test_golden import TURNS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.sample(6)


@pytest.mark.requirement("EVT-1")
def test_the_documented_events_exist_by_name() -> None:
    documented = {
        "RunStarted",
        "RunContent",
        "RunCompleted",
        "RunError",
        "ToolCallStarted",
        "ToolCallCompleted",
        "UICommand",
        "SkillActivated",
    }
    ours = {
        "StepStarted",
        "StepCompleted",
        "ApprovalRequested",
        "ApprovalResolved",
        "ClarificationAsked",
        "Progress",
        "Usage",
        "RunCancelled",
        "SkillsOffered",
        "SkillsShortlisted",
        "SkillChosen",
        "SkillLoaded",
        "SkillUsed",
    }
    assert documented | ours <= set(BODIES)


@pytest.mark.requirement("EVT-1", "EVT-6")
@pytest.mark.parametrize("name", list(TURNS))
def test_a_run_begins_with_its_start_and_ends_with_content_and_completion(talk: Any, name: str) -> None:
    for text in TURNS[name]:
        talk.events.clear()
        reply = talk.say(text)
        types = talk.types()
        assert types[0] == "RunStarted"
        assert types[-2:] == ["RunContent", "RunCompleted"]
        assert types.count("RunCompleted") == 1
        last = talk.events[-1].to_dict()["data"]
        assert (last["state"], last["summary"]) == (reply.report.state, reply.report.summary)


@pytest.mark.requirement("EVT-7")
@pytest.mark.parametrize("name", list(TURNS))
def test_every_event_has_a_whole_envelope_and_its_place(talk: Any, name: str) -> None:
    for text in TURNS[name]:
        talk.events.clear()
        talk.say(text)
        assert [event.seq for event in talk.events] == list(range(len(talk.events)))
        assert len({(event.run, event.turn) for event in talk.events}) == 1
        for event in talk.events:
            raw = json.loads(json.dumps(event.to_dict()))
            assert set(raw) == {"v", "run", "turn", "step", "seq", "ts", "parent", "type", "data"}
            assert event.parent is None or event.parent < event.seq
            assert json.loads(json.dumps(event_from(raw).to_dict())) == raw


@pytest.mark.requirement("EVT-7")
def test_the_log_contains_what_the_listeners_heard_and_before_they_heard_it(talk: Any) -> None:
    lengths: list[int] = []

    def look(event: Event) -> None:
        lengths.append(len(talk.kernel.run_log.read(event.run)))

    reply = talk.say("/code-review @a.py", listeners=[look])
    assert lengths == list(range(1, len(talk.events) + 1))
    logged = [event.to_dict() for event in talk.kernel.run_log.read(reply.run)]
    assert json.loads(json.dumps(logged)) == json.loads(json.dumps([event.to_dict() for event in talk.events]))


@pytest.mark.requirement("EVT-7")
def test_a_skill_is_traceable_from_offer_to_use(talk: Any) -> None:
    talk.say("review this code: return a - b")
    wanted = [
        "SkillsOffered",
        "SkillsShortlisted",
        "RouteDecided",
        "SkillChosen",
        "StepStarted",
        "SkillLoaded",
        "SkillActivated",
        "SkillUsed",
        "StepCompleted",
    ]
    assert [kind for kind in talk.types() if kind in wanted] == wanted


@pytest.mark.requirement("EVT-7")
def test_a_tool_call_is_traceable_and_belongs_to_its_step(talk: Any) -> None:
    talk.say("run skill_manager list")
    step, begun, done, end = (
        e for e in talk.events if e.type in {"StepStarted", "ToolCallStarted", "ToolCallCompleted", "StepCompleted"}
    )
    assert (begun.parent, done.parent, end.parent) == (step.seq, step.seq, step.seq)
    assert begun.body.call == done.body.call


@pytest.mark.requirement("PKT-1")
def test_the_packet_in_the_log_is_the_packet_that_was_sent(talk: Any) -> None:
    reply = talk.say("/csv-report @sales.csv")
    logged = next(e for e in talk.kernel.run_log.read(reply.run) if e.type == "StepStarted").to_dict()["data"]["packet"]
    assert packet_from(logged).to_dict() == json.loads(json.dumps(logged))


@pytest.mark.requirement("RET-2")
@pytest.mark.parametrize("name", list(TURNS))
def test_every_reply_is_in_one_of_five_states(talk: Any, name: str) -> None:
    for text in TURNS[name]:
        reply = talk.say(text)
        assert reply.report.state in STATES
        json.dumps(reply.to_dict())


# The pre-check comes first


@pytest.mark.requirement("STA-1")
def test_the_pre_check_comes_before_anything_of_the_message_is_looked_at(talker: Any) -> None:
    seen: list[str] = []
    talk = talker()
    reader = talk.kernel.files

    class Reader:
        def read(self, written: str) -> tuple[Path, str]:
            seen.append("file")
            found: tuple[Path, str] = reader.read(written)
            return found

    vars(talk.kernel).update(files=Reader(), precheck_hook=lambda _count: seen.append("precheck"))
    talk.say("/code-review @a.py")
    assert seen == ["precheck", "file"]


@pytest.mark.requirement("STA-3", "STA-4")
def test_the_reminder_comes_with_the_first_reply_only_and_blocks_nothing(root: Path, talker: Any) -> None:
    own = ResourceCatalogue(roots=(Root(path=root / ".claude" / "skills", level="project"),))  # no shipped skills
    talk = talker(catalogue=own)
    first, second = talk.say("/ada-painter @a.py"), talk.say("/ada-painter @a.py")
    assert (first.report.data["reason"], first.notice is not None, second.notice) == ("no_model", True, None)


@pytest.mark.requirement("PRE-1", "PRE-22")
def test_an_explicit_order_never_reaches_the_router(talker: Any) -> None:
    class Nobody:
        def recognise(self, text: str) -> None:
            raise AssertionError(text)

        def retrieve(self, text: str, k: int = 12) -> None:
            raise AssertionError(text)

    assert talker(router=Nobody()).say("/code-review @a.py").report.data["skill"] == "code-review"


@pytest.mark.requirement("PRE-23")
def test_a_skill_is_activated_by_name_and_by_meaning(talk: Any) -> None:
    for text in ("/code-review x", "code-review x", "review this code: x", "审查这段代码：x"):
        talk.events.clear()
        talk.say(text)
        assert [e.body.skill for e in talk.events if isinstance(e.body, SkillActivated)] == ["code-review"]


# Consent


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize(("yes", "said"), [("yes", "HELLO"), ("是", "HELLO")])
def test_a_yes_runs_what_waited(talk: Any, yes: str, said: str) -> None:
    first = talk.say("/shout-loud hello")
    assert (first.report.state, first.report.exit_code, first.report.data["reason"]) == ("pending", 9, "consent")
    assert talk.say(yes).report.data["output"] == said


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("no", ["no", "否", "取消"])
def test_a_no_runs_nothing(talk: Any, root: Path, no: str) -> None:
    talk.say("!touch ../made")
    talk.events.clear()
    talk.say(no)
    assert not any(isinstance(event.body, StepStarted) for event in talk.events)
    assert not list(root.rglob("made"))
    assert talk.say("yes").report.data.get("reason") != "consent"


@pytest.mark.requirement("SAF-1")
def test_another_message_agrees_to_nothing(talk: Any, root: Path) -> None:
    talk.say("!touch ../made")
    talk.say("what can you do?")
    talk.say("yes")
    assert not list(root.rglob("made"))


def test_a_denial_is_logged_with_its_subject(talk: Any) -> None:
    talk.say("!echo hello")
    talk.say("no")
    requested = next(e.body.subject for e in talk.events if e.type == "ApprovalRequested")
    resolved = next(e.body for e in talk.events if e.type == "ApprovalResolved")
    assert (resolved.subject, resolved.granted) == (requested, False)


@pytest.mark.requirement("SAF-1")
def test_a_yes_covers_the_bytes_that_were_shown_and_no_others(talk: Any, root: Path) -> None:
    talk.say("/shout-loud hello")
    (root / ".claude" / "skills" / "shout-loud" / "run.py").write_text("print('other')\n")
    reply = talk.say("yes")
    assert (reply.report.state, reply.report.data.get("reason")) == ("pending", "consent")


@pytest.mark.requirement("SAF-1")
def test_a_yes_is_for_one_run(talk: Any) -> None:
    talk.say("/shout-loud hello")
    talk.say("yes")
    assert talk.say("/shout-loud hello").report.data["reason"] == "consent"


@pytest.mark.requirement("SAF-1")
def test_a_message_after_a_declined_skill_is_not_a_follow_up(talk: Any) -> None:
    talk.say("/shout-loud hello")
    talk.say("no")
    assert talk.say("and now?").decision.kind == "direct"


# Questions


@pytest.mark.requirement("SEN-2", "LIF-12")
def test_an_answer_completes_what_was_asked_for(talk: Any) -> None:
    first = talk.say("/word-count")
    assert (first.report.state, first.report.data["required"]) == ("pending", ["text"])
    assert talk.say("to be or not to be").report.data["words"] == 6


@pytest.mark.requirement("SEN-1")
def test_an_answered_question_keeps_its_target_and_has_the_answer_in_its_intent(talk: Any) -> None:
    talk.say("/word-count")
    talk.say("to be or not to be")
    [step] = [event.body for event in talk.events if isinstance(event.body, StepStarted)]
    spec = step.packet["task_spec"]
    assert (spec["target"], spec["intent"]) == ("skill:word-count", "/word-count to be or not to be")


@pytest.mark.requirement("SEN-2")
def test_a_question_that_is_left_stays_open_and_is_said_to_be_open(talk: Any) -> None:
    talk.say("/word-count")
    assert "word-count" in talk.say("/code-review @a.py").open
    assert talk.session.question is not None and talk.session.question.aside


@pytest.mark.requirement("LIF-11")
def test_an_answer_to_a_choice_picks_it(talk: Any) -> None:
    first = talk.say("paint watercolours of boats")
    assert set(first.report.data["options"]) == {"ada-painter", "bob-painter"}
    assert talk.say("bob-painter").decision.entity == "bob-painter"


@pytest.mark.requirement("LIF-8", "SEN-6")
def test_a_skill_of_no_known_source_is_asked_for_and_the_answer_is_an_order(talk: Any) -> None:
    first = talk.say("install the frobnicate skill")
    assert first.report.data["required"] == ["source"]
    second = talk.say("./nowhere/frobnicate")
    assert (second.decision.kind, second.report.data.get("reason")) == ("install", "consent")


@pytest.mark.requirement("SEN-7")
def test_a_release_word_ends_follow_ups(talk: Any) -> None:
    talk.say("/code-review @a.py")
    assert talk.say("and again").decision.entity == "code-review"
    talk.say("停止")
    assert talk.say("and again").decision.kind == "direct"


# Candidates


@pytest.mark.requirement("CAN-1", "CAN-3", "CAN-8")
def test_a_candidate_stands_in_and_has_the_follow_ups(talk: Any, root: Path) -> None:
    text = (root / ".claude" / "skills" / "ada-painter" / "SKILL.md").read_text()
    broken = text.replace("Paints", "Zorblifies and paints").replace(
        "---\nDo", "command: tool x{request}\npriority: 90\n---\nDo"
    )
    (root / ".claude" / "skills" / "ada-painter" / "SKILL.md").write_text(broken)
    reply = talk.say("zorblify and paint watercolours of boats at sea")
    steps = [e.body.packet["task_spec"]["target"] for e in talk.events if isinstance(e.body, StepStarted)]
    assert steps[:2] == ["skill:ada-painter", "skill:bob-painter"]
    assert (reply.report.state, reply.report.data["skill"]) == ("pending", "bob-painter")
    assert reply.session.sticky is not None
    assert reply.session.sticky.target == "bob-painter"


# Files that a turn leaves behind


@pytest.mark.requirement("SAF-2")
@pytest.mark.parametrize(
    "text", ["/code-review @a.py", "hello", "/csv-report @sales.csv", "run skill_manager list", "!echo x", "/nope"]
)
def test_a_turn_writes_in_mybox_only(talk: Any, root: Path, text: str) -> None:
    def held() -> dict[str, int]:
        return {
            str(p.relative_to(root)): p.stat().st_mtime_ns
            for p in root.rglob("*")
            if p.is_file() and "mybox" not in p.parts
        }

    before = held()
    talk.say(text)
    assert held() == before


def test_a_folder_for_a_skill_that_takes_a_file_gets_a_clear_answer(talk: Any, root: Path) -> None:
    (root / "src").mkdir()
    report = talk.say("/csv-report @src/").report
    assert (report.state, report.exit_code) == ("pending", 9)


def test_a_message_without_words_is_answered_in_the_language_of_the_one_before(talk: Any) -> None:
    """A number or a sign has no language of its own."""
    talk.say("统计这段文字的字数：你好 世界")
    assert talk.say("2").language == "zh"
    assert talk.say("count the words of this: hello world").language == "en"
    assert talk.say("2").language == "en"
