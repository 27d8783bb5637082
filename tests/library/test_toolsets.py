"""A skill in a pydantic-ai or LangChain agent has the same guards, sandbox and consent; only the person can say yes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from cli.support import Place
from navigator_kernel import Approval, Kernel
from navigator_kernel.errors import NotFound, Refused, SkillNotFound
from person_state import accept
from tools.picture_files import png

SECRETS = "file of secrets"


class Told(NamedTuple):
    """The result of a call, for the model and for the program."""

    text: str
    approval: Approval | None


Call = Callable[..., Told]


def through_pydantic_ai(kernel: Kernel, *skills: str, files: tuple[str, ...] = ()) -> Call:
    """Calls tools through an agent whose model makes one call and then answers with text."""
    toolset = kernel.as_pydantic_ai(*skills, files=files)

    def called(tool: str, **arguments: Any) -> Told:
        def script(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
            said = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
            return ModelResponse(parts=[TextPart("done") if said else ToolCallPart(tool, arguments)])

        agent = Agent(FunctionModel(script), toolsets=[toolset])
        parts = [part for message in agent.run_sync("go").all_messages() for part in message.parts]
        (answer,) = [part for part in parts if isinstance(part, ToolReturnPart)]
        return Told(str(answer.content), answer.metadata)

    return called


def through_langchain(kernel: Kernel, *skills: str, files: tuple[str, ...] = ()) -> Call:
    """Calls tools through a graph with one tool node, from synchronous code."""
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(kernel.as_langchain(*skills, files=files)))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    compiled = graph.compile()

    def called(tool: str, **arguments: Any) -> Told:
        call = AIMessage("", tool_calls=[{"name": tool, "args": arguments, "id": "1"}])
        (answer,) = [one for one in compiled.invoke({"messages": [call]})["messages"] if isinstance(one, ToolMessage)]
        return Told(str(answer.content), answer.artifact)

    return called


@pytest.fixture(params=[through_pydantic_ai, through_langchain])
def agent_of(request: pytest.FixtureRequest) -> Callable[..., Call]:
    found: Callable[..., Call] = request.param
    return found


@pytest.mark.requirement("JIT-5", "TOL-9")
def test_a_skill_is_loaded_and_its_files_are_read(kernel: Kernel, agent_of: Callable[..., Call]) -> None:
    call = agent_of(kernel, "song-writer", files=("notes.txt",))
    assert "Rhyme every line." in call("skill", name="song-writer").text
    assert call("read", file_path="references/rhymes.md") == Told("     1\tboat, float", None)
    assert call("read", file_path="notes.txt").text.endswith("3\tthree")
    assert "skill is called" in call("skill", name="stranger").text


@pytest.mark.requirement("AGT-2")
def test_a_skill_with_a_command_runs_in_the_sandbox(
    kernel: Kernel, agent_of: Callable[..., Call], place: Place
) -> None:
    call = agent_of(kernel, "shout")
    assert call("run_skill", skill="shout", arguments="hello there") == Told("HELLO THERE", None)
    (run,) = place.runs()
    entries = place.json("log", "--run", run[0]["run"])["entries"]
    assert [one["event"] for one in entries][-2:] == ["started", "ended"]


@pytest.mark.requirement("JIT-12", "SAF-1")
def test_a_tool_call_that_needs_approval_is_not_carried_out_and_returns_the_approval(
    kernel: Kernel, agent_of: Callable[..., Call], place: Place
) -> None:
    call = agent_of(kernel, "song-writer")
    given = {"file_path": str(place.root / "notes.txt"), "content": "row\n"}
    told = call("write", **given)
    assert told.approval is not None and told.text.startswith("not done: write needs the person's approval")
    assert (told.approval.tool, told.approval.arguments) == ("write", given) and "+row" in told.approval.question
    assert kernel.approvals() == (told.approval,)
    assert (place.root / "notes.txt").read_text() == "one\ntwo\nthree\n"


@pytest.mark.requirement("JIT-5")
def test_a_picture_is_described_and_reported_as_not_shown(
    kernel: Kernel, agent_of: Callable[..., Call], place: Place
) -> None:
    (place.root / ".claude/skills/song-writer/boat.png").write_bytes(png())
    accept(place.root, "song-writer")
    told = agent_of(kernel, "song-writer")("read", file_path="boat.png")
    assert told.text.startswith("boat.png is a picture (png), 4 x 3 pixels") and "is not shown here" in told.text


@pytest.mark.requirement("JIT-12", "SAF-1")
def test_a_yes_is_to_one_call_and_is_used_up_by_it(kernel: Kernel, agent_of: Callable[..., Call], place: Place) -> None:
    call = agent_of(kernel, "song-writer")
    command = {"argv": ["touch", "made.txt"]}
    told = call("run", **command)
    assert told.approval is not None
    kernel.allow(told.approval.id)
    assert call("run", argv=["touch", "other.txt"]).approval is not None
    assert call("run", **command) == Told("exit code 0\nwrote: made.txt", None)
    assert [path.name for path in place.root.glob("mybox/workspace/*/*.txt")] == ["made.txt"]
    again = call("run", **command)
    assert again.approval is not None and again.approval.id != told.approval.id
    with pytest.raises(NotFound):
        kernel.allow(told.approval.id)
    kernel.allow(again.approval.id, lasting="session")  # the right to run commands
    assert call("run", argv=["touch", "third.txt"]).approval is None


@pytest.mark.requirement("JIT-12")
def test_a_yes_to_a_change_covers_no_other_bytes(kernel: Kernel, agent_of: Callable[..., Call], place: Place) -> None:
    call = agent_of(kernel, "song-writer")
    given = {"file_path": str(place.root / "notes.txt"), "content": "row\n"}
    told = call("write", **given)
    assert told.approval is not None
    kernel.allow(told.approval.id)
    (place.root / "notes.txt").write_text("changed meanwhile\n")
    assert call("write", **given).approval is not None
    assert (place.root / "notes.txt").read_text() == "changed meanwhile\n"


@pytest.mark.requirement("JIT-12")
def test_reading_the_project_is_asked_about_once_for_a_session(
    kernel: Kernel, agent_of: Callable[..., Call], place: Place
) -> None:
    place.write({"other.txt": "other\n"})
    call = agent_of(kernel, "song-writer")
    told = call("read", file_path=str(place.root / "other.txt"))
    assert told.approval is not None
    kernel.allow(told.approval.id, lasting="session")
    assert call("read", file_path=str(place.root / "other.txt")).text == "     1\tother"
    assert call("read", file_path=str(place.root / "notes.txt")).text.endswith("three")
    assert SECRETS in call("read", file_path=str(place.root / ".env")).text


@pytest.mark.requirement("SAF-1")
def test_a_command_gets_no_file_that_the_program_did_not_name(kernel: Kernel, agent_of: Callable[..., Call]) -> None:
    call = agent_of(kernel, "shout")
    told = call("run_skill", skill="shout", arguments="notes.txt")
    assert told.approval is not None and "notes.txt" in told.approval.question
    call = agent_of(kernel, "shout", files=("notes.txt",))
    for arguments in ("@notes.txt", "a\n!touch x", "a\n/shout b"):
        assert "arguments hold no @file and no command" in call("run_skill", skill="shout", arguments=arguments).text


@pytest.mark.requirement("SAF-1")
def test_a_command_that_nobody_accepted_runs_after_a_yes_and_once(
    kernel: Kernel, agent_of: Callable[..., Call]
) -> None:
    call = agent_of(kernel, "loud-stranger")
    given: Mapping[str, Any] = {"skill": "loud-stranger", "arguments": "hello"}
    told = call("run_skill", **given)
    assert told.approval is not None
    kernel.allow(told.approval.id)
    assert call("run_skill", **given) == Told("HELLO", None)
    assert call("run_skill", **given).approval is not None


def test_tools_of_several_skills_say_for_which_one_they_are(kernel: Kernel) -> None:
    offered = {tool.name: tool for tool in kernel.as_langchain("song-writer", "code-review")}
    assert offered["read"].args["skill"] == {"type": "string", "enum": ["song-writer", "code-review"]}
    told = asyncio.run(offered["read"].ainvoke({"skill": "song-writer", "file_path": "references/rhymes.md"}))
    assert told == "     1\tboat, float"
    assert "skill" not in {tool.name: tool for tool in kernel.as_langchain("song-writer")}["read"].args


@pytest.mark.requirement("X-43")
def test_without_names_there_are_the_skills_that_the_person_accepts(kernel: Kernel) -> None:
    described = "\n".join(tool.description for tool in kernel.as_langchain())
    assert "- song-writer: " in described and "- shout: " in described and "stranger" not in described


@pytest.mark.requirement("X-43")
def test_a_skill_that_nobody_accepted_or_knows_is_refused(kernel: Kernel) -> None:
    with pytest.raises(Refused, match="neither installed nor trusted"):
        kernel.as_pydantic_ai("stranger")
    with pytest.raises(SkillNotFound):
        kernel.as_pydantic_ai("song-writter")


@pytest.mark.parametrize(
    "name", [".env", "../outside.txt", ".claude/skills/shout/run.py", "nowhere.txt", "/etc/passwd"]
)
def test_a_program_names_no_file_that_is_closed_to_tools(kernel: Kernel, name: str) -> None:
    with pytest.raises((Refused, NotFound)):
        kernel.as_langchain("song-writer", files=[name])
