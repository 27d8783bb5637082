"""The ports between the layers: services that a stage or an agent may use without knowing how they are implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import date
    from pathlib import Path

    from navigator_kernel.adapters.clock import TimedIds
    from navigator_kernel.adapters.files.writer import FolderWriter
    from navigator_kernel.adapters.stores.lessons import Lessons as Lessons
    from navigator_kernel.bootstrap.project import Project
    from navigator_kernel.events import ApprovalRequested, Event
    from navigator_kernel.model_ports import Encoder
    from navigator_kernel.sandbox.consents import ConsentStore
    from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
    from navigator_kernel.skills.catalog.executor import SkillExecutor
    from navigator_kernel.skills.source.mapping import SkillMapping
    from navigator_kernel.values.http.endpoint import Caller
    from navigator_kernel.values.job import Job, Outcome
    from navigator_kernel.values.packet import Packet, Report
    from navigator_kernel.values.request import FileReference, Said
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

    def find(self, text: str, today: date, whole: str = "") -> tuple[FileReference, ...]:
        """The files and folders that `text` names in plain words, and those that the `whole` message, of which it is a
        part, leaves out (`language/targets.py`)."""

    def people(self) -> Sequence[str]:
        """The authors of the project's last commits."""


class Router(Protocol):
    def recognise(self, text: str) -> Action | None:
        """Tier 1: an exact name, or a protocol verb with its object (X-28)."""

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        """Tier 2: the best resources for `text`, with calibrated probabilities; `files` are the files that it names."""

    def varied(self, names: Sequence[str]) -> Sequence[str]:
        """`names`, those of skills that do nearly the same as an earlier one last."""


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


@runtime_checkable
class PacketAgent(Agent, Protocol):
    """An agent that also takes the packet as it is, where both are in one process."""

    async def act(self, packet: Packet) -> object:
        """Does what `handle` does with the packet as YAML."""


class ProjectPorts(Struct, frozen=True, kw_only=True):
    """The parts of a project that a plugin gets. Its own files lie in the folder `state` and are written with `writer`.
    `encoder` returns the encoder that messages are matched with, or None."""

    root: Path
    state: Path
    writer: Writer
    encoder: Callable[[], Encoder | None]


class SharedStores(Protocol):
    """A database in which several hosts keep a project's state, in place of files. All methods raise StorageFailed if
    it cannot be used now, and NotLoadable if a package is missing."""

    def open(
        self, subject: str, versions: Sequence[Sequence[str]], *, beside: bool = False, claimed: str = ""
    ) -> AbstractContextManager[Any]:
        """Yields a connection to the tables of `subject`, with `execute` and `executemany` as those of `sqlite3`. Of
        `versions`, the statements that make each version of the tables, the missing ones are run first. The block
        is one transaction; without `beside` no other of the subject runs beside it. With `claimed`, Busy, and nothing
        is written, if this process has no claim of that name or has lost it."""

    def claim(self, name: str) -> AbstractContextManager[None]:
        """Claims `name`, such as a run, until the block ends. Busy if another has it; a claim of a process that does
        not renew it ends by the database's clock."""

    def place(self, name: str, most: int) -> AbstractContextManager[Callable[[], str | None]]:
        """A place behind those that wait for `name`, until the block ends. Yields a function that returns who has the
        first place; None if it is this one. Busy if more than `most` are before it."""

    def stoppable(self, name: str, stop: Callable[[str], None]) -> AbstractContextManager[None]:
        """Calls `stop` in another thread, at most once until the block ends, if a host stops the work in the first
        place for `name`, which this process has: with what it named, or "" if it named a claim of this process. Where
        this method is missing, a host stops only what it does itself."""

    def stop(self, name: str, work: str) -> bool:
        """Asks the host that has the first place for `name` to stop `work`; False if no host has it."""

    def take(self, name: str, most: float, rate: float, burst: float) -> float:
        """Takes up to `most` from the bucket `name`, which holds up to `burst` and gets `rate` a second by the
        database's clock; returns how much. Where this method is missing, each host has its own buckets."""

    def lines(self, subject: str) -> Any:
        """What `FileLines` is for files: lines by name, which one process has open, and another one after its end.
        Where this method is missing, each host keeps them in files."""


class DispatchPorts(Struct, frozen=True, kw_only=True):
    """The parts of a project that a dispatcher, or a worker on another machine, may use. `local` makes an in-process
    dispatcher that knows no task yet, `digest` returns the digest of the skill that a packet is for, empty if it is for
    none (KernelError if the skill cannot be used), and `failed` the report of an error, with the seconds it took.
    `files` are those of a packet's skill that its digest is over, by path, none for a skill of one file; `agree` says
    yes to what a run asks, as `--yes`. `named` are the files of the project that the packet lets a skill read, by path,
    `keep` records and writes a file of a run (run, name, bytes) and returns its path for messages, and `made` reads one
    that a run made (run, name, at most so many bytes; NotFound, or Refused for a link)."""

    root: Path
    clock: Clock
    local: Callable[[], Dispatcher]
    digest: Callable[[Packet], str]
    failed: Callable[[Packet, BaseException, float], Report]
    files: Callable[[Packet], Mapping[str, Path]]
    agree: Callable[[str], None]
    named: Callable[[Packet], Mapping[str, Path]]
    keep: Callable[[str, str, bytes], str]
    made: Callable[[str, str, int], bytes]
    project: ProjectPorts


class ServedRun(Struct, frozen=True, kw_only=True):
    """A run and its events to its end, in batches; an empty batch comes from time to time, for a sign of life."""

    id: str
    events: AsyncIterator[Sequence[Event]]


class ServedTurns(Protocol):
    """The turns of `navigator serve`, which an endpoint of a plugin without a `service` gets. A session has the name
    that the caller has for it; sessions and runs of other tokens do not exist for the caller."""

    async def say(self, caller: Caller, session: str, text: str) -> ServedRun:
        """Begins a run with a message, and returns it after its first event. A client that leaves does not end it.
        UsageProblem for an empty or too long message, Busy if the session has a run under way."""

    async def answer(
        self, caller: Caller, approval: str, answer: Literal["yes", "session", "no", "cancel"]
    ) -> ServedRun:
        """Begins the run that continues with the answer. HttpProblem 403 for a yes of a token that may not approve;
        NotFound if nothing waits under this id."""

    async def waiting(self, caller: Caller, session: str) -> ApprovalRequested | None:
        """The approval that the session waits for."""

    async def last(self, caller: Caller, session: str) -> ServedRun | None:
        """The run under way in the session, else its last one, with all its events."""

    async def history(self, caller: Caller, session: str, most: int) -> Sequence[Said]:
        """The last entries of the session, oldest first; NotFound for an unknown session."""


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
    AgentPorts: TypeAlias = Project
    Catalogue: TypeAlias = ResourceCatalogue
    Consents: TypeAlias = ConsentStore
    Executor: TypeAlias = SkillExecutor
    Ids: TypeAlias = TimedIds
    Kernel: TypeAlias = Project
    KnownSkills: TypeAlias = SkillMapping
    Writer: TypeAlias = FolderWriter
else:
    AgentPorts = object  # for plugins that import the name
