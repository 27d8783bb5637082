"""The HTTP API conforms to its OpenAPI document: thousands of generated requests, one by one and in sequences."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.served import Person, Served, serving
from models.wire_server import HELLO, WireServer
from specialist.turns import says

CASES = 2_000
SEED = 20_261_126
CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance",
    "response_schema_conformance", "negative_data_rejection", "unsupported_method", "allow_header_conformance",
    "missing_required_header", "use_after_free", "ensure_resource_availability", "ignored_auth",
)  # fmt: skip
DEAD = "http://127.0.0.1:9"
NO_NETWORK = dict.fromkeys(("http_proxy", "https_proxy"), DEAD) | {"no_proxy": "127.0.0.1", "GIT_SSH_COMMAND": "false"}
RATE = "45/s"  # one token may make 50 changes a second
EVENTS = "/api/events"  # an endless stream: each case lasts until the request times out

pytestmark = [pytest.mark.ci, pytest.mark.timeout(1_200)]


@pytest.fixture(scope="module")
def contract_server(person: Person, model_server: WireServer) -> Iterator[Served]:
    says(model_server, HELLO)
    with serving(person._replace(env={**person.env, **NO_NETWORK})) as held:
        yield held


def run(served: Served, folder: Path, *options: str, seconds: int = 20) -> Any:
    """Runs schemathesis, which waits `seconds` for each answer; returns its report."""
    report = folder / "report.json"
    argv = [
        sys.executable, "-m", "schemathesis.cli", "run", f"{served.url}/openapi.json", "--checks", ",".join(CHECKS),
        "--header", f"Authorization: Bearer {served.tokens['admin']}", "--rate-limit", RATE, "--seed", str(SEED),
        "--continue-on-failure", "--generation-database", "none", "--suppress-health-check", "all", "--no-color",
        "--request-timeout", str(seconds), "--report", "json", "--report-json-path", str(report), *options,
    ]  # fmt: skip
    hooks = {"SCHEMATHESIS_HOOKS": "gateway.contract_hooks", "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(argv, cwd=folder, env={**os.environ, **hooks}, capture_output=True, text=True, timeout=1_000)
    print(done.stdout[-6_000:])
    assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
    return json.loads(report.read_text())


# TOL-13: entries are created, read, changed and deleted in any order. The server must be fresh: with the data that the
# other test leaves, sequences end early
@pytest.mark.requirement("TOL-13")
def test_sequences_of_requests_keep_to_the_document(contract_server: Served, tmp_path: Path) -> None:
    tags = [word for tag in ("tasks", "notes", "projects", "sessions") for word in ("--include-tag", tag)]
    report = run(contract_server, tmp_path, "--phases", "stateful", "--max-examples", "150", *tags)
    assert report["phases"]["stateful"]["status"] == "success"
    assert report["test_cases"]["generated"] >= 300


# TOL-13: "RESTful API", as its document describes it
@pytest.mark.requirement("TOL-13")
def test_every_answer_is_one_that_the_document_names(contract_server: Served, tmp_path: Path) -> None:
    # of 20 examples none after the 14th had an answer of a new kind (operation and status)
    phases = ("--phases", "coverage,fuzzing", "--max-examples", "15")
    report = run(contract_server, tmp_path, *phases, "--exclude-path", EVENTS)
    assert report["test_cases"]["generated"] >= CASES
    streams = run(contract_server, tmp_path, *phases, "--include-path", EVENTS, seconds=2)
    assert streams["test_cases"]["generated"] >= 20
    with contract_server.client() as client:
        paths = client.get("/openapi.json").json()["paths"]
    tested = report["operations"]["tested"] + streams["operations"]["tested"]
    assert tested == sum(map(len, paths.values())) - 1  # all operations except the document itself
