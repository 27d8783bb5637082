"""Guarded tools are those that a skill declares and a person allows; they ask if a tool says so and report calls."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatch.orders import StillClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.agent_loop.specialist import without_commands
from navigator_kernel.config.settings import Policy
from navigator_kernel.errors import ConsentNeeded, Refused
from navigator_kernel.events import UICommand
from navigator_kernel.sandbox.consents import ConsentStore
from navigator_kernel.text import Language
from navigator_kernel.tools.guarded import GuardedTools, subject_of
from navigator_kernel.values.chat import GuardedTool, Result, ToolCall, ToolSpec, filled
from navigator_kernel.values.work import AgentTask, ToolAnswer
from specialist.at_work import WORK, Table
from tables import cases


@dataclass
class Tool:
    name: str
    result: Result = field(default_factory=Result)
    effects: tuple[str, ...] = ()
    confirm: str = ""
    ran: list[Mapping[str, Any]] = field(default_factory=list)

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec(name=self.name, description=self.name)

    async def run(self, arguments: Mapping[str, Any]) -> Result:
        self.ran.append(arguments)
        return self.result


@dataclass
class Served(Tool):
    """A tool of a server that declares itself read-only."""

    identity: str = "mcp_tool:t@sha256:0"
    only_reads: bool = True
    outward: bool = True


def known(tool: Tool) -> GuardedTool:
    """The tool with all that it says about itself."""
    more = {name: value for name, value in vars(tool).items() if name in {"identity", "only_reads", "outward"}}
    read = GuardedTool(name=tool.name, spec=tool.spec, run=tool.run, effects=tool.effects, confirm=tool.confirm)
    return replace(read, **more)


def no_consents() -> ConsentStore:
    """Consents that nobody has given yet."""
    return ConsentStore(Path("no-such-folder/trust.json"), FolderWriter([]), StillClock())


@dataclass
class Record:
    entries: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def record(self, event: str, /, **facts: Any) -> None:
        self.entries.append((event, facts))


def desk(
    *tools: Tool, policy: Policy | None = None, book: ConsentStore | None = None, record: Record | None = None
) -> GuardedTools:
    held = {tool.name: known(tool) for tool in tools}
    return GuardedTools(
        tools=lambda: held,
        always=Table(),
        consents=book or no_consents(),
        audit=record or Record(),
        policy=policy or Policy(),
    )


def work(*tools: str, language: Language = "en") -> AgentTask:
    return replace(WORK, skill="sailor", tools=tools, language=language)


def call(held: GuardedTools, order: AgentTask, name: str, **arguments: Any) -> ToolAnswer:
    return asyncio.run(held.call(order, ToolCall(id="call-1", name=name), arguments))


def offered(held: GuardedTools, order: AgentTask) -> list[str]:
    return [spec.name for spec in held.offered(order)]


@pytest.mark.requirement("JIT-1", "JIT-5")
def test_a_skill_sees_what_it_declares_and_nothing_else() -> None:
    held = desk(Tool("row"), Tool("sail"), Tool("sink"))
    assert offered(held, work("sail", "row", "no-such-tool", "sail")) == ["look_up", "sail", "row"]
    assert offered(held, work()) == ["look_up"]


def directly(*tools: Tool, policy: Policy | None = None, book: ConsentStore | None = None) -> GuardedTools:
    """Guarded tools of servers for messages without a skill."""
    return replace(
        desk(Tool("row"), policy=policy, book=book), direct=lambda: {tool.name: known(tool) for tool in tools}
    )


@pytest.mark.requirement("JIT-5")
def test_a_message_without_a_skill_has_the_tools_of_servers_and_no_plugins() -> None:
    held = directly(Served("look"), Served("send", only_reads=False))
    assert offered(held, WORK) == ["look_up", "look", "send"]
    assert offered(held, work()) == ["look_up"]
    assert call(held, WORK, "row").failed and call(held, work(), "look").failed


@pytest.mark.requirement("JIT-12", "X-43")
def test_there_a_tool_that_only_reads_asks_once_data_could_leave_with_the_call() -> None:
    look, inside = Served("look", confirm="Call look?"), Served("inside", confirm="Call inside?", outward=False)
    held = directly(look, inside)
    assert not call(held, WORK, "look", at="sea").failed and not call(held, WORK, "inside").failed
    for order in (WORK, replace(WORK, private=True)):
        with pytest.raises(ConsentNeeded, match="send them out"):
            call(held, order, "look", at="sky")
    assert not call(held, WORK, "inside").failed and look.ran == [{"at": "sea"}]


@pytest.mark.requirement("JIT-12", "SAF-1")
def test_one_that_asks_runs_only_after_a_yes_to_the_same_arguments() -> None:
    sink, book = Tool("sink", confirm="Sink {boat}?"), no_consents()
    held = desk(sink, book=book)
    with pytest.raises(ConsentNeeded) as caught:
        call(held, work("sink"), "sink", boat="Ann")
    assert caught.value.message == 'Sink Ann? sink {"boat": "Ann"}'
    assert (caught.value.data["arguments"], sink.ran) == ({"boat": "Ann"}, [])
    book.allow("run-1", caught.value.data["subject"], once=True)
    assert not call(held, work("sink"), "sink", boat="Ann").failed
    for boat in ("Bob", "Ann"):  # other arguments, then the same ones again
        with pytest.raises(ConsentNeeded):
            call(held, work("sink"), "sink", boat=boat)
    assert sink.ran == [{"boat": "Ann"}]


@pytest.mark.requirement("JIT-12")
def test_a_call_that_was_under_way_when_the_process_was_killed_is_made_again_by_a_yes_alone() -> None:
    sink, book = Tool("sink"), no_consents()
    held, order = desk(sink, book=book), replace(work("sink"), begun="call-1")
    with pytest.raises(ConsentNeeded) as caught:
        call(held, order, "sink", boat="Ann")
    assert "may have had an effect" in caught.value.message and 'sink {"boat": "Ann"}' in caught.value.message
    book.allow("run-1", caught.value.data["subject"], once=True)
    with pytest.raises(ConsentNeeded):
        call(held, order, "sink", boat="Bob")
    assert not call(held, order, "sink", boat="Ann").failed
    assert sink.ran == [{"boat": "Ann"}]


def test_a_subject_is_its_arguments_in_any_order() -> None:
    first, other = ToolCall(id="1", name="t"), ToolCall(id="2", name="t")
    tool, held = known(Tool("t")), work("t")
    assert subject_of(first, {"a": 1, "b": 2}, tool, held) == subject_of(first, {"b": 2, "a": 1}, tool, held)
    pairs = [(first, {"a": 1}), (first, {"a": 2}), (other, {"a": 1})]
    assert len({subject_of(one, arguments, tool, held) for one, arguments in pairs}) == 3


@pytest.mark.requirement("X-43")
def test_a_yes_to_a_call_is_bound_to_the_tool_and_to_the_bytes_of_the_skill() -> None:
    one, held = ToolCall(id="1", name="t"), work("t")
    other = replace(held, digest="sha256:other")
    renamed = replace(held, skill="another")
    changed = Served("t", identity="mcp_tool:t@sha256:other")
    pairs = [(Tool("t"), held), (Tool("t"), other), (Tool("t"), renamed), (changed, held)]
    subjects = {subject_of(one, {}, known(tool), where) for tool, where in pairs}
    assert len(subjects) == 4


@pytest.mark.requirement("TOL-4")
@pytest.mark.parametrize(
    ("result", "language", "text"),
    [
        (Result(value={"id": 1}), "en", '{"id": 1}'),
        (Result(value="well"), "en", "well"),
        (Result(), "en", "done"),
        (Result(), "zh", "操作成功"),
        (Result(value=[]), "zh", "操作成功: []"),
        (Result(value=0), "en", "0"),
        (Result(value=False), "en", "false"),
        (Result(error="no wind"), "en", "failed: no wind"),
        (Result(error="没有风"), "zh", "操作失败: 没有风"),
        (Result(value="a\x1b[31mb"), "en", "ab"),
    ],
)
def test_every_answer_has_one_form(result: Result, language: Language, text: str) -> None:
    answer = call(desk(Tool("sail", result)), work("sail", language=language), "sail")
    assert (answer.text, answer.failed) == (text, bool(result.error))


@pytest.mark.requirement("EVT-2", "EVT-3")
def test_commands_come_of_declared_effects_after_success() -> None:
    effects = ("refresh:boats", "toast:{name} sails", "navigate:/boats/{id}", "modal:boat", "toast", "nonsense:x")
    answer = call(desk(Tool("sail", Result(value={"id": 3, "name": "Ann"}), effects)), work("sail"), "sail")
    assert answer.commands == (
        UICommand(type="refresh", payload={"target": "boats"}),
        UICommand(type="toast", payload={"message": "Ann sails", "type": "success"}),
        UICommand(type="navigate", payload={"target": "/boats/3"}),
        UICommand(type="modal", payload={"target": "boat"}),
        UICommand(type="toast", payload={"message": "sail: done", "type": "success"}),
    )
    assert call(desk(Tool("sail", Result(error="no"), effects)), work("sail"), "sail").commands == ()


@pytest.mark.requirement("EVT-7")
def test_each_call_is_on_record() -> None:
    record = Record()
    call(desk(Tool("sail"), record=record), work("sail"), "sail", to="sea")
    assert [
        (
            event,
            facts["subject"]
            == subject_of(ToolCall(id="call-1", name="sail"), {"to": "sea"}, known(Tool("sail")), work("sail")),
        )
        for event, facts in record.entries
    ] == [
        ("started", True),
        ("ended", True),
    ]
    (_, began), (_, ended) = record.entries
    assert (began["run"], began["actor"], began["skill"]) == ("run-1", "tool", "sailor")
    assert (ended["run"], ended["how"]) == ("run-1", "done")


def test_a_field_is_filled_once() -> None:
    assert filled("{a} {b} {c}", {"a": "{b}", "b": 2}) == "{b} 2 {c}"


@pytest.mark.requirement("EVT-2")
@cases("text, kept")
def test_only_valid_ui_commands_are_removed_from_text(text: str, kept: str) -> None:
    assert without_commands(text) == kept


@dataclass
class Files(Table):
    """Built-in tools: `fetch` reaches others, and `forbidden` is refused before anybody is asked."""

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(name=name, description=name) for name in ("read", "fetch", "forbidden"))

    def reaching(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> GuardedTool | None:
        if call.name == "forbidden":
            raise Refused("it \x1b[1mmay not", hint="leave it", reason="place")
        return known(Tool("fetch", confirm="Fetch it?")) if call.name == "fetch" else None


def test_a_refused_built_in_tool_is_reported_with_its_hint_and_audited() -> None:
    record = Record()
    held = replace(desk(record=record), built_in=Files())
    answer = call(held, work(), "forbidden")
    assert (answer.failed, "it may not (leave it)" in answer.text) == (True, True)
    (entry,) = record.entries
    facts = {"run": "run-1", "subject": "tool:forbidden", "skill": "sailor", "reason": "place"}
    assert (entry[0], {key: entry[1][key] for key in facts}) == ("refused", facts)
    assert "\x1b" not in entry[1]["why"] and "may not" in entry[1]["why"]


def test_after_a_built_in_tool_gave_data_what_goes_outward_asks() -> None:
    held = replace(desk(Tool("send")), built_in=Files({"moon": "far"}))
    assert not call(held, work("send"), "send").failed
    call(held, work("send"), "read", path="x")
    with pytest.raises(ConsentNeeded):
        call(held, work("send"), "send")


def test_a_built_in_tool_that_reaches_others_is_asked_about_like_one_of_theirs() -> None:
    with pytest.raises(ConsentNeeded, match="Fetch it"):
        call(replace(desk(), built_in=Files()), work(), "fetch", url="x")


@pytest.mark.requirement("JIT-12")
def test_a_yes_to_a_tool_that_only_reads_is_for_one_call_and_one_for_the_session_for_all() -> None:
    look, book = Served("look", confirm="Look?", outward=False), no_consents()
    held, order = desk(look, book=book), work("look")
    with pytest.raises(ConsentNeeded) as caught:
        call(held, order, "look", at="sea")
    lasting, (precise,) = str(caught.value.data["subject"]), caught.value.data["also"]
    for subject in (lasting, precise):
        book.allow("run-1", subject, once=True)
    with pytest.raises(ConsentNeeded):
        call(held, order, "look", at="sky")
    assert not call(held, order, "look", at="sea").failed
    with pytest.raises(ConsentNeeded):
        call(held, order, "look", at="sea")
    book.allow("run-1", lasting)
    assert not call(held, order, "look", at="sky").failed and not call(held, order, "look", at="sky").failed


@pytest.mark.requirement("JIT-12", "SAF-5")
def test_a_call_that_was_under_way_and_needs_a_yes_of_its_own_asks_both_in_one_question() -> None:
    sink, book = Tool("sink", confirm="Sink {boat}?"), no_consents()
    held, order = desk(sink, book=book), replace(work("sink"), begun="call-1")
    with pytest.raises(ConsentNeeded) as caught:
        call(held, order, "sink", boat="Ann")
    assert "may have had an effect" in caught.value.message and "Sink Ann?" in caught.value.message
    for subject in (caught.value.data["subject"], *caught.value.data["also"]):
        book.allow("run-1", subject, once=True)
    assert not call(held, order, "sink", boat="Ann").failed


@pytest.mark.requirement("JIT-12")
def test_long_arguments_are_shown_whole_and_too_long_ones_are_refused() -> None:
    sink = Tool("sink", confirm="Sink?")
    middle = f"{'a' * 40_000}; rm -rf important{' ' * 2_000}{'b' * 40_000}"
    with pytest.raises(ConsentNeeded) as caught:
        call(desk(sink), work("sink"), "sink", boat=middle)
    assert f"{'a' * 40_000}; rm -rf important␠×2000{'b' * 40_000}" in caught.value.message
    answer = call(desk(sink), work("sink"), "sink", boat="a" * 100_000)
    assert answer.failed and "too long to show" in answer.text and not sink.ran
