"""The events of a turn (EVT-1, EVT-7); everything that shows or explains a turn reads them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import asdict

VERSION = 1
RESULT = 4_000  # characters of a tool's result in an event

Json = Any  # a value that json.dumps accepts


class RunStarted(Struct, frozen=True, kw_only=True):
    """A turn began. `continues` is the run whose work it goes on with: after an answer, or after a stop."""

    session: str
    message: str
    language: str
    continues: str = ""


class SkillActivated(Struct, frozen=True, kw_only=True):
    """A skill is about to be used; emitted before the first request to a model."""

    skill: str
    agent: str
    digest: str = ""


class ToolsLeftOut(Struct, frozen=True, kw_only=True):
    """Tools that the skill's `allowed-tools` names and that are not offered to the model."""

    skill: str
    tools: tuple[str, ...]


class RunContent(Struct, frozen=True, kw_only=True):
    """A piece of the reply's text."""

    text: str


class ToolCallStarted(Struct, frozen=True, kw_only=True):
    """A model's tool call is about to be carried out; `call` identifies it."""

    call: str
    tool: str
    args: Mapping[str, Json] = field(default_factory=dict)


class ToolCallCompleted(Struct, frozen=True, kw_only=True):
    """A tool call has ended; `elapsed` in seconds. `result` is the beginning of its text, at most RESULT characters."""

    call: str
    tool: str
    state: str
    elapsed: float
    result: str = ""


class UICommand(Struct, frozen=True, kw_only=True):
    """A command for a user interface, derived from a tool's declared effects, never from text (EVT-2, X-17)."""

    type: Literal["toast", "refresh", "navigate", "modal"]
    payload: Mapping[str, Json]


class RunCompleted(Struct, frozen=True, kw_only=True):
    """The turn ended with a reply; `sections` are its sections by name (X-41). `data` is that of a reply that no step
    made, such as the skills that a question offers, and of unfinished work its files and how to go on; the data of a
    step is in its StepCompleted. `answer` is the word for what the message meant to what was open or had just run
    (`yes`, `no_with_reason`, `follow_up`), empty for a new request.
    """

    state: str
    summary: str
    sections: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    answer: str = ""


class RunError(Struct, frozen=True, kw_only=True):
    """The turn ended with an unexpected error."""

    error: Mapping[str, Json]


class RunCancelled(Struct, frozen=True, kw_only=True):
    """The turn was cancelled; `data` as in RunCompleted."""

    reason: str
    data: Mapping[str, Json] = field(default_factory=dict)


class RouteDecided(Struct, frozen=True, kw_only=True):
    """The decision about the message, with the trace that [Logic Trace] prints (X-8, OUT-1)."""

    decision: Mapping[str, Json]
    trace: tuple[str, ...] = ()


class StepStarted(Struct, frozen=True, kw_only=True):
    """A packet was sent to an agent."""

    agent: str
    packet: Mapping[str, Json]


class StepCompleted(Struct, frozen=True, kw_only=True):
    """An agent has answered."""

    agent: str
    report: Mapping[str, Json]


class ApprovalRequested(Struct, frozen=True, kw_only=True):
    """The turn ended with a question that needs the person's approval. `id` names it until `expires`, in ISO 8601."""

    subject: str
    detail: str
    id: str = ""
    expires: str = ""


class ApprovalResolved(Struct, frozen=True, kw_only=True):
    """The person approved or declined."""

    subject: str
    granted: bool


class ClarificationAsked(Struct, frozen=True, kw_only=True):
    """The turn ended with a question about missing information."""

    question: str
    missing: tuple[str, ...] = ()


class Progress(Struct, frozen=True, kw_only=True):
    """Progress of an agent; `done` is a fraction from 0 to 1, None if unknown."""

    text: str
    done: float | None = None


class Usage(Struct, frozen=True, kw_only=True):
    """The usage of one or more requests to a model; `cost` in US dollars, None if the price is not known. `unknown`
    counts interrupted requests whose usage the provider did not report. Phase 1 chooses a skill, phase 2 works."""

    model: str
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    cached_tokens: int = 0
    phase: int = 2
    skill: str = ""
    requests: int = 1
    unknown: int = 0


class SkillsOffered(Struct, frozen=True, kw_only=True):
    """How many skills the router could choose from."""

    count: int


class SkillsShortlisted(Struct, frozen=True, kw_only=True):
    """The best candidates of the router, `[{name, score, confidence, parts}]`, best first."""

    candidates: tuple[Mapping[str, Json], ...]
    band: str
    reason: str


class SkillChosen(Struct, frozen=True, kw_only=True):
    """The skill that will be used, and by which tier of the router."""

    skill: str
    tier: str
    confidence: float


class SkillLoaded(Struct, frozen=True, kw_only=True):
    """The files of the chosen skill were read."""

    skill: str
    kind: str
    digest: str = ""


class SkillUsed(Struct, frozen=True, kw_only=True):
    """The chosen skill has ended, with the state of its report."""

    skill: str
    state: str


class UnknownBody(Struct, frozen=True, kw_only=True):
    """An event of a newer version, kept unchanged."""

    type: str
    data: Mapping[str, Json]


Body = (
    RunStarted
    | SkillActivated
    | ToolsLeftOut
    | RunContent
    | ToolCallStarted
    | ToolCallCompleted
    | UICommand
    | RunCompleted
    | RunError
    | RunCancelled
    | RouteDecided
    | StepStarted
    | StepCompleted
    | ApprovalRequested
    | ApprovalResolved
    | ClarificationAsked
    | Progress
    | Usage
    | SkillsOffered
    | SkillsShortlisted
    | SkillChosen
    | SkillLoaded
    | SkillUsed
    | UnknownBody
)

BODIES: Mapping[str, type[Any]] = {kind.__name__: kind for kind in Body.__args__ if kind is not UnknownBody}


class Event(Struct, frozen=True, kw_only=True):
    """An event with its envelope. `seq` counts from 0 within a run; `parent` is the seq of the event it belongs to."""

    run: str
    turn: int
    step: int | None
    seq: int
    ts: str
    parent: int | None
    body: Body
    v: int = VERSION

    @property
    def type(self) -> str:
        return self.body.type if isinstance(self.body, UnknownBody) else type(self.body).__name__

    def to_dict(self) -> dict[str, Json]:
        """`{v, run, turn, step, seq, ts, parent, type, data}`."""
        data = self.body.data if isinstance(self.body, UnknownBody) else asdict(self.body)
        head = {"v": self.v, "run": self.run, "turn": self.turn, "step": self.step, "seq": self.seq}
        return {**head, "ts": self.ts, "parent": self.parent, "type": self.type, "data": data}


class Emit(Protocol):
    """Appends an event to the run log, then passes it to every listener; synchronous."""

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event: ...


Listener = Callable[[Event], None]


def event_from(raw: Mapping[str, Json]) -> Event:
    """The event in a line of a run log; a type that this version does not know is kept unchanged.

    Raises KeyError or TypeError if `raw` is not an envelope.
    """
    kind = BODIES.get(raw["type"])
    data = raw["data"]
    body: Body = UnknownBody(type=raw["type"], data=data)
    if kind is not None and raw["v"] <= VERSION:
        body = kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in data.items()})
    head = {key: raw[key] for key in ("run", "turn", "step", "seq", "ts", "parent", "v")}
    return Event(body=body, **head)
