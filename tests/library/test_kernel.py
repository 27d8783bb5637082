"""`Kernel` opens a project, runs messages, and lists the skills."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from cli.support import Place
from models.wire_server import HELLO, WireServer
from navigator_kernel import Event, Kernel, KernelError, Reply, Run
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import load_settings
from navigator_kernel.errors import Busy, Interrupted, NotFound, UsageProblem
from navigator_kernel.events import RunCompleted, RunStarted, SkillActivated
from processes import filled_below, working_in
from skill_repositories import make_repo, skill_text
from specialist.turns import of_phase_two, says, says_together

pytestmark = pytest.mark.sample(1)


async def listened(run: Run) -> list[Event]:
    return [event async for event in run]


@pytest.mark.parametrize("name", ["nowhere", "notes.txt"])
def test_a_project_that_is_not_a_folder_is_an_error(place: Place, name: str) -> None:
    with pytest.raises(NotFound, match="no folder is called"):
        Kernel(place.root / name)
    with pytest.raises(NotFound, match="no folder is called"):
        Project(place.root / name, load_settings(place.root))


@pytest.mark.requirement("EVT-1", "EVT-7")
def test_the_events_of_a_run_come_in_order_and_end_with_its_end(kernel: Kernel, place: Place) -> None:
    events = asyncio.run(listened(kernel.run("/shout hello")))
    bodies = [event.body for event in events]
    assert [event.seq for event in events] == list(range(len(events)))
    assert isinstance(bodies[0], RunStarted) and any(isinstance(body, SkillActivated) for body in bodies)
    assert isinstance(bodies[-1], RunCompleted) and bodies[-1].state == "success"
    (log,) = place.runs()
    assert [one["type"] for one in log] == [event.type for event in events]


def test_a_reply_has_the_report_and_a_run_gives_events_and_reply(kernel: Kernel) -> None:
    async def both() -> None:
        assert (await kernel.ask("/shout hello")).report.raw == "HELLO"
        run = kernel.run("/shout again")
        told = await listened(run)
        reply = await run
        assert (reply.run, reply.report.raw) == (run.id, "AGAIN") and told[0].run == run.id

    asyncio.run(both())


@pytest.mark.requirement("RTE-30")
def test_a_named_session_continues_and_a_message_without_one_is_by_itself(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, HELLO)

    async def talk() -> None:
        await with_model.ask("hello there", session="a")
        await with_model.ask("and once more", session="a")
        await with_model.ask("who are you")

    asyncio.run(talk())
    said = [[one["content"] for one in body["messages"][1:]] for body in of_phase_two(server)]
    assert "hello there" in said[1] and "hello there" not in said[2]
    (session,) = place.json("session", "list")["sessions"]
    assert (session["id"], session["turns"]) == ("a", 2)


def test_paths_of_a_message_start_at_the_project(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert asyncio.run(kernel.ask("/word-count @notes.txt")).report.data["words"] == 3


def test_the_model_that_is_named_is_asked(with_model: Kernel, server: WireServer) -> None:
    says(server, HELLO, model="other")
    kernel = Kernel(with_model.root, model="there:other")
    assert asyncio.run(kernel.ask("/song-writer a song")).report.raw == HELLO.text
    with pytest.raises(KernelError):
        Kernel(with_model.root, model="nobody-knows-this")


def test_turns_of_different_sessions_run_side_by_side(with_model: Kernel, server: WireServer) -> None:
    kernel, sessions = with_model, ("a", None)
    says_together(server, len(sessions), HELLO)

    async def several() -> list[Reply]:
        return await asyncio.gather(*(kernel.ask("/song-writer the moon", session=name) for name in sessions))

    replies = asyncio.run(several())
    assert [reply.report.raw for reply in replies] == [HELLO.text] * len(sessions)
    assert len({reply.run for reply in replies}) == len({reply.session.id for reply in replies}) == len(sessions)


def test_turns_of_a_session_that_are_asked_for_at_once_are_taken_one_after_another(kernel: Kernel) -> None:
    async def several() -> list[str]:
        replies = await asyncio.gather(*(kernel.ask(f"/shout word{number}", session="s") for number in range(3)))
        return sorted(str(reply.report.raw) for reply in replies)

    assert asyncio.run(several()) == ["WORD0", "WORD1", "WORD2"]


def test_using_a_kernel_from_two_event_loops_at_once_raises_busy(kernel: Kernel) -> None:
    async def first() -> None:
        run = kernel.run("/doze now")
        events = aiter(run)  # the run ends with the last reference to it
        await anext(events)
        with pytest.raises(Busy):
            await asyncio.to_thread(asyncio.run, kernel.ask("/shout hello"))
        await run.aclose()

    asyncio.run(first())
    assert asyncio.run(kernel.ask("/shout hello")).report.raw == "HELLO"


@pytest.mark.requirement("RTE-30")
def test_the_history_of_a_session_has_the_messages_and_no_question_of_the_kernel(kernel: Kernel) -> None:
    async def talk() -> None:
        for message in ("/shout hello", "/word-count", "one two"):
            await kernel.ask(message, session="s")

    with pytest.raises(NotFound):
        kernel.history("s")
    asyncio.run(talk())
    said = [(one.role, one.text) for one in kernel.history("s")]
    assert said == [
        ("user", "/shout hello"),
        ("assistant", "shout done"),
        ("user", "/word-count one two"),
        ("assistant", "2 words, 7 characters, 1 line"),
    ]
    assert [(one.role, one.text) for one in kernel.history("s", last=1)] == said[-1:]


@pytest.mark.parametrize("message", ["", " \n", "x" * 1_000_001])
def test_no_message_and_one_that_is_too_long_are_errors(kernel: Kernel, message: str) -> None:
    with pytest.raises(UsageProblem):
        kernel.run(message)


async def begun(root: Path) -> Path:
    """Waits for the folder of the sleeping process, and returns it."""

    def look() -> Path | None:
        return next(iter(filled_below(root / "mybox/workspace", "begun")), None)

    async with asyncio.timeout(30):
        while (found := look()) is None:  # noqa: ASYNC110 - another process creates it
            await asyncio.sleep(0.02)
    return found.parent


async def all_gone(folder: Path) -> bool:
    for _ in range(500):
        if not working_in(folder):
            return True
        await asyncio.sleep(0.02)
    return False


@pytest.mark.requirement("EVT-1")
def test_cancelling_by_id_ends_the_run_and_its_processes(kernel: Kernel, place: Place) -> None:
    async def cancelled() -> None:
        run = kernel.run("/doze now")
        waiting = asyncio.ensure_future(listened(run))
        folder = await begun(place.root)
        assert working_in(folder)
        await kernel.cancel(run.id)
        assert (await waiting)[-1].type == "RunCancelled"
        assert await all_gone(folder)
        with pytest.raises(Interrupted):
            await run
        with pytest.raises(NotFound):
            await kernel.cancel(run.id)

    asyncio.run(cancelled())


@pytest.mark.parametrize("how", ["break", "cancel"])
def test_a_caller_that_stops_listening_ends_the_run_and_its_processes(kernel: Kernel, place: Place, how: str) -> None:
    async def stops() -> None:
        async def listen() -> None:
            async for event in kernel.run("/doze now"):
                if how == "break" and event.type == "StepStarted":
                    await begun(place.root)
                    break

        task = asyncio.ensure_future(listen())
        folder = await begun(place.root)
        if how == "cancel":
            task.cancel()
        await asyncio.wait({task})
        assert await all_gone(folder)

    asyncio.run(stops())
    assert place.runs()[0][-1]["type"] == "RunCancelled"


@pytest.mark.requirement("RTE-8")
def test_a_route_says_what_a_message_would_get_and_does_nothing(kernel: Kernel, place: Place) -> None:
    found = kernel.route("/shout hello")
    assert (found.kind, found.skill, found.confidence) == ("skills", "shout", 1.0)
    assert kernel.route("count the words of a text").skill == "word-count"
    steps = kernel.route("make a report of the data in @notes.txt and then count the words in the report").steps
    assert len(steps) == 2
    assert not (place.root / "mybox" / "logs").exists()


def test_the_skills_are_listed_with_those_that_are_switched_off(kernel: Kernel, place: Place) -> None:
    place.run("skill", "disable", "shout")
    found = {skill.name: skill for skill in kernel.skills()}
    assert (found["shout"].enabled, found["shout"].runs, found["song-writer"].runs) == (False, True, False)
    assert found["song-writer"].path == place.root / ".claude/skills/song-writer/SKILL.md"


@pytest.mark.requirement("LIF-1")
def test_skills_are_installed_and_used_by_the_same_kernel(kernel: Kernel, tmp_path: Path) -> None:
    files = {f"{name}/SKILL.md": skill_text(name, f"is about {name}") for name in ("tides", "winds")}
    repo = make_repo(tmp_path, files)
    assert kernel.install(str(repo), skills=["tides"]).new == ("tides",)
    found = kernel.install(str(repo), all=True)
    assert (found.new, found.there, found.left_out) == (("winds",), ("tides",), {})
    assert {"tides", "winds"} <= {skill.name for skill in kernel.skills()}
    with pytest.raises(UsageProblem):
        kernel.install(str(repo))
