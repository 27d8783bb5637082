"""The ports between the layers: services that a stage or an agent may use without knowing how they are implemented."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from msgspec import Struct, field

from navigator_kernel.values.owner import Viewer
from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from datetime import date
    from pathlib import Path

    from navigator_kernel.config.settings import Settings
    from navigator_kernel.events import ApprovalRequested, Event
    from navigator_kernel.model_ports import Encoder, Judge, ModelRegistry, Specialist, Tools, Underway
    from navigator_kernel.values.chat import Spent
    from navigator_kernel.values.context import Memory
    from navigator_kernel.values.http.endpoint import Caller
    from navigator_kernel.values.job import Job, Outcome, Want
    from navigator_kernel.values.packet import Packet, Report
    from navigator_kernel.values.request import FileReference, Said, Session
    from navigator_kernel.values.resource import Diagnostic, ResourceType, SkillDef
    from navigator_kernel.values.route import Action, Retrieval
    from navigator_kernel.values.standing import Need, Standing
    from navigator_kernel.values.workflow import RunState, WorkflowPlan, WorkflowRun


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


class Ids(Protocol):
    def new(self) -> str:
        """A unique name that sorts by time: lower-case letters, digits and `-`."""


class Writer(Protocol):
    """The only way to write files. Refused for a path outside the roots that the writer was created with."""

    def together(self) -> AbstractContextManager[None]:
        """A batch: writes inside it become durable together when it ends, with one wait for the disk."""

    def write(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        """Replaces the file atomically; durable on return."""

    def write_new(self, folder: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
        """Creates a folder with files, given as path in it → (content, mode); durable on return."""

    def sweep(self, path: Path) -> int:
        """Removes files that a killed process left half-written beside `path`, and returns how many."""

    def append(self, path: Path, data: bytes) -> None:
        """Appends a record with one system call."""

    def appending(self, path: Path) -> AbstractContextManager[Callable[[bytes], None]]:
        """Like `append`, for many records of one file, which is opened once."""

    def overwrite(self, path: Path, data: bytes) -> None: ...
    def create(self, path: Path, data: bytes, *, mode: int) -> bool: ...
    def make_folder(self, path: Path) -> None: ...

    def move(self, source: Path, target: Path) -> None:
        """Renames `source`; `target` must not exist."""

    def link(self, path: Path, text: str) -> None:
        """Creates a relative symbolic link. Refused if it would lead out of the roots or if `path` exists."""

    def remove(self, path: Path, *, durable: bool = True) -> None:
        """Removes a file, a link or a folder, if it exists; without `durable`, a power failure may bring it back."""


class FileReader(Protocol):
    def read(self, written: str) -> tuple[Path, str]:
        """The real path and the text of an `@path`; KernelError if it cannot be read (PRE-8)."""

    def find(self, text: str, today: date) -> tuple[FileReference, ...]:
        """The files and folders that `text` names in plain words (`language/targets.py`)."""


class RunLog(Protocol):
    def append(self, event: Event) -> None: ...

    def read(self, run: str) -> Sequence[Event]:
        """The events of a run in order; NotFound if there is no such run."""

    def runs(self) -> Sequence[str]:
        """Run ids, newest first."""


class Executor(Protocol):
    """A resource that is ready to be used, as a prompt or as a command (REG-6)."""

    @property
    def skill(self) -> SkillDef: ...

    @property
    def digest(self) -> str:
        """The digest of the resource's folder, to which consent is bound."""

    @property
    def origin(self) -> str:
        """Source, commit and folder, as this person's install command recorded them, or empty."""

    @property
    def claimed(self) -> str:
        """Source, commit and folder as the receipt beside the skill says: data, never proof (X-43)."""

    @property
    def standing(self) -> Standing:
        """How far the person trusts the resource as it is now."""

    @property
    def is_changed(self) -> bool:
        """Whether the resource differs from its installed version."""

    @property
    def wants(self) -> tuple[Want, ...]:
        """Permissions that it needs besides its own folder and the files that it gets."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The Python packages that its command declares."""

    @property
    def consent(self) -> str:
        """The subject of consent to its command: digest, origin and wanted permissions."""

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Commands in its text whose output is inserted (X-4)."""

    def prompt(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
    ) -> str:
        """Both `parts` as one text."""

    def parts(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
        written: str = "",
    ) -> tuple[str, str]:
        """The system text and the filled request template, each substituted once (FMT-3, FMT-4, X-26)."""

    def argv(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> tuple[str, ...]:
        """The command; each placeholder becomes one argument."""

    def backend(self, asked: str = "") -> str:
        """The model's alias: `asked`, else the one in the file, else `default` (FMT-5)."""


class Catalogue(Protocol):
    """All resources; changed files are read again (REG-1..9)."""

    def glance(self) -> AbstractContextManager[None]:
        """Inside it, a large catalogue is not checked for changed files, only for added and removed ones."""

    def once(self) -> AbstractContextManager[None]:
        """Inside it, each file is checked once, at the beginning, so that a message sees one state."""

    def exists(self, namespace: str) -> bool:
        """Whether `type:name` exists and is enabled."""

    def list_resources(self, *, enabled_only: bool = True) -> Sequence[SkillDef]: ...

    def find(self, name: str, type: ResourceType = "skill") -> SkillDef | None:
        """The enabled resource with this name, alias or case-folded name."""

    def suggest(self, name: str, k: int = 3) -> tuple[str, ...]: ...

    def create_executor(self, namespace: str) -> Executor:
        """SkillNotFound or NotLoadable."""

    def count(self) -> int:
        """The number of skills, from directory entries only, in under 5 ms (STA-2, X-13)."""

    def count_own(self) -> int:
        """The number of skills that the person installed and has enabled (X-44)."""

    def diagnostics(self) -> Sequence[Diagnostic]: ...

    def is_shipped(self, skill: SkillDef) -> bool: ...

    def standing(self, skill: SkillDef) -> Standing:
        """How far the person trusts the skill as it is now."""


class KnownSkills(Protocol):
    def find(self, name: str) -> tuple[str, str] | None:
        """`(repository, sub-skill)` of a known skill that is not installed, or None (SEN-6, X-35)."""


class Router(Protocol):
    def recognise(self, text: str) -> Action | None:
        """Tier 1: an exact name, or a protocol verb with its object (X-28)."""

    def retrieve(self, text: str, k: int = 12, files: Sequence[str] = ()) -> Retrieval:
        """Tier 2: the best resources for `text`, with calibrated probabilities; `files` are the files that it names."""


class Lessons(Protocol):
    def learn(self, name: str, text: str) -> bool:
        """Makes `text` an example of the skill `name` only, and returns whether it is a new one."""


class Sandbox(Protocol):
    async def run(self, job: Job) -> Outcome:
        """Runs the job to its end; its whole process tree has ended on return. ConsentNeeded, Refused or NoSandbox if
        it must not or cannot run."""


class LifecyclePort(Protocol):
    """The skill commands that an agent carries out. Only they write installed skills, through their own writer; each
    result is what `--json` of the command shows."""

    def installed(self) -> Struct: ...

    def search(self, query: str) -> Struct: ...

    def info(self, source: str) -> Struct: ...

    def install(self, source: str, skills: Sequence[str] = ()) -> Struct: ...

    def uninstall(self, names: Sequence[str]) -> Struct: ...

    def enable(self, name: str) -> Struct: ...

    def disable(self, name: str) -> Struct: ...

    def record(self, name: str) -> Struct:
        """Counts one use of a skill."""


class Journal(Protocol):
    """The records of workflow runs. Each call is durable on return; NotFound for an unknown token."""

    def propose(self, token: str, session: str, plan: WorkflowPlan, granted: Sequence[str] = ()) -> None:
        """Adds a run that has not started; `granted` is what approval of its plan covers."""

    def load(self, token: str) -> WorkflowRun: ...

    def listed(self) -> Sequence[WorkflowRun]:
        """All runs, newest first."""

    def mark(self, token: str, state: RunState, granted: Sequence[str] = (), plan: WorkflowPlan | None = None) -> None:
        """Sets the run's state, adds `granted` to its consents, and replaces its plan if `plan` is given."""

    def begin(self, token: str, step: int, attempt: int, digest: str) -> None:
        """Records that an attempt of `step` is about to start, with the digest of its packet."""

    def end(self, token: str, step: int, attempt: int, report: Report) -> None: ...

    def hold(self, token: str) -> AbstractContextManager[None]:
        """A lock: one process at a time runs a workflow; Busy for others."""


class MemorySearch(Protocol):
    def recall(self, message: str) -> tuple[Memory, ...]:
        """Memories that are relevant to `message`, best first, at most 1,000 tokens (X-30)."""


class McpServers(Protocol):
    """Configured MCP servers. Typed failures: ConnectionFailed, ResourceNotFound, PermissionDenied, InvalidURI, and
    NotFound, ConsentNeeded, InputNeeded, FetchFailed (AGT-9)."""

    def names(self) -> Sequence[str]: ...

    async def call(self, server: str, operation: str, params: Mapping[str, Any], run: str) -> Mapping[str, Any]:
        """`list`, `read {uri}`, `tools`, `call {tool, args, answers}`, `prompts` or `prompt {prompt, args}`."""


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


class Kernel(Struct, frozen=True, kw_only=True):
    """All services that a turn needs, created by `assemble`. `files` starts at the current folder, `root_files` at the
    project; `viewer` is whose turn it is. `box` is the folder of logs and of runs' files, `keep` stores one of these
    files and returns its path, `tools` makes new tools. `changed` lists the project's files that a run changed, `undo`
    puts them back and says how that went for each."""

    root: Path
    settings: Settings
    catalogue: Catalogue
    mapping: KnownSkills
    router: Router
    agents: Mapping[str, Agent]
    dispatcher: Dispatcher
    consents: Consents
    files: FileReader
    root_files: FileReader
    journal: Journal
    memory: MemorySearch
    lessons: Lessons
    run_log: RunLog
    writer: Writer
    box: Path
    keep: Callable[[str, str, bytes], str]
    clock: Clock
    ids: Ids
    scripts: Mapping[str, Path]
    precheck_hook: Callable[[int], object]
    finish_hook: Callable[[object], None]
    failures: Callable[[], Sequence[Mapping[str, str]]]
    tools: Callable[[], Tools]
    viewer: Viewer = field(default_factory=Viewer)
    redact: Redact = same
    audit: Audit = field(default_factory=NullAudit)
    models: ModelRegistry | None = None
    judge: Judge | None = None
    changed: Callable[[str], tuple[str, ...]] = lambda _run: ()
    undo: Callable[[str], Sequence[tuple[str, str]]] = lambda _run: ()
    specialist: Callable[[Session, Spent], Specialist | None] = lambda _before, _spent: None
    underway: Underway | None = None


class Consents(Protocol):
    def allow(self, run: str, subject: str, *, once: bool = False) -> None:
        """Records consent to `subject` for this run, or with `once` for one execution in it. `*` has no meaning, as it
        may come from a file."""

    def left(self, run: str, subjects: Sequence[str]) -> tuple[str, ...]:
        """Those of `subjects` that were agreed to for this run and are not used up."""

    def allow_orders(self, run: str) -> None:
        """Records `--yes`: consent to everything that the run asks for, except what needs consent by name."""

    def require(
        self,
        run: str,
        subject: str,
        detail: str,
        *,
        by_name: bool = False,
        for_order: bool = False,
        lasting: str = "",
        unless: Sequence[str] = (),
        also: Sequence[Need] = (),
        **facts: Any,
    ) -> None:
        """Called just before an execution, which uses up a consent for once; `for_order` says that `subject` names a
        kind of access, which no execution uses up. With `by_name`, `allow_orders` does not count.

        ConsentNeeded, with `facts`, unless the person agreed for this run, or permanently, to `subject` and to all of
        `also`. A consent for more than one execution to `lasting` or to a subject in `unless` also covers `subject`.
        One error names all that is missing: the first as its `subject`, which is `lasting` if there is one, the others
        as `also`.
        """

    def trusted(self, subject: str) -> bool: ...

    def subjects(self) -> tuple[str, ...]:
        """All trusted subjects, sorted."""

    def trust(self, *subjects: str, note: str) -> None:
        """Trusts subjects permanently; `note` says why."""

    def distrust(self, *subjects: str) -> None: ...
