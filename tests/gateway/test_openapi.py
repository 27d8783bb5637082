"""The OpenAPI document is valid, complete, and built from the declarations of endpoints and tools."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from gateway.served import Served
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.gateway.gateway import Gateway
from navigator_kernel.gateway.openapi import document, statuses, template_of
from navigator_kernel.gateway.server import endpoints_of
from navigator_kernel.values.http.endpoint import Endpoint
from navigator_planner.toolkit import registry

BODIES = {
    ("/api/tasks", "post"): "task_create",
    ("/api/notes", "post"): "note_create",
    ("/api/links", "post"): "link_create",
}
PARTS = {("/api/tasks/{task}", "patch"): "task_update", ("/api/tasks/{task}/snooze", "post"): "task_snooze"}


@pytest.fixture
def endpoints(tmp_path: Path) -> Sequence[Endpoint]:
    """The endpoints of the kernel and of the planner's plugin."""
    return endpoints_of(Gateway(Project(tmp_path)))


@pytest.fixture
def spec(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    held: dict[str, Any] = json.loads(json.dumps(document(endpoints)))
    return held


def test_the_document_is_valid_openapi(spec: dict[str, Any]) -> None:
    assert spec["openapi"] == "3.1.0"
    assert [error.message for error in OpenAPIV31SpecValidator(spec).iter_errors()] == []


def test_every_endpoint_is_in_it_with_its_role_and_statuses(
    spec: dict[str, Any], endpoints: Sequence[Endpoint]
) -> None:
    for endpoint in endpoints:
        held = spec["paths"][template_of(endpoint.path)][endpoint.method.lower()]
        assert (held["operationId"], held["x-role"]) == (endpoint.name, endpoint.role)
        assert sorted(held["responses"]) == sorted(map(str, (endpoint.status, *statuses(endpoint))))
    names = [endpoint.name for endpoint in endpoints]
    assert len(names) == len(set(names)) == sum(len(held) for held in spec["paths"].values())


def resolved(value: Any, spec: dict[str, Any], own: dict[str, Any] | None = None) -> Any:
    """The schema with its references resolved."""
    if isinstance(value, dict):
        if "$ref" in value:
            name = value["$ref"].rpartition("/")[2]
            return resolved((own or {}).get(name) or spec["components"]["schemas"][name], spec, own)
        return {key: resolved(held, spec, own) for key, held in value.items() if key != "$defs"}
    return [resolved(held, spec, own) for held in value] if isinstance(value, list) else value


def body(spec: dict[str, Any], place: tuple[str, str]) -> Any:
    held = spec["paths"][place[0]][place[1]]["requestBody"]["content"]["application/json"]["schema"]
    return resolved(held, spec)


# TOL-13: the REST bodies are the schemas of the registry's ToolDefs
@pytest.mark.requirement("TOL-13")
@pytest.mark.parametrize("place", [*BODIES, *PARTS])
def test_a_body_is_the_schema_of_the_tool_of_chat(spec: dict[str, Any], place: tuple[str, str]) -> None:
    kind = registry()[{**BODIES, **PARTS}[place]].args_schema
    assert kind is not None
    schema = kind.model_json_schema()
    wanted, said = resolved(schema, spec, schema.get("$defs", {})), body(spec, place)
    if place in PARTS:
        wanted["properties"].pop("task_id")
    assert said["properties"] == wanted["properties"]
    assert said["additionalProperties"] is wanted["additionalProperties"] is False


@pytest.mark.requirement("TOL-13")
def test_every_tool_of_the_planner_has_an_endpoint(endpoints: Sequence[Endpoint]) -> None:
    verbs = {"get": "read"}
    names = {endpoint.name for endpoint in endpoints}
    for tool in registry():
        thing, _, verb = tool.partition("_")
        verb = verbs.get(verb, verb)
        assert names & {f"{verb}_{thing}", f"{verb}_{thing}s"}, tool


def test_a_sessions_name_has_the_pattern_that_the_store_takes(spec: dict[str, Any]) -> None:
    parts = [
        part["schema"]
        for held in spec["paths"].values()
        for operation in held.values()
        for part in operation["parameters"]
        if (part["in"], part["name"]) == ("path", "session")
    ]
    fields = [("Started", "session"), ("RunAgentInput", "threadId")]
    bodies = [spec["components"]["schemas"][name]["properties"][field] for name, field in fields]
    assert len(parts) == 5 and {part["pattern"] for part in (*parts, *bodies)} == {"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"}


@pytest.mark.wide
def test_a_client_reads_the_document_from_the_server(served: Served, spec: dict[str, Any]) -> None:
    with served.client("read") as client:
        answer = client.get("/openapi.json")
    assert (answer.headers["content-type"], answer.json()) == ("application/json", spec)
