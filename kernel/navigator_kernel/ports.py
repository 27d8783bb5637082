"""The ports between the layers: what a stage or an agent may ask for, without knowing who answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from msgspec import Struct, field

from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:  # for start-up time: modules that only name types are not imported
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from navigator_kernel.config.settings import Settings
    from navigator_kernel.events import Event
    from navigator_kernel.model_ports import Judge, ModelRegistry, Specialist, Tools, Underway
    from navigator_kernel.values.chat import Spent
    from navigator_kernel.values.context import Memory
    from navigator_kernel.values.job import Job, Outcome, Want
    from navigator_kernel.values.packet import Packet
    from navigator_kernel.values.report import Report
    from navigator_kernel.values.request import Session
    from navigator_kernel.values.resource import Diagnostic, ResourceType, SkillDef
    from navigator_kernel.values.route import Action, Retrieval
    from navigator_kernel.values.standing import Standing
    from navigator_kernel.values.workflow import RunState, WorkflowPlan, WorkflowRun


class Audit(Protocol):
    def record(self, event: str, /, **facts: Any) -> None:
        """Adds one entry for good: `authorised`, `refused`, `trusted`, `distrusted`, `started`, `ended`, `changed` (of
        skills), `accepted` (what a scanner blocked) or `wrote`. KernelError where it cannot be kept: then what it tells
        of does not happen."""


class NullAudit:
    """Implements `Audit` where nothing is kept."""

    def record(self, _event: str, /, **_facts: Any) -> None:
        return


class Clock(Protocol):
    def now(self) -> str:
        """ISO 8601 in UTC, to the millisecond, ending in `Z`."""

    def monotonic(self) -> float:
        """Seconds from any fixed point."""


class Ids(Protocol):
    def new(self) -> str:
        """A name that is new here and sorts by time: lower-case letters, digits and `-`."""


class Writer(Protocol):
    """The one way to write. Every path is checked against the roots it was made with; `Refused` outside them."""

    def together(self) -> AbstractContextManager[None]:
        """What is done within is durable when it ends, and not before: the disk is waited for once."""

    def write(self, path: Path, data: bytes, *, mode: int = 0o644) -> None:
        """Replaces the file as a whole or not at all, durable on return."""

    def write_new(self, folder: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
        """A new folder with these files by their paths in it, each with its mode; durable on return."""

    def sweep(self, path: Path) -> int:
        """Removes what a killed process left half-written beside `path`; how many files."""

    def append(self, path: Path, data: bytes) -> None:
        """Adds one record in one system call."""

    def overwrite(self, path: Path, data: bytes) -> None: ...
    def create(self, path: Path, data: bytes, *, mode: int) -> bool: ...

    def make_folder(self, path: Path) -> None: ...

    def move(self, source: Path, target: Path) -> None:
        """Renames; the target must not exist."""

    def link(self, path: Path, text: str) -> None:
        """A link that says `text`, seen from its folder; Refused where it would lead out of the roots, or where
        anything lies at `path`."""

    def remove(self, path: Path) -> None:
        """Removes a file, a link itself, or a folder with all that is in it; nothing where it is gone."""


class FileReader(Protocol):
    def read(self, written: str) -> tuple[Path, str]:
        """The real path and text behind an `@path`; a KernelError that names what is wrong (PRE-8)."""


class RunLog(Protocol):
    def append(self, event: Event) -> None: ...

    def read(self, run: str) -> Sequence[Event]:
        """The events of one run in order; NotFound for none."""

    def runs(self) -> Sequence[str]:
        """Run ids, newest first."""


class Executor(Protocol):
    """A resource made ready: how its text or its command becomes an order (REG-6)."""

    @property
    def skill(self) -> SkillDef: ...

    @property
    def digest(self) -> str:
        """Digest of the folder's bytes, to which consent is bound."""

    @property
    def origin(self) -> str:
        """Source, commit and folder, where an install command of this person recorded them; else empty."""

    @property
    def claimed(self) -> str:
        """Source, commit and folder as the receipt beside the skill says: data, and never proof (X-43)."""

    @property
    def standing(self) -> Standing:
        """How far the person accepts these bytes."""

    @property
    def is_changed(self) -> bool:
        """Whether its bytes are not those that were installed."""

    @property
    def wants(self) -> tuple[Want, ...]:
        """What it asks for beside its own folder and the files that it is given."""

    @property
    def packages(self) -> tuple[str, ...]:
        """The Python packages that its command declares."""

    @property
    def consent(self) -> str:
        """The subject of a yes to its command: these bytes, from there, with what it wants."""

    @property
    def dynamic(self) -> tuple[str, ...]:
        """Commands in its text whose output belongs there (X-4)."""

    def prompt(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
    ) -> str:
        """The two `parts` in one text."""

    def parts(
        self,
        request: str,
        arguments: Sequence[str],
        params: Mapping[str, Any],
        outputs: Mapping[str, str] | None = None,
    ) -> tuple[str, str]:
        """The system text, and the request in its template, substituted once (FMT-3, FMT-4, X-26)."""

    def argv(self, request: str, arguments: Sequence[str], params: Mapping[str, Any]) -> tuple[str, ...]:
        """The command with each placeholder filled by one whole argument."""

    def backend(self, asked: str = "") -> str:
        """The alias of the model that the prompt is for: asked for, else the file's, else `default` (FMT-5)."""


class Catalogue(Protocol):
    """All resources, seen again when their files change (REG-1..9)."""

    def glance(self) -> AbstractContextManager[None]:
        """Within it what was read last of a large catalogue is believed, unless a skill came or went."""

    def once(self) -> AbstractContextManager[None]:
        """Within it each file is looked at once, at its beginning: one message sees one state."""

    def exists(self, namespace: str) -> bool:
        """Whether `type:name` is there and enabled."""

    def list_resources(self, *, enabled_only: bool = True) -> Sequence[SkillDef]: ...

    def find(self, name: str, type: ResourceType = "skill") -> SkillDef | None:
        """The resource called `name`, by name, alias or folded name; disabled ones never."""

    def suggest(self, name: str, k: int = 3) -> tuple[str, ...]: ...

    def create_executor(self, namespace: str) -> Executor:
        """SkillNotFound or NotLoadable."""

    def count(self) -> int:
        """How many skills there are, by directory state only, under 5 ms (STA-2, X-13)."""

    def count_own(self) -> int:
        """The same for those that the person installed and has switched on (X-44)."""

    def diagnostics(self) -> Sequence[Diagnostic]: ...

    def is_shipped(self, skill: SkillDef) -> bool: ...

    def standing(self, skill: SkillDef) -> Standing:
        """How far the person accepts the skill, by its bytes as they are now."""


class KnownSkills(Protocol):
    def find(self, name: str) -> tuple[str, str] | None:
        """`(repository, sub-skill)` for a skill that is not installed (SEN-6, X-35)."""


class Router(Protocol):
    def recognise(self, text: str) -> Action | None:
        """Tier 1: an exact name, or a protocol verb with its object (X-28)."""

    def retrieve(self, text: str, k: int = 12) -> Retrieval:
        """Tier 2: the resources nearest to `text`, calibrated."""


class Lessons(Protocol):
    def learn(self, name: str, text: str) -> bool:
        """From now on `text` is an example of the skill `name`, and of no other; whether that is new."""


class Sandbox(Protocol):
    async def run(self, job: Job) -> Outcome:
        """Runs it to its end, its whole process tree dead on return. ConsentNeeded, Refused or NoSandbox
        where it must not or cannot run."""


class Consents(Protocol):
    def allow(self, run: str, subject: str) -> None:
        """The person agreed to `subject`, for this run; `*` counts for nothing, for it may come out of a file."""

    def allow_orders(self, run: str) -> None:
        """The person typed `--yes`: all that the run's own orders ask for, but for what must be agreed to by name."""

    def require(
        self, run: str, subject: str, detail: str, *, by_name: bool = False, unless: Sequence[str] = (), **facts: Any
    ) -> None:
        """ConsentNeeded, with `facts`, unless the person agreed to it for this run or trusts its digest. With
        `by_name`, `allow_orders` does not count. Consent to any subject in `unless` also covers `subject`."""

    def trusted(self, subject: str) -> bool: ...

    def subjects(self) -> tuple[str, ...]:
        """All that are trusted, in order."""

    def trust(self, *subjects: str, note: str) -> None:
        """For good; `note` says how that came to be."""

    def distrust(self, *subjects: str) -> None: ...


class LifecyclePort(Protocol):
    def perform(self, operation: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """A skill command with its answer as JSON values. Writes only through the lifecycle's own writer."""

    def writes(self, operation: str) -> bool: ...


class Journal(Protocol):
    """What became of workflow runs. Every entry is durable when its call returns; NotFound for an unknown token."""

    def propose(self, token: str, session: str, plan: WorkflowPlan, granted: Sequence[str] = ()) -> None:
        """A run that has not begun; `granted` is what a yes to its plan covers."""

    def load(self, token: str) -> WorkflowRun: ...

    def listed(self) -> Sequence[WorkflowRun]:
        """Newest first."""

    def mark(self, token: str, state: RunState, granted: Sequence[str] = (), plan: WorkflowPlan | None = None) -> None:
        """The run's state; `granted` is added to what the person agreed to; `plan` is its plan under its last name."""

    def begin(self, token: str, step: int, attempt: int, digest: str) -> None:
        """A try of `step` is about to start, with `digest` of its order."""

    def end(self, token: str, step: int, attempt: int, report: Report) -> None: ...

    def hold(self, token: str) -> AbstractContextManager[None]:
        """One process at a time runs a workflow; Busy for the others."""


class MemorySearch(Protocol):
    def recall(self, message: str) -> tuple[Memory, ...]:
        """What is worth knowing for `message`, best first, 1,000 tokens at most (X-30)."""


class McpServers(Protocol):
    """Configured MCP servers. Typed failures: ConnectionFailed, ResourceNotFound, PermissionDenied, InvalidURI, and
    NotFound, ConsentNeeded, InputNeeded, FetchFailed (AGT-9)."""

    def names(self) -> Sequence[str]: ...

    async def call(self, server: str, operation: str, params: Mapping[str, Any], run: str) -> Mapping[str, Any]:
        """`list`, `read {uri}`, `tools`, `call {tool, args, answers}`, `prompts` or `prompt {prompt, args}`."""


@runtime_checkable
class Agent(Protocol):
    """A subagent. It is given a packet's YAML and nothing else (PKT-1)."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> Sequence[str]: ...

    @property
    def description(self) -> str: ...

    async def handle(self, prompt: str) -> object:
        """Anything; the kernel makes one valid report of it. KernelErrors become typed reports."""


class AgentPorts(Struct, frozen=True, kw_only=True):
    """What an agent may be built with. `shipped` maps `bin/<name>.py` to the digest that this release ships, and
    `release` is the folder in which its scripts lie; `answers` are those that the kernel itself answers, each with its
    exit code and its text. `workspace` makes and returns a run's own folder."""

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


class Dispatcher(Protocol):
    """Carries packets to agents, here or on another machine; at least once, so packets have a key."""

    async def submit(self, packet: Packet) -> str:
        """A task id; the task is under way or queued."""

    def events(self, task: str) -> AsyncIterator[Event]: ...

    async def result(self, task: str) -> Report:
        """One valid report, whatever happened."""

    async def cancel(self, task: str) -> None: ...

    def heartbeat(self, task: str) -> float:
        """Seconds since the task was last known to live; NotFound for an unknown task."""


class Kernel(Struct, frozen=True, kw_only=True):
    """Every part that a turn needs, put together once by `assemble`. `files` reads paths from where the person is,
    `root_files` from the project's root; `keep(run, name, data)` puts a file beside what a run leaves and gives its
    place. `tools` are for a model that is not the kernel's, new for each call."""

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
    keep: Callable[[str, str, bytes], str]
    clock: Clock
    ids: Ids
    scripts: Mapping[str, Path]
    precheck_hook: Callable[[int], object]
    finish_hook: Callable[[object], None]
    failures: Callable[[], Sequence[Mapping[str, str]]]
    tools: Callable[[], Tools]
    redact: Redact = same
    audit: Audit = field(default_factory=NullAudit)
    models: ModelRegistry | None = None
    judge: Judge | None = None
    specialist: Callable[[Session, Spent], Specialist | None] = lambda _before, _spent: None
    underway: Underway | None = None
