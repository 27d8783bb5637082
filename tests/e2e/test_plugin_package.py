"""A separate package, built and installed here, adds an agent by entry point."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.wide

PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "navigator-echo"
version = "1.0"

[project.entry-points.navigator]
echo = "navigator_echo"
"""
PLUGIN = '''\
from navigator_kernel.hookspecs import hookimpl
from navigator_kernel.values.packet import packet_from_yaml



class EchoAgent:
    """Stands in for the dispatcher's own worker under another name, and raises when told to."""

    name = "echo"
    aliases = ("echo_agent",)
    description = "Says the intent back"

    async def handle(self, prompt):
        packet = packet_from_yaml(prompt)
        if "raise" in packet.task_spec.intent:
            raise ValueError("told to raise")
        return {"state": "success", "summary": packet.task_spec.intent, "data": {"prompt": prompt}}


@hookimpl
def kernel_register_agents(ports):
    return [EchoAgent()]


@hookimpl
def kernel_precheck(count):
    raise RuntimeError("the echo plugin cannot count")
'''
DRIVER = """\
import asyncio, json, sys
from pathlib import Path
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.dispatch import EventStream
from navigator_kernel.config.settings import load_settings
from navigator_kernel.turn.deliver import DispatchDeps, deliver
from navigator_kernel.values.packet import Context, Packet, TaskSpec
from navigator_kernel.values.plan import DispatchPlan, DispatchStep

kernel = Project(Path.cwd(), load_settings(Path.cwd()))
stream = EventStream(run="driver", turn=0, log=kernel.run_log, clock=kernel.clock)
def order(intent, key):
    spec = TaskSpec(intent=intent, operation="run", target="echo")
    place = Context(run="driver", step=0, idempotency_key=key)
    return DispatchStep(packets=(Packet(agent="echo", task_spec=spec, context=place),))
delivery = DispatchDeps(dispatcher=kernel.dispatcher, clock=kernel.clock, offload=lambda packet, text: "", describe=lambda name: ("", ""))
said = asyncio.run(deliver(DispatchPlan(steps=(order("hello 你好", "1"),)), delivery, stream))
failed = asyncio.run(deliver(DispatchPlan(steps=(order("please raise", "2"),)), delivery, stream))
kernel.precheck_hook(3)
log = [event.to_dict() for event in kernel.run_log.read("driver")]
reports = {"said": said[0].to_dict(), "failed": failed[0].to_dict()}
print(json.dumps({**reports, "log": log, "failures": list(kernel.failures()), "agents": sorted(kernel.agents)}))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder in which the built package is installed."""
    source = tmp_path_factory.mktemp("echo")
    (source / "pyproject.toml").write_text(PROJECT)
    (source / "navigator_echo").mkdir()
    (source / "navigator_echo" / "__init__.py").write_text(PLUGIN)
    target = tmp_path_factory.mktemp("site")
    words = [
        "pip",
        "install",
        "-qq",
        "--no-deps",
        "--no-build-isolation",
        "--no-index",
        "--target",
        str(target),
        str(source),
    ]
    subprocess.run([sys.executable, "-m", *words], check=True, capture_output=True)
    return target


@pytest.fixture
def answers(site: Path, tmp_path: Path) -> dict[str, object]:
    """What a program in an empty project sees of the plugin."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *filter(None, [os.environ.get("PYTHONPATH")])])}
    done = subprocess.run([sys.executable, "-c", DRIVER], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


def test_an_agent_of_a_package_is_dispatched_to(answers: dict[str, dict[str, object]]) -> None:
    assert answers["said"]["state"] == "success"
    assert answers["said"]["summary"] == "hello 你好"


def test_the_packet_that_it_got_equals_the_one_in_the_log(answers: dict[str, object]) -> None:
    import yaml

    got = yaml.safe_load(answers["said"]["data"]["prompt"])  # type: ignore[index]  # JSON of the driver
    logged = next(event["data"]["packet"] for event in answers["log"] if event["type"] == "StepStarted")  # type: ignore[attr-defined]  # JSON of the driver
    assert got == logged


def test_an_agent_that_raises_ends_in_a_named_report(answers: dict[str, dict[str, object]]) -> None:
    assert answers["failed"]["state"] == "error"
    assert answers["failed"]["agent"] == "echo"
    assert "told to raise" in str(answers["failed"]["data"])


def test_a_hook_that_raises_is_named_and_the_rest_continues(answers: dict[str, object]) -> None:
    failure = {"plugin": "echo", "hook": "kernel_precheck", "error": "RuntimeError: the echo plugin cannot count"}
    raised = {"plugin": "echo", "hook": "handle", "error": "ValueError: told to raise"}
    assert answers["failures"] == [raised, failure]
    assert {"echo", "worker", "skills", "mcp"} <= set(answers["agents"])  # type: ignore[call-overload]  # JSON of the driver
