"""The updates of a turn that an editor gets: text, thoughts, tool calls, plans, questions, failures."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from acp import RequestError
from acp.helpers import image_block, resource_link_block

from cli.support import Place
from editors.editor import CANCEL, Editor, said, talk
from gateway.served import edit_of
from library.test_kernel import all_gone, begun
from models.wire_server import Said, WireServer
from navigator_acp.updates import Updates
from navigator_kernel import Event, Kernel
from navigator_kernel.events import Body, Progress, UICommand
from specialist.turns import says, settings

WRITE = Said(text="I will write. ", calls=[("write", '{"file_path": "notes.txt", "content": "row, row\\n"}')])
READ = Said(text="I read. ", calls=[("read", '{"file_path": "notes.txt"}')])
STEPS = "make a report of the data in @notes.txt and then count the words in the report"


def test_a_skill_is_named_before_its_result(place: Place) -> None:
    editor = Editor()
    assert said(editor, place.root, "/shout hello") == "end_turn"
    assert editor.thoughts == "skill shout (written as an instruction)\n"
    assert editor.text == "shout done\n\n```\nHELLO\n```"
    kinds = [update.session_update for update in editor.updates if update.session_update != "available_commands_update"]
    assert kinds == ["agent_thought_chunk", "agent_message_chunk", "agent_message_chunk"]


def test_program_output_cannot_close_its_code_fence(place: Place) -> None:
    editor = Editor()
    said(editor, place.root, "/shout '```' ![x](http://a.example/x)")
    assert editor.text.partition("\n\n")[2] == "````\n``` ![X](HTTP://A.EXAMPLE/X)\n````"


def test_the_words_and_calls_of_a_model_are_shown_as_they_come(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, READ, Said(text="It has three lines."))
    editor = Editor()
    assert said(editor, place.root, "/song-writer a song about @notes.txt") == "end_turn"
    (call,) = editor.of("tool_call")
    assert (call.title, call.kind, call.status) == ("read notes.txt", "read", "in_progress")
    assert [one.path for one in call.locations] == [str(place.root / "notes.txt")]
    assert call.raw_input == {"file_path": "notes.txt"}
    assert editor.calls == [(call.tool_call_id, "in_progress"), (call.tool_call_id, "completed")]
    assert editor.text == "I read. \n\nIt has three lines."


@pytest.mark.requirement("JIT-12")
def test_an_edit_waits_for_the_yes_in_the_editor_and_continues_in_the_same_prompt(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, WRITE, Said(text="Done."))
    editor = Editor("allow")
    assert said(editor, place.root, "/song-writer a song") == "end_turn"
    ((asked, options),) = editor.asked
    (call,) = editor.of("tool_call")
    assert (asked.tool_call_id, asked.title, asked.kind) == (call.tool_call_id, "write notes.txt", "edit")
    assert "-one" in asked.content[0].content.text and "+row, row" in asked.content[0].content.text
    assert [option.kind for option in options] == ["allow_once", "allow_always", "reject_once"]
    assert [status for _, status in editor.calls] == ["in_progress", "pending", "in_progress", "completed"]
    assert (place.root / "notes.txt").read_text() == "row, row\n"
    assert editor.text == "I will write. \n\nDone."


@pytest.mark.requirement("JIT-12")
def test_an_edit_of_a_file_that_nobody_named_ends_after_one_yes(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    file = place.root / "unnamed.txt"
    says(server, Said(calls=[("edit", edit_of(file))]), Said(text="It is longer."))
    editor = Editor("allow")
    assert said(editor, place.root, "/song-writer a song") == "end_turn"
    assert len(editor.asked) == 1 and file.read_text() == "first\nsecond\n"


@pytest.mark.requirement("JIT-12")
def test_after_a_no_nothing_is_changed(with_model: Kernel, place: Place, server: WireServer) -> None:
    says(server, WRITE, Said(text="Done."))
    before, editor = (place.root / "notes.txt").read_bytes(), Editor("reject")
    assert said(editor, place.root, "/song-writer a song") == "end_turn"
    assert (place.root / "notes.txt").read_bytes() == before
    assert editor.calls[-1][1] == "failed" and "Done." not in editor.text


@pytest.mark.requirement("SAF-1")
def test_a_yes_for_the_session_ends_with_it_and_is_the_most_that_is_offered(place: Place) -> None:
    async def script(editor: Editor) -> None:
        first = await editor.opens(place.root)
        assert await editor.says(first, "/loud-stranger hello") == "end_turn"
        await editor.says(first, "/loud-stranger again")
        assert len(editor.asked) == 1
        second = await editor.opens(place.root)
        await editor.says(second, "/loud-stranger hello")
        assert len(editor.asked) == 2

    editor = Editor("allow_session", "reject")
    talk(editor, script)
    assert [(one.option_id, one.kind) for one in editor.asked[0][1]] == [
        ("allow", "allow_once"),
        ("allow_session", "allow_always"),
        ("reject", "reject_once"),
    ]
    assert editor.text.count("HELLO") == 1 and "AGAIN" in editor.text
    assert (
        place.json(
            "ask",
            "/loud-stranger hello",
        )["report"]["state"]
        == "pending"
    )


@pytest.mark.requirement("SAF-1", "X-43")
def test_no_message_and_no_unknown_choice_is_a_yes(place: Place) -> None:
    async def script(editor: Editor) -> None:
        session = await editor.opens(place.root)
        await editor.says(session, "/loud-stranger hello")
        await editor.says(session, "yes")
        await editor.says(session, "always")

    editor = Editor("always")
    talk(editor, script)
    assert "HELLO" not in editor.text and len(editor.asked) == 1


@pytest.mark.wide
def test_the_steps_of_a_workflow_are_a_plan_whose_states_change(place: Place) -> None:
    editor = Editor("allow")
    assert said(editor, place.root, STEPS) == "end_turn"
    assert [entry.content for entry in editor.of("plan")[0].entries] == [
        "make a report of the data in @notes.txt → csv-report",
        "count the words in the report → word-count",
    ]
    assert editor.plans == [
        ["pending", "pending"],
        ["in_progress", "pending"],
        ["completed", "pending"],
        ["completed", "in_progress"],
        ["completed", "completed"],
    ]
    assert [status for _, status in editor.calls] == ["pending", "in_progress", "completed"]


@pytest.mark.wide
def test_a_failing_step_is_not_repeated_forever_by_a_client_that_agrees_to_everything(place: Place) -> None:
    (place.root / "notes.txt").write_bytes(b"")
    editor = Editor(*["allow"] * 20)
    assert said(editor, place.root, STEPS) == "end_turn"
    assert len(editor.asked) == 2  # SAF-5
    assert editor.text.endswith("csv-report ended with exit code 1: the file is empty")
    assert editor.plans[-1][1] == "pending"


def test_a_question_ends_the_turn_and_the_next_prompt_answers_it(place: Place) -> None:
    async def script(editor: Editor) -> str:
        session = await editor.opens(place.root)
        assert await editor.says(session, "/word-count") == "end_turn"
        asked = editor.text
        await editor.says(session, "one two three")
        return asked

    editor = Editor()
    assert "text" in talk(editor, script)
    assert "3 words" in editor.text and editor.asked == []


@pytest.mark.parametrize(("mode", "told"), [("failed", "its server failed (500)"), ("cut", "the connection broke")])
def test_a_model_failure_is_shown_with_a_hint_and_the_session_continues(
    place: Place, home: Path, server: WireServer, mode: str, told: str
) -> None:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server, default=f"there:{mode}"))

    async def script(editor: Editor) -> None:
        session = await editor.opens(place.root)
        assert await editor.says(session, "/song-writer a song") == "end_turn"
        assert await editor.says(session, "/shout hello") == "end_turn"

    editor = Editor()
    talk(editor, script)
    failure, _, after = editor.text.partition("shout done")
    assert told in failure and "navigator model use" in failure and "HELLO" in after
    assert failure.startswith("Hello, all is ") == (mode == "cut")


def test_cancelling_ends_the_turn_and_its_processes(place: Place) -> None:
    async def script(editor: Editor) -> str:
        session = await editor.opens(place.root)
        turn = asyncio.ensure_future(editor.says(session, "/doze now"))
        folder = await begun(place.root)
        with pytest.raises(RequestError, match="another prompt"):
            await editor.says(session, "/shout hello")
        await editor.agent.cancel(session_id=session)
        stopped = await turn
        assert await all_gone(folder)
        assert await editor.says(session, "/shout hello") == "end_turn"
        return stopped

    editor = Editor()
    assert talk(editor, script) == "cancelled"
    assert "HELLO" in editor.text
    assert place.runs()[0][-1]["type"] == "RunCancelled"


def test_cancelling_at_a_question_does_nothing_that_was_asked(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, WRITE, Said(text="Done."))
    before, editor = (place.root / "notes.txt").read_bytes(), Editor(CANCEL)
    assert said(editor, place.root, "/song-writer a song") == "cancelled"
    assert (place.root / "notes.txt").read_bytes() == before
    assert editor.calls[-1][1] == "failed"


def test_cancelling_ends_what_the_person_agreed_to(place: Place) -> None:
    async def script(editor: Editor) -> str:
        session = await editor.opens(place.root)
        turn = asyncio.ensure_future(editor.says(session, "!sleep 50"))
        await editor.until(
            lambda: editor.calls[-1:] != [] and editor.calls[-1][1] == "in_progress" and bool(editor.asked)
        )
        await editor.agent.cancel(session_id=session)
        return await turn

    editor = Editor("allow")
    assert talk(editor, script) == "cancelled"
    assert len({call for call, _ in editor.calls}) == 1 and editor.calls[-1][1] == "failed"


def test_cancelling_while_a_model_is_silent_ends_at_once(place: Place, home: Path, server: WireServer) -> None:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server, default="there:hangs"))

    async def script(editor: Editor) -> str:
        session = await editor.opens(place.root)
        turn = asyncio.ensure_future(editor.says(session, "/song-writer a song"))
        await editor.until(lambda: "song-writer" in editor.thoughts)
        await editor.agent.cancel(session_id=session)
        async with asyncio.timeout(25):  # the model stays silent for 30 s
            return await turn

    assert talk(Editor(), script) == "cancelled"


@pytest.mark.wide
def test_prompts_of_two_sessions_of_a_folder_run_side_by_side(place: Place) -> None:
    async def script(editor: Editor) -> list[str]:
        first, second = await editor.opens(place.root), await editor.opens(place.root)
        slow = asyncio.ensure_future(editor.says(first, "/doze now"))
        folder = await begun(place.root)
        ended = [await editor.says(second, "/shout hello")]
        assert not slow.done()
        await editor.agent.cancel(session_id=first)
        assert await all_gone(folder)
        return [*ended, await slow, await editor.says(second, "/shout hello")]

    editor = Editor()
    assert talk(editor, script) == ["end_turn", "cancelled", "end_turn"]
    assert editor.text.count("HELLO") == 2


def test_toasts_and_progress_are_cleaned_thoughts_and_refreshes_are_not_shown(tmp_path: Path) -> None:
    toast = UICommand(type="toast", payload={"message": "task\x1b[31m deleted"})
    refresh = UICommand(type="refresh", payload={"what": "tasks"})
    bodies: list[Body] = [toast, refresh, Progress(text="half way")]
    shown: list[Any] = [
        update
        for seq, body in enumerate(bodies)
        for update in Updates(tmp_path, "s").of(Event(run="r", turn=0, step=0, seq=seq, ts="", parent=None, body=body))
    ]
    assert [update.content.text for update in shown] == ["task deleted\n", "half way\n"]
    assert {update.session_update for update in shown} == {"agent_thought_chunk"}


@pytest.mark.requirement("JIT-12")
def test_a_question_about_a_long_change_is_not_cut(tmp_path: Path) -> None:
    updates = Updates(tmp_path, "s")
    question = "let it change notes.txt:\n" + "+line\n" * 60_000 + "+the end"
    updates.ask(question)
    shown: Any = updates.question(question)
    assert shown.content[0].content.text == f"```\n{question}\n```"


def test_an_image_is_an_error_and_a_link_is_a_mention(place: Place) -> None:
    link = resource_link_block("notes.txt", (place.root / "notes.txt").as_uri())

    async def script(editor: Editor) -> None:
        session = await editor.opens(place.root)
        with pytest.raises(RequestError, match="image"):
            await editor.says(session, image_block("aGVsbG8=", "image/png"))
        assert await editor.says(session, "/word-count", link) == "end_turn"

    editor = Editor()
    talk(editor, script)
    assert "3 words" in editor.text
