"""What a session does with a follow-up, and with a word that asks for another try."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import Settings
from navigator_kernel.values.mcp import McpServer
from navigator_kernel.values.request import Session
from turns.conftest import Talk, Talker, put

pytestmark = pytest.mark.sample(1)

SERVER = Path(__file__).parents[1] / "agents" / "mcp_server.py"
FLAKY = """import pathlib, sys
pathlib.Path("tried").write_text("x")
if not pathlib.Path("../../../back").exists():
    sys.exit("the disk is away")
print("there it is")
"""
TEXT = 'required_params: \'[{"name": "text", "prompt": "the text"}]\'\nreads: project\n'


@pytest.mark.requirement("STK-3")
def test_a_follow_up_of_an_mcp_task_goes_to_the_same_server(talk: Talk) -> None:
    servers = {"files": McpServer(command=sys.executable, args=(str(SERVER), "plain"))}
    kernel = Project(talk.kernel.root, Settings(servers=servers), clock=talk.kernel.clock)
    kernel.ids = talk.kernel.ids
    talk.kernel = kernel
    assert talk.say("mcp list files", consent=True).report.state == "success"
    assert talk.session.sticky is not None
    assert (talk.session.sticky.agent, talk.session.sticky.target) == ("mcp", "files")

    followed = talk.say("now the tools", consent=True)

    assert (followed.decision.kind, followed.decision.tier, followed.report.agent) == ("mcp", "session", "mcp")


@pytest.mark.requirement("STK-3", "SEN-7")
def test_a_follow_up_of_a_skill_goes_to_the_same_skill(talk: Talk) -> None:
    talk.say("/shout-loud hello", consent=True)
    assert talk.session.sticky is not None
    assert (talk.session.sticky.agent, talk.session.sticky.target) == ("skills", "shout-loud")
    assert talk.say("again: bye", consent=True).report.data == {"output": "BYE"}


def tries(root: Path) -> int:
    return len(list(root.glob("mybox/workspace/*/tried")))


@pytest.fixture
def flaky(root: Path, talker: Talker) -> Talk:
    put(root, "fetch-it", "Fetches a thing", TEXT, FLAKY)
    return talker()


@pytest.mark.requirement("SAF-7")
@pytest.mark.parametrize("word", ["retry", "try again", "Once more, please", "重试", "再试一次。"])
def test_a_retry_word_repeats_the_failed_packet_with_its_error(flaky: Talk, root: Path, word: str) -> None:
    failed = flaky.say("/fetch-it the thing", consent=True)
    assert failed.report.state == "error"
    assert "the disk is away" in str(failed.report.data)
    assert any("retry" in line for line in failed.sections.state_update)

    (root / "back").touch()
    again = flaky.say(word, consent=True)

    files = [f"mybox/workspace/{again.run}/tried"]
    assert (again.report.state, again.report.data) == ("success", {"output": "there it is", "files": files})
    packet = next(event.to_dict() for event in reversed(flaky.events) if event.type == "StepStarted")["data"]["packet"]
    assert packet["params"]["required"] == {"text": "the thing"}
    assert packet["params"]["optional"]["error"] == failed.report.summary


@pytest.mark.requirement("SAF-7", "SAF-5")
def test_after_two_failures_in_a_row_nothing_is_tried_a_third_time(root: Path, talker: Talker) -> None:
    put(root, "fetch-it", "Fetches a thing", TEXT, FLAKY)
    talk = talker()
    talk.say("/fetch-it the thing", consent=True)
    assert talk.say("retry", consent=True).report.state == "error"

    third = talk.say("retry", consent=True)

    assert (third.report.state, third.decision.reason) == ("pending", "failed_twice")
    assert tries(root) == 2


def test_without_a_run_the_word_repeats_nothing(talk: Talk) -> None:
    assert talk.say("retry").decision.reason == "nothing"


def test_a_new_matter_forgets_what_failed(flaky: Talk, root: Path) -> None:
    flaky.say("/fetch-it the thing", consent=True)
    flaky.say("/shout-loud hello", consent=True)
    assert flaky.say("retry", consent=True).report.data == {"output": "HELLO"}
    assert tries(root) == 1


def test_a_failed_packet_survives_session_serialization() -> None:
    from navigator_kernel.adapters.stores.sessions import session_from, session_to_dict
    from navigator_kernel.values.packet import Context, Packet, TaskSpec

    spec = TaskSpec(intent="x", operation="run", target="skill:x")
    packet = Packet(agent="skills", task_spec=spec, context=Context(run="r", step=0, idempotency_key="k"))
    session = Session(id="s", retry=(packet,), failures=1)
    assert session_from(session_to_dict(session)) == session


def test_a_session_that_an_older_version_kept_is_read() -> None:
    from navigator_kernel.adapters.stores.sessions import session_from, session_to_dict

    kept = session_to_dict(Session(id="s"))
    del kept["retry"]
    assert session_from(kept) == Session(id="s")
