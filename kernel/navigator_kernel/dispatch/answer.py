"""Makes one valid report of anything an agent may return, keeping what was valid in it (RET-1..5)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

from navigator_kernel.errors import ConsentNeeded, KernelError, TimedOut
from navigator_kernel.text import Language, clean, shorten
from navigator_kernel.values.rendering import ASCII, EMOJI
from navigator_kernel.values.report import STATES, Meta, Report, State
from navigator_kernel.values.wording import say

DEPTH = 24  # levels of data that are kept
TEXT_LIMIT = 1024 * 1024  # characters of one string that are kept
SUMMARY_LIMIT = 2_000

_MARKS: Mapping[str, State] = {mark: state for marks in (EMOJI, ASCII) for state, mark in marks.items()}
_BARE_MARKS: Mapping[str, State] = {mark.rstrip("\ufe0f"): state for mark, state in _MARKS.items()}
_LAYOUT = re.compile(r"^[ \t]*state:[ \t]*[\"']?(\w+)", re.MULTILINE)
_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_TEXT_LIMIT_OF_RAW = 256 * 1024


def report_from(answer: object, meta: Meta, language: Language = "en") -> Report:
    """A Report, a mapping, JSON, the documents' text layout, or garbage: always one valid report, never an exception.

    `meta` is what the kernel measured; the agent's own time and timestamp are kept where they are valid.
    """
    try:
        return _read(answer, meta, language)
    except Exception as error:  # noqa: BLE001 - an object of a stranger may raise anything from any method
        return failure(error, meta, language)


def failure(error: BaseException, meta: Meta, language: Language = "en") -> Report:
    """The report of an exception: typed and kept apart by kind for the kernel's own errors."""
    if isinstance(error, ConsentNeeded):
        data = {"required": ["consent"], "optional": [], "reason": "consent", **_facts(error)}
        return Report(state="pending", summary=say("ask.approve", language, what=error.message), meta=meta, data=data)
    kind = type(error).__name__
    message = error.message if isinstance(error, KernelError) else _safely(error)
    summary = say("agent.crashed", language, type=kind, msg=shorten(message, SUMMARY_LIMIT))
    if isinstance(error, KernelError):
        state: State = "timeout" if isinstance(error, TimedOut) else "error"
        data = {**_facts(error), "type": kind, "msg": clean(message), "hint": error.hint, "code": error.code}
        data["exit_code"] = error.exit_code
        return Report(state=state, summary=summary, meta=meta, data=data, recoverable=error.recoverable)
    return Report(state="error", summary=summary, meta=meta, data={"type": kind, "msg": clean(message)})


def json_value(value: Any, depth: int = DEPTH) -> Any:
    """The nearest value that JSON can carry in UTF-8; cut at `depth` levels."""
    match value:
        case None | bool():
            return value
        case str():
            return value[:TEXT_LIMIT].encode("utf-8", "replace").decode("utf-8")
        case int():
            return int(value) if abs(value) < 2**63 else hex(value)
        case float():
            return float(value) if math.isfinite(value) else str(value)
        case bytes() | bytearray():
            return bytes(value[:TEXT_LIMIT]).decode("utf-8", "replace")
    if depth == 0:
        return "…"
    if isinstance(value, Mapping):
        return {str(json_value(str(key), 1)): json_value(item, depth - 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items = value if isinstance(value, (list, tuple)) else sorted(value, key=repr)
        return [json_value(item, depth - 1) for item in items]
    return json_value(_safely(value), 1)


def _read(answer: object, meta: Meta, language: Language) -> Report:
    if isinstance(answer, Report):
        return _from_mapping({**answer.to_dict()}, meta, language)
    if isinstance(answer, Mapping):
        return _from_mapping(answer, meta, language)
    if isinstance(answer, (bytes, bytearray)):
        answer = bytes(answer).decode("utf-8", "replace")
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        data = {"type": "Silence", "msg": say("agent.silent", language, agent=meta.agent)}
        return Report(state="error", summary=data["msg"], meta=meta, data=data)
    if isinstance(answer, str):
        return _from_text(answer, meta, language)
    return _garbage(_safely(answer), meta, language, kind=type(answer).__name__)


def _from_text(text: str, meta: Meta, language: Language) -> Report:
    stripped = text.strip()
    if stripped.startswith("{"):
        try:
            found = json.loads(stripped)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and "state" in found:
            return _from_mapping(found, meta, language)
    if _LAYOUT.search(stripped):
        return _from_layout(stripped, meta, language)
    return _garbage(text, meta, language, kind="str")


def _from_layout(text: str, meta: Meta, language: Language) -> Report:
    """The status line, then `state:`, `data:` and `meta:` as YAML."""
    head, body = _split(text)
    found = _yaml(body)
    if not isinstance(found, Mapping):
        found = {"state": _LAYOUT.search(text).group(1)}  # type: ignore[union-attr]  # searched by the caller
        found = {**found, "raw": text}
    mark, _, rest = head.partition(" ")
    agent, _, summary = rest.partition(" ")
    known = mark in _MARKS or mark.rstrip("\ufe0f") in _BARE_MARKS
    return _from_mapping({"summary": summary if known and agent else head, **found}, meta, language)


def _split(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    at = next(i for i, line in enumerate(lines) if _LAYOUT.match(line))
    return " ".join(line.strip() for line in lines[:at] if line.strip()), "\n".join(lines[at:])


def _yaml(body: str) -> Any:
    import yaml

    if len(body) > TEXT_LIMIT or re.search(r"(?m)(^|[\s,\[{:])[&*]\w", body):
        return None  # no anchors or aliases: they could make a small text large
    try:
        return yaml.load(body, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None


def _from_mapping(found: Mapping[Any, Any], meta: Meta, language: Language) -> Report:
    state = _state(found.get("state"))
    data = _data(found.get("data"))
    raw = found.get("raw")
    summary = found.get("summary")
    if state is None:
        data |= {"type": "InvalidReport", "msg": say("agent.garbage", language, agent=meta.agent)}
        data["reported_state"] = shorten(clean(_safely(found.get("state"))), 80)
    text = shorten(json_value(summary), SUMMARY_LIMIT) if isinstance(summary, str) and summary.strip() else ""
    effects = found.get("effects")
    return Report(
        state=state or "error",
        summary=text or (say("agent.garbage", language, agent=meta.agent) if state is None else state),
        meta=_meta(found.get("meta"), meta),
        data=data,
        raw=json_value(raw)[:_TEXT_LIMIT_OF_RAW] if isinstance(raw, str) else None,
        recoverable=found.get("recoverable") is True,
        effects=tuple(json_value(e) for e in effects if isinstance(e, str))
        if isinstance(effects, (list, tuple))
        else (),
    )


def _state(value: object) -> State | None:
    """One of the five, forgiving case, spaces and the marks (RET-3)."""
    if not isinstance(value, str):
        return None
    word = value.strip()
    lowered = word.lower()
    for state in STATES:
        if lowered == state:
            return state
    return _MARKS.get(word) or _BARE_MARKS.get(word.rstrip("\ufe0f"))


def _data(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    kept = json_value(value)
    return kept if isinstance(kept, dict) else {"value": kept}


def _meta(value: object, measured: Meta) -> Meta:
    """The agent's name is never its own to say; its time and timestamp are, where they are valid."""
    if not isinstance(value, Mapping):
        return measured
    time, ts = value.get("time"), value.get("ts")
    valid = isinstance(time, (int, float)) and not isinstance(time, bool) and math.isfinite(time) and 0 <= time < 1e9
    return Meta(
        agent=measured.agent,
        time=time if valid else measured.time,  # type: ignore[arg-type]  # checked above
        ts=ts if isinstance(ts, str) and _ISO.fullmatch(ts) else measured.ts,
        cached=value.get("cached") is True,
    )


def _garbage(text: str, meta: Meta, language: Language, *, kind: str) -> Report:
    summary = say("agent.garbage", language, agent=meta.agent)
    data = {"type": "InvalidReport", "msg": summary, "returned": kind}
    return Report(state="error", summary=summary, meta=meta, data=data, raw=json_value(text)[:_TEXT_LIMIT_OF_RAW])


def _facts(error: KernelError) -> dict[str, Any]:
    return _data(dict(error.data))


def _safely(value: object) -> str:
    try:
        return str(value)[:TEXT_LIMIT]
    except Exception:  # noqa: BLE001 - str() of a stranger's object may raise anything
        return f"<{type(value).__name__}>"
