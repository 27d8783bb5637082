"""The packet: the complete order to a subagent (PKT-1..10)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from navigator_kernel.text import Language, lazy_compile
from navigator_kernel.values.report import Format

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

    timeout: float = 60
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


class Packet(Struct, frozen=True, kw_only=True):
    """The packet: one order to the subagent `agent` (PKT-1)."""

    agent: str
    task_spec: TaskSpec
    context: Context
    params: Params = field(default_factory=Params)
    constraints: Constraints = field(default_factory=Constraints)
    return_spec: ReturnSpec = field(default_factory=ReturnSpec)

    def to_dict(self) -> dict[str, Any]:
        """The packet as JSON values; `packet_from` is its inverse."""
        return {
            "subagent_type": self.agent,
            "task_spec": {
                "intent": self.task_spec.intent,
                "operation": self.task_spec.operation,
                "target": self.task_spec.target,
            },
            "params": {"required": dict(self.params.required), "optional": dict(self.params.optional)},
            "constraints": {"timeout": self.constraints.timeout, "validation": self.constraints.validation},
            "return_spec": {
                "format": self.return_spec.format,
                "fields": list(self.return_spec.fields),
                "on_error": self.return_spec.on_error,
            },
            "context": {
                "run": self.context.run,
                "step": self.context.step,
                "idempotency_key": self.context.idempotency_key,
                "language": self.context.language,
            },
        }

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
    """The packet in `raw`; KeyError or TypeError if a mandatory section is missing (PKT-6)."""
    spec, params, limits = raw["task_spec"], raw["params"], raw["constraints"]
    back, place = raw["return_spec"], raw["context"]
    return Packet(
        agent=raw["subagent_type"],
        task_spec=TaskSpec(intent=spec["intent"], operation=spec["operation"], target=spec["target"]),
        params=Params(required=params["required"], optional=params["optional"]),
        constraints=Constraints(timeout=limits["timeout"], validation=limits["validation"]),
        return_spec=ReturnSpec(format=back["format"], fields=tuple(back["fields"]), on_error=back["on_error"]),
        context=Context(**{name: place[name] for name in ("run", "step", "idempotency_key", "language")}),
    )


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
