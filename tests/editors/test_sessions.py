"""Each session of an editor is one session of the kernel, in the folder that the editor names."""

from __future__ import annotations

from pathlib import Path

import pytest
from acp import RequestError

from cli.support import Place, below, place_in, type_a
from editors.editor import Editor, said, talk
from models.wire_server import HELLO, WireServer
from navigator_acp.agent import COMMANDS, DESCRIBED
from navigator_kernel import Kernel
from specialist.turns import of_phase_two, says
from tables import cases

SKILLS = ".claude/skills"


def test_initialize_returns_the_protocol_version_the_name_and_the_capabilities(place: Place) -> None:
    async def script(editor: Editor) -> None:
        first = await editor.agent.initialize(protocol_version=1)
        assert (first.protocol_version, first.agent_info.name, first.agent_capabilities.load_session) == (
            1,
            "navigator",
            True,
        )
        assert first.auth_methods == [] and first.agent_capabilities.prompt_capabilities.image is False
        assert (await editor.agent.initialize(protocol_version=99)).protocol_version == 1

    talk(Editor(), script)


def test_a_session_that_is_loaded_shows_its_history_and_continues(
    with_model: Kernel, place: Place, server: WireServer
) -> None:
    says(server, HELLO)

    async def first(editor: Editor) -> str:
        session = await editor.opens(place.root)
        await editor.says(session, "hello there")
        return session

    name = talk(Editor(), first)

    async def second(editor: Editor) -> None:
        await editor.agent.load_session(cwd=str(place.root), session_id=name, mcp_servers=[])
        assert [update.content.text for update in editor.of("user_message_chunk")] == ["hello there"]
        assert editor.text == HELLO.text
        await editor.until(lambda: bool(editor.of("available_commands_update")))
        await editor.says(name, "and once more")

    talk(Editor(), second)
    asked = [[one["content"] for one in body["messages"][1:]] for body in of_phase_two(server)]
    assert "hello there" in asked[-1]
    (kept,) = place.json("session", "list")["sessions"]
    assert (kept["id"], kept["turns"]) == (name, 2)


@cases("cwd, session, told")
def test_a_session_or_folder_that_is_not_there_is_an_error(place: Place, cwd: str, session: str, told: str) -> None:
    where = cwd.format(root=place.root)

    async def script(editor: Editor) -> None:
        with pytest.raises(RequestError, match=told):
            await editor.agent.load_session(cwd=where, session_id=session, mcp_servers=[])
        if where != str(place.root):
            with pytest.raises(RequestError, match=told):
                await editor.agent.new_session(cwd=where, mcp_servers=[])
        with pytest.raises(RequestError, match="no session is called"):
            await editor.says(session, "hello")
        await editor.agent.cancel(session_id=session)

    talk(Editor(), script)


@pytest.mark.wide
def test_each_folder_is_a_project_of_its_own(place: Place, tmp_path: Path) -> None:
    other = place_in(tmp_path / "other")
    other.write({"notes.txt": "just one line of five words\n"})

    async def script(editor: Editor) -> None:
        here, there = await editor.opens(place.root), await editor.opens(other.root)
        await editor.says(here, "/word-count @notes.txt")
        await editor.says(there, "/word-count @notes.txt")
        assert await editor.says(there, "/shout hello") == "end_turn"

    editor = Editor()
    talk(editor, script)
    assert "3 words" in editor.text and "6 words" in editor.text and "HELLO" not in editor.text
    assert len(place.runs()) == 1 and len(other.runs()) == 2


def test_skills_that_are_switched_on_are_commands(place: Place) -> None:
    place.write(below(f"{SKILLS}/noisy", type_a("noisy", "", description=f'"says \\u202ered {"x" * 500}"')))
    place.run("skill", "disable", "doze")
    editor = Editor()

    async def script(editor: Editor) -> None:
        await editor.opens(place.root)
        await editor.until(lambda: bool(editor.of("available_commands_update")))

    talk(editor, script)
    found = {one.name: one for one in editor.of("available_commands_update")[0].available_commands}
    assert {"shout", "song-writer", "word-count", "noisy"} <= set(found) and "doze" not in found
    assert "\u202e" not in found["noisy"].description and len(found["noisy"].description) == DESCRIBED
    assert place.json("acp", "--check")["commands"] == sorted(found)


def test_no_more_commands_are_offered_than_a_menu_holds(place: Place) -> None:
    for number in range(COMMANDS + 5):
        place.write(below(f"{SKILLS}/many-{number:03}", type_a(f"many-{number:03}", "print('hi')\n")))
    assert len(place.json("acp", "--check")["commands"]) == COMMANDS
    editor = Editor("reject")
    said(editor, place.root, f"/many-{COMMANDS + 4}")
    assert len(editor.asked) == 1


@pytest.mark.requirement("SAF-1", "X-43")
def test_a_project_that_an_editor_opens_grants_and_runs_nothing(place: Place) -> None:
    """Its files are those of a stranger: settings, a server, a plugin, and a session."""
    place.write({
        "navigator.toml": '[policy]\nallow = ["type_a:loud-stranger"]\n[models]\ndefault = "openai:gpt"\n',
        ".mcp.json": '{"mcpServers": {"evil": {"command": "touch", "args": ["made-by-server"]}}}',
        "agents/evil/agent.py": "open('made-by-plugin', 'w')\n",
        "agents/evil/brief.md": "evil",
        "mybox/state/sessions.json": "{}",
    })  # fmt: skip
    editor = Editor("reject")
    assert said(editor, place.root, "/loud-stranger hello") == "end_turn"
    assert len(editor.asked) == 1 and "HELLO" not in editor.text
    assert list(place.root.rglob("made-by-*")) == []
