"""The trace of a turn, as a collector receives it over OTLP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from gateway.served import Person, serving
from models.wire_server import Said, WireServer
from specialist.turns import says
from web_server import QuietServer

pytestmark = pytest.mark.wide


@pytest.fixture
def collector() -> Iterator[tuple[str, list[ExportTraceServiceRequest]]]:
    came: list[ExportTraceServiceRequest] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["content-length"]))
            data = gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data
            came.append(ExportTraceServiceRequest.FromString(data))
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return

    server = QuietServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", came
    server.shutdown()
    server.server_close()


def test_a_turn_is_a_trace_without_the_text_of_its_message(
    person: Person, model: WireServer, collector: tuple[str, list[ExportTraceServiceRequest]]
) -> None:
    url, came = collector
    says(model, Said(calls=[("task_create", '{"title": "a secret title"}')]), Said(text="done"))
    traced = person._replace(env={**person.env, "OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "100"})
    with serving(traced) as served:
        served.chat("/task_manager create a secret title", "traced")
        for _ in range(300):
            spans = [
                span
                for one in came
                for held in one.resource_spans
                for scope in held.scope_spans
                for span in scope.spans
            ]
            if "navigator.turn" in {span.name for span in spans}:
                break
            threading.Event().wait(0.1)
    by_name = {span.name: span for span in spans}
    turn, tool = by_name["navigator.turn"], by_name["execute_tool task_create"]
    step = next(span for span in spans if span.name.startswith("invoke_agent "))
    assert len({span.trace_id for span in spans}) == 1
    assert step.parent_span_id == turn.span_id and tool.parent_span_id == step.span_id
    assert {event.name for event in turn.events} >= {"navigator.route", "navigator.skill", "navigator.usage"}
    assert b"secret title" not in b"".join(one.SerializeToString() for one in came)
