"""The ports between the layers: services that a stage or an agent may use without knowing how they are implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

if TYPE_CHECKING:  # for a faster start: modules needed only for types are not imported
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from datetime import date
    from pathlib import Path

    from navigator_kernel.adapters.clock import TimedIds
    from navigator_kernel.adapters.files.writer import FolderWriter
    from navigator_kernel.adapters.mcp_client.servers import Servers
    from navigator_kernel.adapters.stores.journal import SqliteJournal
    from navigator_kernel.adapters.stores.lessons import Lessons as Lessons
    from navigator_kernel.adapters.stores.preferences import Preferences
    from navigator_kernel.adapters.stores.run_log import JsonLinesLog
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.events import Event
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.sandbox.consents import ConsentStore
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
    from navigator_kernel.skills.catalog.executor import SkillExecutor
    from navigator_kernel.skills.commands.lifecycle import Lifecycle
    from navigator_kernel.skills.source.mapping import SkillMapping
    from navigator_kernel.values.job import Job, Outcome
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.report import Report
    from navigator_kernel.values.request import FileReference
    from navigator_kernel.values.route import Action, Retrieval


class Audit(Protocol):
    def record(self, event: str, /, **facts: Any) -> None:
        """Appends an entry: `authorised`, `refused`, `trusted`, `distrusted`, `started`, `ended`, `changed` (skills),
        `accepted` (a scanner's block) or `wrote`. KernelError if it cannot be stored; the caller then must not carry
        out the action."""


class NullAudit:
    """Implements `Audit` and stores nothing."""

    def record(self, _event: str, /, **_facts: Any) -> None:
        return


class Clock(Protocol):
    def now(self) -> str:
        """The time in ISO 8601, UTC, with milliseconds and a final `Z`."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary fixed point."""


class FileReader(Protocol):
    def read(self, written: str) -> tuple[Path, str]:
        """The real path and the text of an `@path`; KernelError if it cannot be read (PRE-8)."""

    def find(self, text: str, today: date) -> tuple[FileReference, ...]:
        """The files and folders that `text` names in plain words (`language/targets.py`)."""


class Router(Protocol):
    def recognise(self, text: str) -> Action | None:
        """Tier 1: an exact name, or a protocol verb with its object (X-28)."""

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        """Tier 2: the best resources for `text`, with calibrated probabilities; `files` are the files that it names."""


class Sandbox(Protocol):
    async def run(self, job: Job) -> Outcome:
        """Runs the job to its end; its whole process tree has ended on return. ConsentNeeded, Refused or NoSandbox if
        it must not or cannot run."""


@runtime_checkable
class Agent(Protocol):
    """A subagent. It receives a packet as YAML and nothing else (PKT-1)."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> Sequence[str]: ...

    @property
    def description(self) -> str: ...

    async def handle(self, prompt: str) -> object:
        """Carries out a packet. The kernel turns any result into a valid report, KernelErrors into typed ones."""


class AgentPorts(Struct, frozen=True, kw_only=True):
    """The services that an agent may use. `shipped` maps `bin/<name>.py` to its digest here, `release` is the folder of
    scripts, `answers` are those that the kernel answers. `workspace` creates a run's folder."""

    root: Path
    catalogue: Catalogue
    sandbox: Sandbox
    consents: Consents
    lifecycle: LifecyclePort
    mcp: McpServers
    clock: Clock
    scripts: Mapping[str, Path]
    shipped: Mapping[str, str]
    workspace: Callable[[str], Path]
    release: Path | None = None
    answers: Mapping[str, Callable[[Sequence[str]], tuple[int, str]]] = field(default_factory=dict)


class ProjectPorts(Struct, frozen=True, kw_only=True):
    """The parts of a project that a plugin gets. Its own files lie in the folder `state` and are written with `writer`.
    `encoder` returns the encoder that messages are matched with, or None."""

    root: Path
    state: Path
    writer: Writer
    encoder: Callable[[], Encoder | None]


class Dispatcher(Protocol):
    """Sends packets to agents, here or on another machine, at least once; packets have an idempotency key."""

    async def submit(self, packet: Packet) -> str:
        """Starts or queues a task and returns its id."""

    def events(self, task: str) -> AsyncIterator[Event]: ...

    async def result(self, task: str) -> Report:
        """The report of the task, always a valid one."""

    async def cancel(self, task: str) -> None: ...

    def heartbeat(self, task: str) -> float:
        """Seconds since the task last gave a sign of life; NotFound for an unknown task."""


if TYPE_CHECKING:  # parts of which there is one kind: each name is that of a class
    Catalogue: TypeAlias = ResourceCatalogue
    Consents: TypeAlias = ConsentStore
    Executor: TypeAlias = SkillExecutor
    Ids: TypeAlias = TimedIds
    Journal: TypeAlias = SqliteJournal
    Kernel: TypeAlias = Project
    KnownSkills: TypeAlias = SkillMapping
    LifecyclePort: TypeAlias = Lifecycle
    McpServers: TypeAlias = Servers
    MemorySearch: TypeAlias = Preferences
    RunLog: TypeAlias = JsonLinesLog
    Writer: TypeAlias = FolderWriter
