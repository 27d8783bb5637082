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


@pytest.mark.wide
def test_an_endpoint_of_a_package_has_roles_tags_and_a_place_in_the_document(person: Person, tmp_path: Path) -> None:
    (tmp_path / "boats.py").write_text(PLUGIN)
    info = tmp_path / "boats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: boats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[navigator]\nboats = boats\n")
    env = {**person.env, "PYTHONPATH": f"{tmp_path}:{SOURCE / 'kernel'}"}
    with serving(person._replace(env=env), roles=("chat", "read")) as served, served.client("chat") as client:
        answer = client.get("/api/boats")
        assert answer.json() == {"boats": ["Ada", "Ida"]}
        assert client.get("/api/boats", headers={"If-None-Match": answer.headers["etag"]}).status_code == 304
        described = client.get("/openapi.json").json()["paths"]["/api/boats"]["get"]
        with served.client("read") as reader:
            refused = reader.get("/api/boats")
    assert (described["operationId"], described["description"]) == ("list_boats", "In the order of their names.")
    assert (refused.status_code, refused.json()["code"]) == (403, "role")
