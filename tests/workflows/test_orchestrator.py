"""`/master-orchestrator need`: a plan if skills fit the need, the skill of that name if none does (CMD-1..6)."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import pytest

from navigator_kernel.bootstrap import places, roots
from navigator_kernel.turn.workflow import COMMAND, answer, is_orchestrated
from navigator_kernel.values.packet import Meta, Report
from tables import cases
from workflows.project import packets, project_in, put_skill, talk_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from navigator_kernel.values.reply import Reply
    from turns.conftest import Talk

pytestmark = pytest.mark.sample(1)

NEED = "run shout-loud on @notes.txt and then count the terms in it"
NEED_ZH = "用 shout-loud 处理 @notes.txt，然后统计结果的词条数"
PROMPT = """\
## System Prompt

You coordinate.

## User Prompt Template

Request: {{request}}

1. **Decomposition** 2. **Required resources** 3. **Steps** 4. **Expected result**

Then carry the plan out step by step.
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = project_in(tmp_path)
    own = put_skill(folder, "master-orchestrator", ("Plans what one skill cannot do", "", "")) / "SKILL.md"
    own.write_text(own.read_text().replace("Do it well.\n", PROMPT))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def talk(root: Path) -> Talk:
    return talk_in(root)


def skills_of(reply: Reply) -> list[str]:
    assert reply.workflow is not None
    return [step.skill for step in reply.workflow.plan.steps]


# CMD-1, CMD-6: the name of the command and its spellings


@pytest.mark.requirement("CMD-1", "WFL-1")
@pytest.mark.parametrize(
    "text", [f"/master-orchestrator {NEED}", f"/master_orchestrator {NEED}", f"/Master-Orchestrator {NEED}"]
)
def test_a_need_of_several_steps_gets_a_plan(talk: Talk, text: str) -> None:
    reply = talk.say(text)
    assert (reply.decision.kind, reply.report.state) == ("workflow", "pending")
    assert skills_of(reply) == ["shout-loud", "count-terms"]
    assert packets(talk) == []
    assert talk.say("yes").report.data["words"] == 3


@pytest.mark.requirement("CMD-1", "WFL-1")
def test_a_need_of_one_step_gets_a_plan_too(talk: Talk) -> None:
    reply = talk.say("/master-orchestrator run shout-loud on @notes.txt")
    assert skills_of(reply) == ["shout-loud"]
    assert talk.say("yes").report.data["output"] == "ONE TWO THREE"


@pytest.mark.requirement("CMD-6")
@cases("text")
def test_the_prefix_is_not_part_of_the_need(talk: Talk, text: str) -> None:
    reply = talk.say(text)
    assert skills_of(reply) == ["shout-loud", "count-terms"]
    assert reply.workflow is not None
    assert reply.workflow.plan.description == NEED_ZH


@pytest.mark.requirement("CMD-1")
def test_a_need_may_go_on_below_the_command(talk: Talk) -> None:
    reply = talk.say("/master-orchestrator do this:\n1. run shout-loud on @notes.txt\n2. count the terms in it")
    assert skills_of(reply) == ["shout-loud", "count-terms"]
    assert talk.say("yes").report.data["words"] == 3


@pytest.mark.requirement("CMD-1", "COV-4")
@pytest.mark.parametrize(
    "need",
    ["list the zibs", "list the zibs and then run shout-loud on it", "帮我规划一次旅行", "invent a better world"],
)
def test_a_need_that_skills_do_not_cover_is_given_to_the_skill_itself(talk: Talk, need: str) -> None:
    reply = talk.say(f"/master-orchestrator {need}", shows_prompt=True)
    assert (reply.decision.kind, reply.decision.entity) == ("skills", "master-orchestrator")
    assert f"Request: {need}" in str(reply.report.raw)


@pytest.mark.requirement("CMD-1")
def test_the_command_without_a_need_is_a_call_of_the_skill(talk: Talk) -> None:
    reply = talk.say("/master-orchestrator", shows_prompt=True)
    assert (reply.decision.entity, reply.report.data["success"]) == ("master-orchestrator", True)


def test_a_missing_parameter_of_a_step_is_asked_for_and_the_answer_is_used(talk: Talk) -> None:
    assert talk.say("/master-orchestrator run shout-loud").report.data["required"] == ["text"]
    assert skills_of(talk.say("hello there")) == ["shout-loud"]
    assert talk.say("yes").report.data["output"] == "HELLO THERE"


def test_a_name_that_only_begins_alike_is_another_command(talk: Talk) -> None:
    reply = talk.say("/master-orchestrators run shout-loud on x")
    assert reply.report.exit_code == 4
    assert "success" not in reply.report.data


@pytest.mark.parametrize("text", ["run master-orchestrator on it", NEED, "/shout-loud x", "@@master-orchestrator x"])
def test_other_messages_are_answered_in_no_form_of_its_own(talk: Talk, text: str) -> None:
    assert "success" not in talk.say(text).report.data


# CMD-2


@pytest.mark.requirement("CMD-2")
def test_the_help_of_the_command_is_documented() -> None:
    assert (COMMAND.name, COMMAND.type, COMMAND.enabled) == ("master-orchestrator", "skill", True)
    assert (COMMAND.priority, COMMAND.source) == (100, "builtin")
    assert COMMAND.description


@pytest.mark.requirement("CMD-2")
def test_its_handler_is_there() -> None:
    module, _, name = COMMAND.handler.rpartition(".")
    assert callable(getattr(importlib.import_module(module), name))


@pytest.mark.requirement("CMD-2")
@pytest.mark.parametrize("example", COMMAND.examples)
def test_its_examples_are_calls_of_it(root: Path, example: str) -> None:
    from navigator_kernel.adapters.files.project_files import ProjectFiles
    from navigator_kernel.turn.message import preprocess
    from navigator_kernel.values.request import Message

    request = preprocess(Message(text=example), ProjectFiles(root, root))
    assert is_orchestrated(request.commands)
    assert len(COMMAND.examples) == 2


# CMD-3: the form of the answer


@pytest.mark.requirement("CMD-3")
@pytest.mark.parametrize("need", [NEED, "run shout-loud on x", "list the zibs"])
def test_a_success_has_a_result_and_its_skill_and_no_error(talk: Talk, need: str) -> None:
    data = talk.say(f"/master-orchestrator {need}", shows_prompt=True).report.data
    assert (data["success"], data["skill"]) == (True, "master-orchestrator")
    assert data["result"]
    assert "error" not in data


def failed(data: Mapping[str, Any]) -> str:
    assert data["success"] is False
    assert "result" not in data
    return str(data["error"])


@pytest.mark.requirement("CMD-3")
def test_a_skill_that_is_not_there_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / ".claude" / "skills" / "master-orchestrator" / "SKILL.md").unlink()
    home = places.shipped_home()
    empty = places.ShippedPaths(agents=home.agents, skills=root / "none", bin=home.bin, docs=home.docs)
    monkeypatch.setattr(roots, "shipped_home", lambda: empty)
    for need in (NEED, "list the zibs"):
        reply = talk_in(root).say(f"/master-orchestrator {need}")
        assert "master-orchestrator" in failed(reply.report.data)
        assert reply.report.exit_code == 4


@pytest.mark.requirement("CMD-3")
def test_a_skill_that_is_switched_off_is_an_error(root: Path) -> None:
    own = root / ".claude" / "skills" / "master-orchestrator" / "SKILL.md"
    own.write_text(own.read_text().replace("---\nname", "---\nenabled: false\nname"))
    reply = talk_in(root).say(f"/master-orchestrator {NEED}")
    assert "master-orchestrator" in failed(reply.report.data)


@pytest.mark.requirement("CMD-3")
def test_a_skill_that_cannot_be_made_ready_is_an_error(root: Path) -> None:
    own = root / ".claude" / "skills" / "master-orchestrator" / "SKILL.md"
    own.write_text(own.read_text().replace("---\nname", "---\ncommand: tool x{request}\nname"))
    assert failed(talk_in(root).say("/master-orchestrator list the zibs").report.data)


@pytest.mark.requirement("CMD-3")
def test_a_file_that_cannot_be_read_is_an_error(talk: Talk) -> None:
    assert "gone.txt" in failed(talk.say("/master-orchestrator run shout-loud on @gone.txt").report.data)


@pytest.mark.requirement("CMD-3")
@pytest.mark.parametrize("state", ["error", "timeout"])
def test_a_report_of_a_failure_is_an_error_whatever_it_is_of(state: str) -> None:
    report = Report(
        state="error" if state == "error" else "timeout", summary="it broke", meta=Meta(agent="x", time=0, ts="")
    )
    assert answer(report, None, "en", verbose=False) == {"success": False, "error": "it broke"}


@pytest.mark.requirement("CMD-3")
def test_a_question_is_not_a_success(talk: Talk) -> None:
    assert talk.say("/master-orchestrator run shout-loud").report.data["success"] is False


@pytest.mark.requirement("CMD-3")
def test_a_plan_that_fails_at_once_is_an_error(talk: Talk) -> None:
    data = talk.say("/master-orchestrator run fail-hard on x", consent=True).report.data
    assert "fail-hard" in failed(data)


# CMD-4


@pytest.mark.requirement("CMD-4")
@pytest.mark.parametrize("flag", ["--verbose", "-v"])
@pytest.mark.parametrize("need", [NEED, "list the zibs", "run shout-loud on @gone.txt"])
def test_a_verbose_answer_has_the_whole_report_beside_it(talk: Talk, flag: str, need: str) -> None:
    data = talk.say(f"/master-orchestrator {flag} {need}").report.data
    assert {"state", "agent", "summary", "data", "meta"} <= set(data["report"])
    assert flag not in str(data.get("result"))


@pytest.mark.requirement("CMD-4")
def test_an_answer_is_not_verbose_unless_it_is_asked_to_be(talk: Talk) -> None:
    assert "report" not in talk.say(f"/master-orchestrator {NEED}").report.data
    assert "report" not in talk.say("/master-orchestrator run shout-loud on --verbose").report.data


# CMD-5


@pytest.mark.requirement("CMD-5")
def test_the_result_of_a_plan_has_four_parts(talk: Talk) -> None:
    result = talk.say(f"/master-orchestrator {NEED}").report.data["result"]
    assert list(result) == ["decomposition", "resources", "steps", "expected"]
    assert result["decomposition"] == ["run shout-loud on @notes.txt", "count the terms in it"]
    assert result["resources"] == {"skills": ["shout-loud", "count-terms"], "files": ["notes.txt"]}
    assert result["steps"][0] == "Step 1: run shout-loud on @notes.txt → shout-loud → skills_agent"
    assert [line.partition(":")[0] for line in result["expected"]] == ["shout-loud", "count-terms"]


@pytest.mark.requirement("CMD-5")
def test_the_skill_that_is_shipped_asks_for_the_four_parts_and_for_their_execution(root: Path) -> None:
    (root / ".claude" / "skills" / "master-orchestrator" / "SKILL.md").unlink()
    prompt = str(talk_in(root).say("/master-orchestrator list the zibs", shows_prompt=True).report.raw)
    found = [
        prompt.find(word)
        for word in ("Decomposition", "Required resources", "Steps**", "Expected result", "carry the plan out")
    ]
    assert -1 not in found
    assert found == sorted(found)
