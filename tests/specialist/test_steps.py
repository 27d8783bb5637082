"""What a step requests besides its work: a second try, its own limit, a model that is not set."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from models.wire_server import HELLO, Said, WireServer
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.dispatch import EventStream
from navigator_kernel.turn.deliver import deliver, dispatch_deps
from navigator_kernel.values.chat import Spent
from navigator_kernel.values.packet import Constraints, Context, OnError, Packet, Params, Report, ReturnSpec, TaskSpec
from navigator_kernel.values.plan import DispatchPlan, DispatchStep
from navigator_kernel.values.request import Session
from specialist.turns import of_phase_two, says, song

if TYPE_CHECKING:
    from pathlib import Path

    from cli.support import Place

pytestmark = pytest.mark.sample(1)

RAIN, SUN = Said(text="A song about rain."), Said(text="A song about the sun.")


def order(on_error: OnError = "propagate", rule: str = "", seconds: float = 60.0) -> Packet:
    return Packet(
        agent="skills",
        task_spec=TaskSpec(intent="a song about rain", operation="run", target="skill:song-writer"),
        params=Params(optional={"prompt": "a song about rain", "request": "a song about rain", "arguments": []}),
        constraints=Constraints(timeout=seconds, validation=rule),
        return_spec=ReturnSpec(on_error=on_error),
        context=Context(run="run-1", step=0, idempotency_key="run-1/0"),
    )


def delivered(here: Place, packet: Packet) -> Report:
    kernel = Project(here.root, load_settings(here.root))

    async def run() -> Report:
        stream = EventStream("run-1", 0, kernel.run_log, kernel.clock)
        delivery = dispatch_deps(kernel, kernel.specialist(Session(id="s"), Spent()))
        try:
            return (await deliver(DispatchPlan(steps=(DispatchStep(packets=(packet,)),)), delivery, stream))[0]
        finally:
            assert kernel.models is not None
            await kernel.models.close()

    return asyncio.run(run())


@pytest.mark.requirement("PKT-5")
@pytest.mark.parametrize(("on_error", "asked", "state"), [("fix", 2, "success"), ("propagate", 1, "error")])
def test_a_result_that_fails_validation_is_retried_only_with_on_error_fix(
    here: Place, server: WireServer, on_error: OnError, asked: int, state: str
) -> None:
    says(server, SUN, RAIN)
    report = delivered(here, order(on_error, "contains:rain"))
    assert (report.state, len(of_phase_two(server))) == (state, asked)
    if on_error == "fix":
        said = of_phase_two(server)[-1]["messages"][-1]["content"]
        assert said.startswith("a song about rain") and "contains:rain" in said


@pytest.mark.requirement("PKT-5")
def test_it_is_repeated_exactly_once(here: Place, server: WireServer) -> None:
    says(server, SUN)
    assert (delivered(here, order("fix", "contains:rain")).state, len(of_phase_two(server))) == ("error", 2)


def test_a_failed_model_request_is_not_retried_even_with_on_error_fix(
    here: Place, mine: Path, server: WireServer
) -> None:
    mine.write_text(mine.read_text().replace("there:worker", "there:failed"))
    assert (delivered(here, order("fix", "contains:rain")).state, server.asked("failed")) == ("error", 1)


@pytest.mark.wide
def test_a_step_has_a_limit_of_its_own(here: Place, mine: Path, server: WireServer) -> None:
    mine.write_text(mine.read_text().replace("there:worker", "there:hangs"))
    report = delivered(here, order(seconds=1.0))
    assert (report.state, report.meta.time < 20) == ("timeout", True)


@pytest.mark.wide
def test_the_limit_of_a_manifest_counts(here: Place, mine: Path, server: WireServer) -> None:
    here.write({".claude/skills/song-writer/SKILL.md": song("timeout: 1\n")})
    mine.write_text(mine.read_text().replace("there:worker", "there:hangs"))
    told = here.json("ask", "/song-writer a song")
    assert (told["exit_code"], told["report"]["meta"]["time"] < 20) == (124, True)


@pytest.mark.wide
@pytest.mark.requirement("FMT-5")
@pytest.mark.parametrize(("backend", "told"), [("gpt-old", True), ("quick", False), ("", False)])
def test_an_unknown_backend_is_reported_and_the_default_model_is_asked(
    here: Place, server: WireServer, backend: str, told: bool
) -> None:
    here.write({".claude/skills/song-writer/SKILL.md": song(f"backend: {backend}\n" if backend else "")})
    says(server, HELLO)
    says(server, HELLO, model="quick")
    document = here.json("ask", "/song-writer a song")
    assert document["report"]["state"] == "success"
    found = document["report"]["data"].get("diagnostics", [])
    codes = [one["code"] for one in found if one["code"] != "untrusted"]
    assert codes == (["backend-unknown"] if told else [])
    assert ("gpt-old" in here.run("ask", "/song-writer a song").err) == told
