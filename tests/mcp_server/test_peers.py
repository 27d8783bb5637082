"""The server, used by others: fastmcp's client, the public inspector, and the protocol's own conformance scenarios."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place, environment, place_in
from mcp_server.test_http import TOKEN, serving
from mcp_server.token_proxy import saying
from tables import table

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

FASTMCP = "fastmcp>=4.1,<5"
PEERS = ("@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.2.0-alpha.12", "node@26.10.0")
SCENARIOS = table(__file__, "SCENARIOS")


@pytest.fixture(scope="module")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the peers from npm, including a newer node than Debian's."""
    folder = tmp_path_factory.mktemp("npm")
    argv = ["npm", "install", "--silent", "--no-fund", "--no-audit", *PEERS]
    subprocess.run(argv, cwd=folder, check=True, timeout=300)
    return folder / "node_modules"


@pytest.fixture(scope="module")
def fastmcp(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fastmcp")
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, timeout=120)
    subprocess.run([folder / "bin" / "pip", "install", "--quiet", FASTMCP], check=True, timeout=300)
    return folder / "bin" / "python"


@pytest.fixture
def here(tmp_path: Path, home: Path) -> Place:
    return place_in(tmp_path)


def ran(argv: Sequence[str | Path], npm: Path, **more: str) -> subprocess.CompletedProcess[str]:
    path = f"{npm / '.bin'}{os.pathsep}{os.environ['PATH']}"
    env = environment({"PATH": path, "NO_COLOR": "1", **more})
    return subprocess.run(list(argv), env=env, capture_output=True, text=True, timeout=120, cwd=npm.parent)


def test_fastmcps_client_lists_gets_verifies_routes_loads_and_runs(here: Place, fastmcp: Path) -> None:
    argv = [sys.executable, "-m", "navigator_kernel.cli.main", "--root", str(here.root), "mcp", "serve"]
    # fastmcp's client passes almost no environment variables to the program that it starts
    line = [
        "env",
        *(
            f"{name}={value}"
            for name, value in environment().items()
            if name.startswith(("PYTHON", "XDG", "HOME", "NAV"))
        ),
    ]
    host = Path(__file__).with_name("fastmcp_host.py")
    done = subprocess.run([fastmcp, host, *line, *argv], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["names"] == here.json("mcp", "serve", "--check")["served"]
    assert (told["entity"], told["state"], told["files"] > len(told["names"])) == ("code-review", "success", True)


def test_the_inspector_lists_routes_and_reads(here: Place, npm: Path) -> None:
    server = {
        "command": sys.executable,
        "args": ["-m", "navigator_kernel.cli.main", "--root", str(here.root), "mcp", "serve"],
    }
    config = here.root / "servers.json"
    config.write_text(json.dumps({"mcpServers": {"navigator": {**server, "env": environment()}}}))
    asked: list[str | Path] = [
        npm / ".bin" / "mcp-inspector",
        "--cli",
        "--config",
        config,
        "--server",
        "navigator",
        "--method",
    ]

    def inspected(*words: str) -> dict[str, Any]:
        done = ran([*asked, *words], npm)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    assert [tool["name"] for tool in inspected("tools/list")["tools"]] == ["route", "load_skill", "run_skill", "why"]
    routed = inspected("tools/call", "--tool-name", "route", "--tool-arg", "message=please review this code")
    assert '"entity": "code-review"' in str(routed["content"])
    assert "name: code-review" in str(inspected("resources/read", "--uri", "skill://code-review/SKILL.md"))


def test_the_protocols_own_scenarios_pass(here: Place, npm: Path) -> None:
    suite = npm / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    failed = {}
    with serving(here) as url, saying(url, TOKEN) as address:
        for scenario in SCENARIOS:
            done = ran([npm / ".bin" / "node", suite, "server", "--url", address, "--scenario", scenario], npm)
            if done.returncode != 0 or "0 failed" not in done.stdout:
                failed[scenario] = done.stdout[-2000:] + done.stderr[-2000:]
    assert failed == {}
