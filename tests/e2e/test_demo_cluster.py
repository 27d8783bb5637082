"""The demo of many hosts, as `make demo-cluster` runs it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from postgres_server import found

TESTS = Path(__file__).parents[1]


@pytest.mark.ci
@pytest.mark.requirement("X-6")
def test_every_turn_ends_once_while_a_worker_the_broker_and_a_gateway_are_killed() -> None:
    if found("initdb") is None:
        pytest.skip("postgresql is not installed")
    with tempfile.TemporaryDirectory(prefix="navigator-demo-") as folder:
        Path(folder).chmod(0o755)  # Postgres runs as another user, if this one is root
        environment = {**os.environ, "PYTHONPATH": f"{TESTS}:{TESTS.parent / 'kernel'}", "TMPDIR": folder}
        argv = [sys.executable, "-m", "maintenance.demo_cluster"]
        done = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=170)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "8 of 8 turns ended once" in done.stdout
        assert list(Path(folder).iterdir()) == []
