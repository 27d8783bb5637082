"""A run that waits for a yes continues only after an explicit call that is bound to the question."""

from __future__ import annotations

import asyncio

import pytest

from cli.support import Place
from models.wire_server import Said, WireServer
from navigator_kernel import Approval, Kernel
from navigator_kernel.errors import NotFound
from navigator_kernel.events import ApprovalRequested, ApprovalResolved, RunCompleted
from navigator_kernel.values.job import consent_subject
from specialist.turns import says

pytestmark = pytest.mark.sample(2)

SONG = Said(calls=[("write", '{"file_path": "notes.txt", "content": "row, row\\n"}')])


def asked(kernel: Kernel, message: str, session: str | None = None) -> Approval:
    reply = asyncio.run(kernel.ask(message, session=session))
    assert reply.report.state == "pending" and reply.approval is not None
    return reply.approval


@pytest.mark.requirement("SAF-1")
def test_an_approval_lets_exactly_what_was_asked_go_on_once(kernel: Kernel) -> None:
    approval = asked(kernel, "/loud-stranger hello")
    assert "loud-stranger" in approval.question
    assert asyncio.run(_reply(kernel, approval.id)) == "HELLO"
    with pytest.raises(NotFound):
        asyncio.run(_reply(kernel, approval.id))
    assert asked(kernel, "/loud-stranger hello").id != approval.id


async def _reply(kernel: Kernel, approval: str) -> str | None:
    return (await kernel.approve(approval)).report.raw


@pytest.mark.requirement("SAF-1")
@pytest.mark.parametrize("word", ["yes", "是", "always", "for this session"])
def test_a_message_is_never_a_yes(kernel: Kernel, place: Place, word: str) -> None:
    approval = asked(kernel, "/loud-stranger hello", "s")
    reply = asyncio.run(kernel.ask(word, session="s"))
    assert "HELLO" not in str(reply.to_dict())
    assert not any(event["type"] == "ApprovalResolved" for run in place.runs() for event in run)
    with pytest.raises(NotFound):  # the message withdrew the question
        asyncio.run(_reply(kernel, approval.id))


def test_a_denial_is_an_event_and_the_command_does_not_run(kernel: Kernel, place: Place) -> None:
    approval = asked(kernel, "!touch made.txt", "s")

    async def denied() -> list[object]:
        return [event.body async for event in kernel.deny(approval.id)]

    bodies = asyncio.run(denied())
    assert ApprovalResolved(subject=approval.subject, granted=False) in bodies
    assert isinstance(bodies[-1], RunCompleted) and not list(place.root.rglob("made.txt"))


def test_another_process_may_approve_by_the_same_id(kernel: Kernel, place: Place) -> None:
    approval = asked(kernel, "/loud-stranger hello")
    assert asyncio.run(_reply(Kernel(place.root), approval.id)) == "HELLO"


@pytest.mark.parametrize("name", ["", "s", "s:0", "nobody:0123", "call:0123"])
def test_an_id_that_nothing_waits_under_is_an_error(kernel: Kernel, place: Place, name: str) -> None:
    asked(kernel, "/loud-stranger hello", "s")
    with pytest.raises(NotFound):
        asyncio.run(_reply(kernel, name))


@pytest.mark.requirement("SAF-1")
def test_an_approval_of_other_bytes_asks_again(kernel: Kernel, place: Place) -> None:
    approval = asked(kernel, "/loud-stranger hello")
    script = place.root / ".claude/skills/loud-stranger/run.py"
    script.write_text("print('other')\n")

    async def approved() -> None:
        reply = await kernel.approve(approval.id)
        assert reply.report.state == "pending" and reply.approval is not None
        assert reply.approval.subject != approval.subject

    asyncio.run(approved())


def test_a_yes_for_its_session_covers_the_next_run_of_that_session_alone(kernel: Kernel) -> None:
    approval = asked(kernel, "/loud-stranger hello", "s")

    async def talk() -> list[str]:
        await kernel.approve(approval.id, lasting="session")
        same = await kernel.ask("/loud-stranger again", session="s")
        other = await kernel.ask("/loud-stranger again", session="t")
        return [same.report.state, other.report.state]

    assert asyncio.run(talk()) == ["success", "pending"]


@pytest.mark.requirement("X-43")
def test_no_file_of_the_project_answers(kernel: Kernel, place: Place) -> None:
    """The author of the project knows the subject and the id of the question; neither is a yes."""
    approval = asked(kernel, "/loud-stranger hello", "s")
    place.write({
        "mybox/state/trust.json": f'{{"v": 2, "trusted": {{"{approval.subject}": {{"note": "x"}}}}}}',
        "navigator.toml": f'[policy]\nallow = ["{approval.subject}"]\n',
        "approvals.json": f'["{approval.id}"]',
    })  # fmt: skip
    assert asked(Kernel(place.root), "/loud-stranger hello", "t").subject == approval.subject
    assert consent_subject("type_a", "loud-stranger", "") in approval.subject


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_model_is_asked_about_and_continues_after_the_yes(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, SONG, Said(text="Done."))
    read = (place.root / "notes.txt").read_text

    async def talk() -> None:
        run = with_model.run("/song-writer a song into notes.txt")
        (question,) = [event.body async for event in run if isinstance(event.body, ApprovalRequested)]
        assert "+row, row" in question.detail and read() == "one\ntwo\nthree\n"
        approval = (await run).approval
        assert approval is not None and approval.subject == question.subject
        assert (await with_model.approve(approval.id)).report.raw == "Done."

    asyncio.run(talk())
    assert read() == "row, row\n"
