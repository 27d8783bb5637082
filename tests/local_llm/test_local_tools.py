"""A real small model uses the built-in tools through a JSON schema: its calls are carried out and change the disk.

It is offered one tool at a time, in a schema with few words to choose from, and then the answer: a model this small
chooses nothing by itself. The server's grammar, the wire, the loop, the guards and the sandbox are the real ones.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cli.support import Place, place_in
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.models.chat_model import WireModel
from navigator_kernel.agent_loop.loop import AgentLoop, ApprovalRequired, End
from navigator_kernel.agent_loop.models import TextCalls
from navigator_kernel.config.settings import Models
from navigator_kernel.events import Body, Event
from navigator_kernel.tools.built_in import specs
from navigator_kernel.values.chat import Asked, Completion, ToolCall, ToolSpec
from navigator_kernel.values.work import AgentState, AgentTask, ToolAnswer
from person_state import accept
from specialist.turns import events, song
from tools.bench_of_tools import Toolbox, toolbox

pytestmark = pytest.mark.local_llm


@dataclass
class CallsThenAnswer:
    """Implements `ChatModel`: the schema of each request allows only a call of the next tool, at last only an answer."""

    inner: WireModel
    asked: int = 0
    context: int = 0

    @property
    def name(self) -> str:
        return self.inner.name

    async def complete(self, asked: Asked, told: Callable[[str], None] | None = None) -> Completion:
        self.asked += 1
        assert asked.shape is not None and not asked.tools
        *calls, answer = asked.shape["anyOf"]
        return await self.inner.complete(
            replace(asked, shape=[*calls, answer][min(self.asked, len(calls) + 1) - 1]), told
        )

    async def close(self) -> None:
        await self.inner.close()


@dataclass
class Only:
    """Implements `Tools`: some built-in tools, each with arguments limited to the values of its choices."""

    box: Toolbox
    choices: Mapping[str, Mapping[str, Sequence[str]]]

    def admit(self, work: AgentTask) -> None:
        self.box.tools.admit(work)

    def offered(self, work: AgentTask) -> tuple[ToolSpec, ...]:
        return tuple(self._limited(name) for name in self.choices)

    def _limited(self, name: str) -> ToolSpec:
        (found,) = [spec for spec in specs("en") if spec.name == name]
        fields = {name: {"type": "string", "enum": list(held)} for name, held in self.choices[name].items()}
        schema = {**found.schema, "properties": fields, "required": list(fields)}
        return ToolSpec(name=found.name, description=found.description, schema=schema)

    async def call(self, work: AgentTask, call: ToolCall, arguments: Mapping[str, Any]) -> ToolAnswer:
        return await self.box.tools.call(work, call, arguments)


def worked(
    models: Models, box: Toolbox, request: str, choices: Mapping[str, Mapping[str, Sequence[str]]]
) -> tuple[AgentState, End]:
    """Runs a request in the agent loop, with a yes to every question."""
    said: list[Event] = []

    def emit(body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        said.append(Event(run="run-1", turn=0, step=step, seq=len(said), ts="", parent=parent, body=body))
        return said[-1]

    async def run() -> tuple[AgentState, End]:
        model, progress = CallsThenAnswer(WireModel("here:smollm2", models)), None
        work = replace(box.work, request=request)
        try:
            while True:
                loop = AgentLoop(
                    work=work, model=TextCalls(model), tools=Only(box, choices), clock=SystemClock(), emit=emit
                )
                try:
                    return await loop.run(progress)
                except ApprovalRequired as waits:
                    progress = waits.progress
                    box.kernel.consents.allow(work.run, str(waits.asked.data["subject"]))
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    return toolbox(tmp_path.resolve(), named=("notes.txt",))


def told(progress: AgentState) -> list[str]:
    return [message.text for message in progress.messages if message.role == "tool"]


@pytest.mark.requirement("JIT-5", "SAF-1", "SAF-2", "AGT-3")
def test_it_reads_a_file_runs_a_script_and_writes_a_file_in_one_work(models: Models, box: Toolbox) -> None:
    before, contents = box.project(), ("Roses are red.\n", "Violets are blue.\n")
    choices = {
        "read": {"file_path": ("notes.txt", "references/colors.md")},
        "run": {"command": ("bash scripts/make.sh", "bash ./scripts/make.sh")},
        "write": {"file_path": ("poem.md", "out/poem.md"), "content": contents},
    }
    request = "Read notes.txt, run the script scripts/make.sh, then write a short poem into poem.md."
    progress, end = worked(models, box, request, choices)
    read, ran, wrote = told(progress)
    files = {name: text.splitlines() for name, text in texts(box, choices["read"]["file_path"]).items()}
    assert [line.partition("\t")[2] for line in read.splitlines()] in files.values()
    assert ran.startswith("exit code 0") and "wrote: made.txt" in ran
    assert (box.workspace / "made.txt").read_text() == "made\n"
    (file,) = box.workspace.rglob("poem.md")
    assert file.read_text() in contents and wrote == f"wrote {file} ({file.stat().st_size} bytes)"
    assert (end, progress.rounds) == ("done", 3) and progress.text and box.project() == before


def texts(box: Toolbox, names: Sequence[str]) -> dict[str, str]:
    return {
        name: next(p for p in (box.root / name, Path(box.work.folder) / name) if p.is_file()).read_text()
        for name in names
    }


@pytest.mark.requirement("JIT-5")
def test_a_whole_turn_with_all_tools_in_a_schema_comes_to_an_end_of_its_own(
    tmp_path: Path, home: Path, url: str
) -> None:
    """Whatever it calls, with whatever arguments, each call is answered and nothing outside the workspace changes."""
    file = home / ".config/navigator/config.toml"
    file.parent.mkdir(parents=True)
    limits = "retries = 0\nfirst = 200\nturn_seconds = 240"
    provider = f'[models.providers.here]\nurl = "{url}"\ntools = "schema"'
    file.write_text(f'[models]\ndefault = "here:smollm2"\n{limits}\n{provider}\n')
    here: Place = place_in(tmp_path)
    here.write({".claude/skills/song-writer/SKILL.md": song(), "notes.txt": "one\n"})
    accept(here.root, "song-writer")
    mine = digests(here.root)
    reply = here.json("ask", "--session", "s", "/song-writer write one line into song.txt")
    kinds = [event["type"] for event in events(here, reply["run"])]
    assert reply["report"]["state"] in {"success", "partial", "pending", "error"}, reply
    assert kinds.count("ToolCallStarted") == kinds.count("ToolCallCompleted") and kinds[-1] == "RunCompleted"
    assert digests(here.root) == mine


def digests(root: Path) -> dict[str, str]:
    found = (path for path in root.rglob("*") if path.is_file() and "mybox" not in path.parts)
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}
