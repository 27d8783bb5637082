"""The packet: the complete order to a subagent (PKT-1..10). The report: its answer (RET-1..10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Struct, field

from navigator_kernel.text import Language, lazy_compile

T = TypeVar("T")
OnError = Literal["propagate", "summarize", "fix"]

# Characters that YAML would not keep in a double-quoted scalar: its own line breaks and unprintable ones.
_UNSAFE = lazy_compile("[\x7f-\xa0\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")


class TaskSpec(Struct, frozen=True, kw_only=True):
    intent: str
    operation: str
    target: str


class Params(Struct, frozen=True, kw_only=True):
    required: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)

    def value(self, name: str, default: Any = None) -> Any:
        """The parameter called `name`, required or optional."""
        return self.required.get(name, self.optional.get(name, default))


class Constraints(Struct, frozen=True, kw_only=True):
    """`timeout` in seconds; `validation` is a predicate on the report, empty for none (X-37)."""

    timeout: int | float = 60
    validation: str | Mapping[str, Any] = ""


class ReturnSpec(Struct, frozen=True, kw_only=True):
    format: Format = "summary"
    fields: tuple[str, ...] = ()
    on_error: OnError = "propagate"


class Context(Struct, frozen=True, kw_only=True):
    """The place of the order: its run and step. A repeated order has the same `idempotency_key` and must not act twice;
    `language` is the one to answer in (X-31)."""

    run: str
    step: int
    idempotency_key: str
    language: Language = "en"


class Packet(Struct, frozen=True, kw_only=True, rename={"agent": "subagent_type"}):
    """The packet: one order to the subagent `agent` (PKT-1). Its fields are in the order of the written form."""

    agent: str
    task_spec: TaskSpec
    params: Params = field(default_factory=Params)
    constraints: Constraints = field(default_factory=Constraints)
    return_spec: ReturnSpec = field(default_factory=ReturnSpec)
    context: Context

    def to_dict(self) -> dict[str, Any]:
        """The packet as JSON values; `packet_from` is its inverse."""
        body: dict[str, Any] = msgspec.to_builtins(self)
        body["return_spec"]["fields"] = list(self.return_spec.fields)
        return body

    def to_yaml(self) -> str:
        """The prompt of PKT-1, exact for any JSON value.

        Written by hand because it is on the path of every step: block mappings two deep, JSON below,
        which YAML 1.1 reads as flow style.
        """
        return yaml_of(self.to_dict())


def message_packet(message: str, run: str) -> Packet:
    """A message that was cut off before anybody got an order: it is for no agent, and can only be sent again."""
    spec = TaskSpec(intent=message, operation="", target="")
    return Packet(agent="", task_spec=spec, context=Context(run=run, step=0, idempotency_key=""))


def packet_from(raw: Mapping[str, Any]) -> Packet:
    """The packet in `raw`; KeyError or ValueError if a section is missing or wrong (PKT-6)."""
    return shaped({name: raw[name] for name in Packet.__struct_encode_fields__}, Packet)


def shaped(raw: Mapping[str, Any], kind: type[T]) -> T:
    """`raw` as a value of `kind`; ValueError if it has another shape."""
    try:
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def packet_from_yaml(prompt: str) -> Packet:
    """The packet in a subagent's prompt."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return packet_from(yaml.load(prompt, Loader=loader))  # noqa: S506 - both are safe loaders


def yaml_of(record: Mapping[str, Any]) -> str:
    """A packet or a report in its YAML layout: block mappings two deep, JSON below."""
    lines: list[str] = []
    for section, body in record.items():
        if not isinstance(body, Mapping) or not body:
            lines.append(f"{section}: {yaml_flow(body)}")
            continue
        lines.append(f"{section}:")
        lines += [f"  {key}: {yaml_flow(value)}" for key, value in body.items()]
    return "\n".join(lines) + "\n"


def yaml_flow(value: Any) -> str:
    """A JSON value in YAML's flow style, as JSON that every YAML reader reads as the same value."""
    match value:
        case str():
            text = json.dumps(value, ensure_ascii=False)
            return (
                text
                if text.isascii() and "\x7f" not in text
                else _UNSAFE.sub(lambda hit: f"\\u{ord(hit.group()):04x}", text)
            )
        case Mapping():
            return "{" + ", ".join(f"{yaml_flow(str(key))}: {yaml_flow(item)}" for key, item in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(yaml_flow, value)) + "]"
        case float():  # YAML 1.1 needs a dot in a float: 1e+30 alone would be a string
            text = json.dumps(value)
            return text.replace("e", ".0e") if "e" in text and "." not in text else text
        case _:
            return json.dumps(value)


State = Literal["success", "error", "timeout", "partial", "pending"]
STATES: tuple[State, ...] = get_args(State)

Format = Literal["summary", "detail", "raw"]
Style = Literal["emoji", "ascii", "json"]

FORMATS: Mapping[str, Format] = {word: word for word in get_args(Format)}

_EXIT: Mapping[State, int] = {"success": 0, "partial": 1, "error": 1, "pending": 9, "timeout": 124}


class Meta(Struct, frozen=True, kw_only=True):
    """`time` in seconds, `ts` ISO 8601 in UTC; `cached` says that no agent ran (X-21)."""

    agent: str
    time: int | float
    ts: str
    cached: bool = False

    def to_dict(self) -> dict[str, Any]:
        base: dict[str, Any] = {"agent": self.agent, "time": self.time, "ts": self.ts}
        return {**base, "cached": True} if self.cached else base


class Report(Struct, frozen=True, kw_only=True):
    """What a subagent returns. `data` holds JSON values; `raw` is the untouched output (RET-8).

    `recoverable` lets a fallback candidate be tried, `effects` names what was already changed, after which none may be
    tried (X-6).

    The other fields are the kernel's own notes, which no rendering shows and no agent can write: `target` is what the
    order was for, `subject` what needs a yes before it can be done, `also` what the same yes must cover too, `wider`
    what a yes for the session also covers, `offloaded` the file with all of an output that was too long, `progress` how
    far waiting or failed work came, as JSON; `by_model` says that `raw` is a model's own words; `private` that it may
    contain the person's files or data, which only a model's answer to the message alone does not; `unanswered` that it
    failed because no model gave an answer.
    """

    state: State
    summary: str
    meta: Meta
    data: Mapping[str, Any] = field(default_factory=dict)
    raw: str | None = None
    recoverable: bool = False
    effects: tuple[str, ...] = ()
    target: str = ""
    subject: str = ""
    also: tuple[str, ...] = ()
    wider: str = ""
    offloaded: str = ""
    progress: str = ""
    by_model: bool = False
    private: bool = True
    unanswered: bool = False

    @property
    def agent(self) -> str:
        return self.meta.agent

    @property
    def exit_code(self) -> int:
        """The exit code of a report (part 3, item 8)."""
        typed = self.data.get("exit_code") if self.state == "error" else None
        return typed if isinstance(typed, int) and 0 < typed < 256 else _EXIT[self.state]

    @property
    def files(self) -> tuple[str, ...]:
        """The files that it names in `data["files"]`; empty if that is something else, such as a number."""
        names = self.data.get("files")
        return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else ()

    def to_dict(self) -> dict[str, Any]:
        """The report as its canonical JSON object."""
        body: dict[str, Any] = {"state": self.state, "agent": self.agent, "summary": self.summary}
        body |= {"data": dict(self.data), "meta": self.meta.to_dict(), "recoverable": self.recoverable}
        if self.effects:
            body["effects"] = list(self.effects)
        if self.raw is not None:
            body["raw"] = self.raw
        return body


DISARMED = ".disarmed"  # the end of a name that a file got because other programs would run or obey it


def shown_path(path: Path, root: Path) -> str:
    """The path as reports name it: from the project's folder `root`, or absolute if it lies elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def report_to_dict(report: Report) -> dict[str, Any]:
    """The whole report with the kernel's own notes; `report_of` is its inverse."""
    own = {name: getattr(report, name) for name in ("target", "subject", "wider", "offloaded", "progress")}
    own |= {name: getattr(report, name) for name in ("by_model", "private", "unanswered")}
    return {**report.to_dict(), **own, **({"also": list(report.also)} if report.also else {})}


def report_of(raw: Mapping[str, Any]) -> Report:
    """Parses `raw`; KeyError or ValueError if it is invalid."""
    needed = {name: raw[name] for name in ("state", "summary", "meta", "data", "recoverable")}
    return shaped({**raw, **needed}, Report)
