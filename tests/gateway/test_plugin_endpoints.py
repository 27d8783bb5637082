"""Endpoints that an installed package adds to the HTTP API."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import SOURCE
from gateway.served import Person, serving

PLUGIN = """
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.values.http.conditions import tagged
from navigator_kernel.values.http.endpoint import Endpoint

async def list_boats(names, call):
    '''In the order of their names.'''
    return tagged({"boats": sorted(names)}, call.headers)

@hookimpl
def kernel_register_tools_and_endpoints(project):
    yield Endpoint(
        method="GET", path="/api/boats", role="chat", summary="List boats", handler=list_boats, tag="boats",
        headers=("If-None-Match",), sends=("ETag",), answer=dict, service=["Ida", "Ada"],
    )
"""

STREAM = """
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.values.http.endpoint import Endpoint
from navigator_kernel.values.http.sse import EVENT_STREAM, EventStream, frame

async def sail(turns, call):
    run = await turns.say(call.caller, "boat", "/word-count one two three")
    return EventStream(pieces=pieces(run), headers={"X-Boat": run.id})

async def pieces(run):
    async for events in run.events:
        for event in events:
            yield frame(event.body.summary if event.type == "RunCompleted" else event.type)

async def log(turns, call):
    run = await turns.last(call.caller, "boat")
    waits = await turns.waiting(call.caller, "boat")
    return {"run": run.id, "waits": waits, "said": [one.text for one in await turns.history(call.caller, "boat", 9)]}

@hookimpl
def kernel_register_tools_and_endpoints(project):
    yield Endpoint(
        method="POST", path="/boats", role="chat", summary="Sail", handler=sail, tag="boats", media=EVENT_STREAM,
    )
    yield Endpoint(method="GET", path="/boats/log", role="chat", summary="Log", handler=log, tag="boats", answer=dict)
    yield Endpoint(method="GET", path="/ships", role="chat", summary="Log", handler=log, tag="boats", answer=dict)
"""


def package(folder: Path, code: str) -> dict[str, str]:
    """Writes a package with the plugin `boats`; returns the environment that has it."""
    (folder / "boats.py").write_text(code)
    info = folder / "boats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[navigator]\nboats = boats\n")
    return {"PYTHONPATH": f"{folder}:{SOURCE / 'kernel'}"}


@pytest.mark.wide
def test_an_endpoint_of_a_package_streams_turns_of_its_own_below_its_name(person: Person, tmp_path: Path) -> None:
    env = {**person.env, **package(tmp_path, STREAM)}
    with serving(person._replace(env=env), roles=("chat", "admin")) as served, served.client("chat") as client:
        answer = client.post("/boats")
        log = client.get("/boats/log").json()
        assert client.get("/ships").status_code == 404  # a path that is not below its name
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert ("RunStarted" in answer.text, "3 words" in answer.text) == (True, True)
    assert (log["run"], log["waits"]) == (answer.headers["x-boat"], None)
    assert log["said"][0] == "/word-count one two three"


@pytest.mark.wide
def test_an_endpoint_of_a_package_has_roles_tags_and_a_place_in_the_document(person: Person, tmp_path: Path) -> None:
    env = {**person.env, **package(tmp_path, PLUGIN)}
    with serving(person._replace(env=env), roles=("chat", "read")) as served, served.client("chat") as client:
        answer = client.get("/api/boats")
        assert answer.json() == {"boats": ["Ada", "Ida"]}
        assert client.get("/api/boats", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        described = client.get("/openapi.json").json()["paths"]["/api/boats"]["get"]
        with served.client("read") as reader:
            refused = reader.get("/api/boats")
    assert (described["operationId"], described["description"]) == ("list_boats", "In the order of their names.")
    assert (refused.status_code, refused.json()["code"]) == (403, "role")
