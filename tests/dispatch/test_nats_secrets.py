"""A secret stands as a reference in the settings of a worker's MCP server: its value comes from that machine, and neither
the packet nor the broker, the report or a log has it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from dispatch.nats_broker import Broker
from dispatch.nats_parts import owner, settings, started_worker
from dispatch.orders import order
from navigator_kernel.values.packet import Report, report_to_dict

pytestmark = [pytest.mark.ci, pytest.mark.requirement("X-6")]
SERVER = Path(__file__).parents[1] / "agents" / "mcp_server.py"
VALUE = "hush-5Wq-of-the-worker"
PROVES = """
import hashlib, importlib.util, os, sys
spec = importlib.util.spec_from_file_location("server", sys.argv[1])
server = importlib.util.module_from_spec(spec)
spec.loader.exec_module(server)
server.TEXTS["note://one"] = hashlib.sha256(os.environ["DEPLOY_KEY"].encode()).hexdigest()
server.main("serve")
"""


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    running = Broker(tmp_path / "store").start()
    yield running
    running.kill()


def carried_out(broker: Broker, root: Path, **environment: str) -> tuple[Report, bytes]:
    """The report of a worker in a project at `root`, whose server needs DEPLOY_KEY, and all that the broker carried."""
    (root / "mybox").mkdir(parents=True)
    server = {"command": sys.executable, "args": ["-c", PROVES, str(SERVER)], "env": {"DEPLOY_KEY": "${DEPLOY_KEY}"}}
    (root / ".mcp.json").write_text(json.dumps({"mcpServers": {"files": server}}))
    carried: list[bytes] = []

    async def heard(message: Msg) -> None:
        carried.append(message.data + json.dumps(message.headers or {}).encode())

    async def sent() -> Report:
        client = await nats.connect(broker.url)
        await client.subscribe(">", cb=heard)
        await client.flush()
        sender = owner(settings(broker.url, pools=("mcp.files",), ack_wait=10))
        try:
            packet = order("mcp", "files", operation="read", server="files", uri="note://one", timeout=20)
            return await sender.result(str(await sender.submit(packet)))
        finally:
            await sender.close()
            await client.drain()

    worker = started_worker(root, broker.url, "--pool", "mcp.files", "--agree", **environment)
    try:
        return asyncio.run(sent()), b"\n".join(carried)
    finally:
        worker.kill()
        print(worker.communicate()[1])


def test_a_secret_of_the_worker_reaches_its_server_and_nothing_else(broker: Broker, tmp_path: Path) -> None:
    report, carried = carried_out(broker, tmp_path / "worker", DEPLOY_KEY=VALUE)
    assert report.raw == sha256(VALUE.encode()).hexdigest(), report
    assert report.raw.encode() in carried and VALUE.encode() not in carried
    assert VALUE not in str(report_to_dict(report))
    folders = (broker.folder, tmp_path / "worker", Path(os.environ["HOME"]))
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    assert any(path.is_relative_to(broker.folder) for path in files)
    assert [path for path in files if VALUE.encode() in path.read_bytes()] == []


def test_a_worker_without_the_secret_says_its_name_and_does_not_get_the_owners(
    broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_KEY", VALUE)  # of the owner, which is this process
    report, carried = carried_out(broker, tmp_path / "worker", DEPLOY_KEY="")
    assert report.state == "error" and "DEPLOY_KEY" in str(report.data)
    assert VALUE.encode() not in carried
