"""A project in tmp_path with real parts: catalogue, lifecycle, consents, sandbox gate, and the three shipped agents."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from dispatch.orders import order
from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.adapters.mcp_client.servers import Servers
from navigator_kernel.adapters.processes.process import ProcessRunner
from navigator_kernel.bootstrap.places import scripts
from navigator_kernel.bootstrap.scanning.scanners import suspicions
from navigator_kernel.config.settings import Policy
from navigator_kernel.dispatch import InProcessDispatcher
from navigator_kernel.plugins import add_folders, build_manager
from navigator_kernel.ports import Agent, NullAudit
from navigator_kernel.sandbox.consents import ConsentStore
from navigator_kernel.sandbox.guard import ConsentGate
from navigator_kernel.sandbox.servers import ToolPins, starter
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.values.packet import Report

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from navigator_kernel.values.job import Job
    from navigator_kernel.values.mcp import McpServer

AGENTS = Path(__file__).resolve().parents[2] / "agents"


@dataclass
class Lifecycle:
    """Stands for the lifecycle and records its calls."""

    asked: list[tuple[Any, ...]] = field(default_factory=list)
    answer: Mapping[str, Any] = field(
        default_factory=lambda: {"source": "a/b", "commit": "", "skills": [], "left_out": []}
    )

    def _called(self, operation: str, *params: Any) -> Any:
        self.asked.append((operation, *params))
        return self.answer

    def installed(self) -> Any:
        return self._called("list")

    def search(self, query: str) -> Any:
        return self._called("search", query)

    def info(self, source: str) -> Any:
        return self._called("info", source)

    def install(self, source: str, skills: Sequence[str] = ()) -> Any:
        return self._called("install", source, list(skills))

    def uninstall(self, names: Sequence[str]) -> Any:
        return self._called("uninstall", *names)

    def enable(self, name: str) -> Any:
        return self._called("enable", name)

    def disable(self, name: str) -> Any:
        return self._called("disable", name)


@dataclass
class Place:
    """A project. `ask` sends one packet to a shipped agent, in its own run if none is named."""

    root: Path
    shipped: dict[str, str] = field(default_factory=dict)
    servers: dict[str, McpServer] = field(default_factory=dict)
    lifecycle: Lifecycle = field(default_factory=Lifecycle)
    used: list[str] = field(default_factory=list)
    contained: Callable[[Job], tuple[str, ...]] = lambda job: job.argv
    consents: ConsentStore = field(init=False)
    _held: InProcessDispatcher | None = None
    _servers: Servers | None = None

    def __post_init__(self) -> None:
        state = self.root / "state"
        self.consents = ConsentStore(state / "trust.json", FolderWriter([state]), SystemClock())

    def workspace(self, run: str) -> Path:
        folder = self.root / "mybox" / "workspace" / run
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def keep(self, run: str, server: str, body: bytes) -> Path:
        file = self.workspace(run) / f"mcp-{server}.json"
        file.write_bytes(body)
        return file

    def catalogue(self) -> ResourceCatalogue:
        roots = (Root(path=self.root / ".claude" / "skills", level="project"),)
        return ResourceCatalogue(roots=roots, shipped=self.shipped)

    def agents(self) -> dict[str, Agent]:
        gate = ConsentGate(self.consents, ProcessRunner())
        ports = SimpleNamespace(
            root=self.root,
            catalogue=self.catalogue(),
            sandbox=gate,
            consents=self.consents,
            lifecycle=self.lifecycle,
            mcp=self.client(),
            clock=SystemClock(),
            scripts=scripts(self.root),
            shipped=self.shipped,
            workspace=self.workspace,
            release=self.root / "bin",
            answer=lambda *_: None,
            record_use=self.used.append,
        )
        plugins = build_manager()
        add_folders(plugins, AGENTS, "agents")
        assert plugins.failures == []
        return {agent.name: agent for _, agent in plugins.all("kernel_register_agents", ports)}

    def client(self) -> Servers:
        gate = ConsentGate(self.consents, ProcessRunner())
        self._servers = self._servers or Servers(
            servers=self.servers,
            started=starter(gate.check, self.contained, os.environ.get),
            workspace=self.workspace,
            approve=ToolPins(self.consents, Policy(), NullAudit(), suspicions).require,
            secret=os.environ.get,
            keep=self.keep,
        )
        return self._servers

    def close(self) -> None:
        if self._servers is not None:
            self._servers.close()

    def ask(self, agent: str, target: str, operation: str = "run", *, key: str = "", **given: Any) -> Report:
        packet = order(agent, target, operation=operation, key=key or f"key-{id(given)}-{target}", **given)
        held = self._held = self._held or InProcessDispatcher(self.agents(), SystemClock())

        async def sent() -> Report:
            return await held.result(await held.submit(packet))

        return asyncio.run(sent())

    def fresh(self) -> Place:
        """The same project, as a newly started program sees it."""
        return replace(self, _held=None)

    def skill(self, name: str, command: str, code: str = "", *, shipped: bool = True, body: str = "") -> Path:
        """Writes a skill with a script `run.py`; a shipped one is known by its digest."""
        folder = self.root / ".claude" / "skills" / name
        folder.mkdir(parents=True)
        head = f"---\nname: {name}\ndescription: A skill for a test. This skill should be used when testing\n"
        head += f"command: {command}\n" if command else ""
        (folder / "SKILL.md").write_text(f"{head}---\n{body or '# ' + name}\n", encoding="utf-8")
        (folder / "run.py").write_text(code, encoding="utf-8")
        if shipped:
            self.shipped[name] = self.digest(name)
        return folder

    def digest(self, name: str) -> str:
        return self.catalogue().create_executor(f"skill:{name}").digest

    def script(self, name: str, code: str, *, listed: bool = True) -> Path:
        file = self.root / "bin" / f"{name}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(code, encoding="utf-8")
        page = self.root / "docs" / "commands.md"
        page.parent.mkdir(exist_ok=True)
        rows: Sequence[str] = (
            [page.read_text()] if page.exists() else ["| Intent | Command Signature | Note |\n|---|---|---|\n"]
        )
        page.write_text("".join(rows) + (f"| test | `python bin/{name}.py` | a test |\n" if listed else ""))
        return file


@pytest.fixture
def place(tmp_path: Path) -> Place:
    root = tmp_path / "project"
    root.mkdir()
    return Place(root=root)
