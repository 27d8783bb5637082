"""Traces each turn for OpenTelemetry from its events (GenAI semantic conventions), without the text of messages."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from navigator_kernel import __version__
from navigator_kernel.events import (
    Event,
    Listener,
    RouteDecided,
    RunCancelled,
    RunCompleted,
    RunError,
    RunStarted,
    SkillActivated,
    StepCompleted,
    StepStarted,
    ToolCallCompleted,
    ToolCallStarted,
    Usage,
)

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer

FAILED = frozenset({"error", "timeout"})


def open_tracing() -> Callable[[], Listener] | None:
    """A function that makes a listener for each turn; None without the extra `otel`, or if neither
    OTEL_EXPORTER_OTLP_ENDPOINT nor OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a collector."""
    if not (os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT") or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")):
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return None
    provider = TracerProvider(resource=Resource.create({"service.name": "navigator", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    tracer = provider.get_tracer("navigator_kernel", __version__)
    return lambda: TurnSpans(tracer)


class TurnSpans:
    """Listens to one run: makes a span of the turn, in it one for each step, and in those one for each tool call."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._turn: Span | None = None
        self._steps: dict[int | None, Span] = {}
        self._calls: dict[str, Span] = {}

    def __call__(self, event: Event) -> None:
        match event.body:
            case RunStarted():
                self._turn = self._tracer.start_span("navigator.turn", attributes={"navigator.run": event.run})
            case RunCompleted(state=state):
                self._ended(state)
            case RunError() | RunCancelled():
                self._ended("error")
            case StepStarted(agent=agent):
                self._steps[event.step] = self._child(f"invoke_agent {agent}", {"gen_ai.agent.name": agent}, None)
            case StepCompleted(report=report):
                _end(self._steps.pop(event.step, None), str(report.get("state", "")))
            case ToolCallStarted(call=call, tool=tool):
                facts = {"gen_ai.tool.name": tool, "gen_ai.tool.call.id": call}
                self._calls[call] = self._child(f"execute_tool {tool}", facts, event.step)
            case ToolCallCompleted(call=call, state=state):
                _end(self._calls.pop(call, None), state)
            case RouteDecided(decision=decision):
                facts = {key: str(decision.get(key) or "") for key in ("kind", "entity", "tier", "reason")}
                self._event("navigator.route", facts)
            case SkillActivated(skill=skill, digest=digest):
                self._event("navigator.skill", {"name": skill, "digest": digest})
            case Usage() as spent:
                usage: dict[str, str | int] = {"gen_ai.request.model": spent.model, "navigator.phase": spent.phase}
                usage["gen_ai.usage.input_tokens"] = spent.input_tokens
                usage["gen_ai.usage.output_tokens"] = spent.output_tokens
                self._event("navigator.usage", usage)

    def _child(self, name: str, facts: dict[str, str], step: int | None) -> Span:
        """Starts a span in the span of its step if that is open, otherwise in the turn's."""
        from opentelemetry.trace import set_span_in_context

        above = self._steps.get(step) or self._turn
        return self._tracer.start_span(name, set_span_in_context(above) if above else None, attributes=facts)

    def _event(self, name: str, facts: Mapping[str, str | int]) -> None:
        if self._turn is not None:
            self._turn.add_event(name, facts)

    def _ended(self, state: str) -> None:
        for span in (*self._calls.values(), *self._steps.values()):
            _end(span, state)
        _end(self._turn, state)


def _end(span: Span | None, state: str) -> None:
    from opentelemetry.trace import StatusCode

    if span is None:
        return
    span.set_attribute("navigator.state", state)
    if state in FAILED:
        span.set_status(StatusCode.ERROR)
    span.end()
