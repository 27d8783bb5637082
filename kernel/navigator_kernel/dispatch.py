"""Between a turn and its agents, on one machine: packets go out, any answer becomes one valid report, and events go to
the run log and its listeners. Each agent at work has an event loop of its own, so that none can block the kernel or
another one."""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from navigator_kernel.errors import ConsentNeeded, InputNeeded, Interrupted, KernelError, NotFound, TimedOut
from navigator_kernel.events import Body, Event, Listener, RunContent
from navigator_kernel.guard import PluginLoop
from navigator_kernel.language.chinese import approval_in, in_language
from navigator_kernel.language.rendering import ASCII, EMOJI
from navigator_kernel.language.wording import say
from navigator_kernel.ports import Agent, Clock, PacketAgent
from navigator_kernel.text import Language, clean, lazy_compile, shorten
from navigator_kernel.values.packet import STATES, Meta, Packet, Report, State
from navigator_kernel.values.redact import Redact, same

if TYPE_CHECKING:
    from navigator_kernel.adapters.stores.run_log import RunLog

# Seconds beyond the packet's limit for an agent to end its processes and report its own time-out: the MCP SDK
# takes 4.5 s to end a server that does not react.
GRACE = 6.0
KEPT = 1_000  # tasks in memory, ended ones included: 10 kB each


class _Task(Struct):
    packet: Packet
    future: Future[object]
    started: float
    loop: PluginLoop | None
    report: Report | None = None


class InProcessDispatcher(Struct):
    """Implements `ports.Dispatcher`. A key that was submitted before is the same task, which acts once. Several threads
    may use it."""

    agents: Mapping[str, Agent]
    clock: Clock
    observe: Callable[[str, BaseException], None] | None = None
    _tasks: dict[str, _Task] = field(default_factory=dict)
    _idle: list[PluginLoop] = field(default_factory=list)
    _guard: Lock = field(default_factory=Lock)

    async def submit(self, packet: Packet) -> str:
        """Starts the packet's task and returns its idempotency key. An unknown agent gets a report of NotFound."""
        key = packet.context.idempotency_key
        with self._guard:
            if key in self._tasks:
                return key
            agent, loop = self.agents.get(packet.agent), None
            future: Future[object]
            if agent is None:
                future = Future()
                future.set_exception(NotFound(say("agent.missing", packet.context.language, name=packet.agent)))
            else:
                loop = self._idle.pop() if self._idle else PluginLoop("navigator-agents")
                future = loop.start(
                    (lambda: agent.act(packet))
                    if isinstance(agent, PacketAgent)
                    else (lambda: agent.handle(packet.to_yaml()))  # an agent that takes no packet gets YAML (PKT-1)
                )
            self._tasks[key] = _Task(packet=packet, future=future, started=self.clock.monotonic(), loop=loop)
            if len(self._tasks) > KEPT and (ended := next((k for k, t in self._tasks.items() if t.report), "")):
                del self._tasks[ended]
        return key

    async def events(self, task: str) -> AsyncIterator[Event]:
        """Yields nothing: agents here report once, and have no events of their own yet."""
        self._task(task)
        for event in tuple[Event, ...]():
            yield event

    async def result(self, task: str) -> Report:
        running = self._task(task)
        if running.report is None:
            report = await self._reported(running)
            running.report = running.report or report  # two may wait for one task: the first report stands
            if running.loop is not None and running.future.done() and not running.future.cancelled():
                self._idle.append(running.loop)  # else an agent may still block it
            running.loop = None
        return running.report

    async def cancel(self, task: str) -> None:
        self._task(task).future.cancel()

    def heartbeat(self, task: str) -> float:
        running = self._task(task)
        return 0.0 if not running.future.done() else self.clock.monotonic() - running.started

    def _task(self, key: str) -> _Task:
        if key not in self._tasks:
            raise NotFound(f"no task is called {key!r}", hint="submit it first")
        return self._tasks[key]

    async def _reported(self, task: _Task) -> Report:
        packet, language = task.packet, task.packet.context.language
        limit = packet.constraints.timeout
        waiting = asyncio.wrap_future(task.future)
        try:
            # Python 3.11's `wait_for` ignores a cancellation of the turn at the moment of the answer
            await asyncio.wait([waiting], timeout=limit + GRACE)
            if not waiting.done():
                task.future.cancel()
                meta = self._meta(task)
                text = say("agent.timeout", language, seconds=f"{limit:g}")
                return Report(state="timeout", summary=text, meta=meta, data={"elapsed": meta.time, "limit": limit})
            answer = waiting.result()
        except asyncio.CancelledError:
            task.future.cancel()
            if (turn := asyncio.current_task()) is not None and turn.cancelling():
                raise
            return failure(Interrupted(f"{packet.agent} was stopped"), self._meta(task), language)
        except BaseException as error:  # noqa: BLE001 - a plugin may raise anything; it is named and isolated
            report = failure(error, self._meta(task), language)
            if self.observe is not None and not isinstance(error, KernelError):
                self.observe(packet.agent, error)
            return report
        return report_from(answer, self._meta(task), language)

    def _meta(self, task: _Task) -> Meta:
        seconds = round(self.clock.monotonic() - task.started, 3)
        return Meta(agent=task.packet.agent, time=seconds, ts=self.clock.now())


# Any answer becomes one valid report, which keeps its valid parts (RET-1..5)
DEPTH = 24  # levels of nested data to keep
TEXT_LIMIT = 1024 * 1024  # characters of one string to keep
SUMMARY_LIMIT = 2_000
ROOM = 8 * 1024 * 1024  # total characters of data to keep, each value counted with its overhead
EFFECTS = 1_000  # entries of `effects` to read
YAML_DEPTH = 200  # libyaml's composer crashes the process at some 100,000 levels

_MARKS: Mapping[str, State] = {mark: state for marks in (EMOJI, ASCII) for state, mark in marks.items()}
_BARE_MARKS: Mapping[str, State] = {mark.rstrip("\ufe0f"): state for mark, state in _MARKS.items()}
_LAYOUT = lazy_compile(r"^[ \t]*state:[ \t]*[\"']?(\w+)", re.MULTILINE)
_ISO = lazy_compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?")
_TEXT_LIMIT_OF_RAW = 256 * 1024


def report_from(answer: object, meta: Meta, language: Language = "en") -> Report:
    """A Report, a mapping, JSON, the documents' text layout, or garbage: always one valid report, never an exception.

    `meta` has the kernel's measurements; the agent's own time and timestamp are kept if they are valid.
    """
    try:
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
            stripped = answer.strip()
            if stripped.startswith("{"):
                try:
                    value = json.loads(stripped)
                except (ValueError, RecursionError):
                    value = None
                if isinstance(value, dict) and "state" in value:
                    return _from_mapping(value, meta, language)
            if hit := _LAYOUT.search(stripped):
                # Reads the status line, then `state:`, `data:` and `meta:` as YAML
                state = hit.group(1)
                lines = stripped.split("\n")
                begin = next(at for at, line in enumerate(lines) if _LAYOUT.match(line))
                head = " ".join(line.strip() for line in lines[:begin] if line.strip())
                fields = _yaml("\n".join(lines[begin:]))
                if not isinstance(fields, Mapping):
                    fields = {"state": state, "raw": stripped}
                mark, _, rest = head.partition(" ")
                agent, _, summary = rest.partition(" ")
                known = mark in _MARKS or mark.rstrip("\ufe0f") in _BARE_MARKS
                return _from_mapping({"summary": summary if known and agent else head, **fields}, meta, language)
            return _garbage(answer, meta, language, kind="str")
        return _garbage(_safely(answer), meta, language, kind=type(answer).__name__)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a foreign object may raise anything from any method
        return failure(error, meta, language)


def failure(error: BaseException, meta: Meta, language: Language = "en") -> Report:
    """The report of an exception, with its type; the kernel's own errors are reported by kind."""
    kind = type(error).__name__
    in_words = approval_in if isinstance(error, ConsentNeeded) else in_language
    message = shorten(in_words(clean(_safely(error)), language), SUMMARY_LIMIT)
    if isinstance(error, ConsentNeeded):
        data = {"required": ["consent"], "optional": [], "reason": "consent", **_facts(error)}
        question, subject = say("ask.approve", language, what=message), str(data.get("subject", ""))
        also = tuple(map(str, data.pop("also", ())))
        return Report(state="pending", summary=question, meta=meta, data=data, subject=subject, also=also)
    if isinstance(error, InputNeeded):
        return Report(state="pending", summary=message, meta=meta, data={**_facts(error), "reason": "input"})
    summary = say("agent.crashed", language, type=kind, msg=message)
    if isinstance(error, KernelError):
        state: State = "timeout" if isinstance(error, TimedOut) else "error"
        hint = in_language(clean(_safely(error.hint)), language)
        data = {**_facts(error), "type": kind, "msg": in_language(clean(_safely(error)), language), "hint": hint}
        data |= {"code": error.code, "exit_code": error.exit_code}
        return Report(state=state, summary=summary, meta=meta, data=data, recoverable=error.recoverable)
    return Report(state="error", summary=summary, meta=meta, data={"type": kind, "msg": clean(_safely(error))})


def json_value(value: Any) -> Any:
    """The nearest value that JSON can carry in UTF-8; cut at `DEPTH` levels and `ROOM` characters."""
    return _Room().kept(value, DEPTH)


class _Room(Struct):
    """Counts the room left for one answer: a list that contains itself twice would be endless."""

    left: int = ROOM

    def kept(self, value: Any, depth: int) -> Any:
        self.left -= 32
        match value:
            case None | bool():
                return value
            case str():
                return self._text(value)
            case bytes() | bytearray():
                return self._text(bytes(value[:TEXT_LIMIT]).decode("utf-8", "replace"))
            case int():
                return int(value) if abs(value) < 2**63 else self._text(hex(value))
            case float():
                return float(value) if math.isfinite(value) else str(value)
        if depth == 0 or self.left <= 0:
            return "…"
        if isinstance(value, Mapping):
            return {self._text(_safely(key)): self.kept(item, depth - 1) for key, item in self._some(value.items())}
        if isinstance(value, (list, tuple)):
            return [self.kept(item, depth - 1) for item in self._some(value)]
        if isinstance(value, (set, frozenset)):
            return sorted((self.kept(item, depth - 1) for item in self._some(value)), key=repr)
        return self._text(_safely(value))

    def _some(self, items: Iterable[Any]) -> Iterator[Any]:
        for item in items:
            if self.left <= 0:
                return
            yield item

    def _text(self, text: str) -> str:
        cut = text[: max(min(TEXT_LIMIT, self.left), 0)].encode("utf-8", "replace").decode("utf-8")
        self.left -= len(cut)
        return cut


def _yaml(body: str) -> Any:
    """The values of the layout; None if it is not YAML, or could grow too large: an alias, or too deep nesting."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    try:
        for event in yaml.parse(body[: TEXT_LIMIT + 1], Loader=loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if isinstance(event, yaml.AliasEvent) or depth > YAML_DEPTH:
                return None
        return None if len(body) > TEXT_LIMIT else yaml.load(body, Loader=loader)  # noqa: S506 - both loaders are safe
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return None


def _from_mapping(fields: Mapping[Any, Any], meta: Meta, language: Language) -> Report:
    # One of the five states; case and spaces do not matter, and marks are accepted (RET-3)
    reported = fields.get("state")
    word = reported.strip() if isinstance(reported, str) else ""
    state = next((state for state in STATES if state == word.lower()), None)
    state = state or _MARKS.get(word) or _BARE_MARKS.get(word.rstrip("\ufe0f"))
    data = _data(fields.get("data"))
    raw, summary, effects = fields.get("raw"), fields.get("summary"), fields.get("effects")
    effects = islice(effects, EFFECTS) if isinstance(effects, (list, tuple)) else ()
    if state is None:
        data |= {"type": "InvalidReport", "msg": say("agent.garbage", language, agent=meta.agent)}
        data["reported_state"] = shorten(clean(_safely(reported)), 80)
    text = shorten(json_value(summary), SUMMARY_LIMIT) if isinstance(summary, str) and summary.strip() else ""
    return Report(
        state=state or "error",
        summary=text or (say("agent.garbage", language, agent=meta.agent) if state is None else state),
        meta=_meta(fields.get("meta"), meta),
        data=data,
        raw=json_value(raw)[:_TEXT_LIMIT_OF_RAW] if isinstance(raw, str) else None,
        recoverable=fields.get("recoverable") is True,
        effects=tuple(json_value(effect) for effect in effects if isinstance(effect, str)),
    )


def _data(value: object) -> dict[str, Any]:
    if value is None:
        return {}
    plain = json_value(value)
    return plain if isinstance(plain, dict) else {"value": plain}


def _meta(value: object, measured: Meta) -> Meta:
    """The agent's time and timestamp, if they are valid; its name is always the measured one."""
    if not isinstance(value, Mapping):
        return measured
    time, ts = value.get("time"), value.get("ts")
    if not isinstance(time, (int, float)) or isinstance(time, bool) or not 0 <= time < 1e9:
        time = measured.time
    return Meta(
        agent=measured.agent,
        time=time,
        ts=ts if isinstance(ts, str) and _ISO.fullmatch(ts) else measured.ts,
        cached=value.get("cached") is True,
    )


def _garbage(text: str, meta: Meta, language: Language, *, kind: str) -> Report:
    summary = say("agent.garbage", language, agent=meta.agent)
    data = {"type": "InvalidReport", "msg": summary, "returned": kind}
    return Report(state="error", summary=summary, meta=meta, data=data, raw=json_value(text)[:_TEXT_LIMIT_OF_RAW])


def _facts(error: KernelError) -> dict[str, Any]:
    try:
        return _data(dict(error.data))
    except Exception:  # noqa: BLE001 - the data of a plugin's error may be anything
        return {}


def _safely(value: object) -> str:
    """The text of any value; a container is limited first, because its own text may be endless."""
    try:
        if isinstance(value, (Mapping, list, tuple, set, frozenset)):
            return json.dumps(json_value(value), ensure_ascii=False)[:TEXT_LIMIT]
        return str(value)[:TEXT_LIMIT]
    except (Exception, SystemExit):  # noqa: BLE001 - str() of a foreign object may raise anything
        return f"<{type(value).__name__}>"


BEFORE = 200  # characters of the text before a piece that are read together with it


class EventStream(Struct):
    """Implements `events.Emit` for one run. What `redact` removes reaches neither the log nor a listener."""

    run: str
    turn: int
    log: RunLog
    clock: Clock
    listeners: Sequence[Listener] = ()
    seq: int = 0
    redact: Redact = same
    said: dict[int | None, str] = field(default_factory=dict)  # the end of each step's text so far

    def __call__(self, body: Body, *, step: int | None = None, parent: int | None = None) -> Event:
        """Makes the event; it is durable in the log before any listener gets it."""
        if isinstance(body, RunContent):  # a secret may be known only by the words of the piece before
            before = self.said.get(step, "")
            text = self.redact([before, body.text])[1]
            self.said[step] = (before + text)[-BEFORE:]
            body = RunContent(text=text)
        else:
            body = type(body)(**self.redact({name: getattr(body, name) for name in body.__struct_fields__}))
        event = Event(
            run=self.run, turn=self.turn, step=step, seq=self.seq, ts=self.clock.now(), parent=parent, body=body
        )
        self.log.append(event)
        self.seq += 1
        for listener in self.listeners:
            listener(event)
        return event
