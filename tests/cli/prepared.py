"""Prepares a project, or the person's home, before a command runs."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from cli.support import Place
from models.wire_server import serving
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.config.settings import user_file
from navigator_kernel.values.workflow import RunState, WorkflowPlan, WorkflowStep
from person_state import state_of
from workflows.project import workflow_file

Before = Callable[[Place], object]
SERVING = ExitStack()
atexit.register(SERVING.close)  # while the threads of its servers still run
MCP_SERVER = Path(__file__).parents[1] / "mcp_client" / "hostile_server.py"


def install(place: Place) -> None:
    place.said("skill", "install", "./source/alpha")


def come_and_gone(place: Place) -> None:
    install(place)
    place.said("skill", "uninstall", "alpha")


def foreign_lock(place: Place) -> None:
    place.write({"skills-lock.json": '{"version": 1, "skills": {}}'})


def once(place: Place) -> None:
    assert place.run("ask", "hello").code == 0


def talk(place: Place) -> None:
    assert place.run("ask", "--session", "talk", "hello").code == 0


def other_project(place: Place) -> None:
    """Makes a state of another project, which is beside this one."""
    (place.root.parent / "other" / "mybox").mkdir(parents=True)
    state_of(place.root.parent / "other")


def broken(name: str) -> Before:
    """Leaves an unreadable file `name` in the project."""
    return lambda place: place.write({name: "{ broken = "})


def broken_state(name: str) -> Before:
    """The same for a file of the person's state of the project."""

    def write(place: Place) -> None:
        (state_of(place.root) / name).write_text("{ broken = ", encoding="utf-8")

    return write


def model_server(place: Place) -> None:
    """Starts a model that answers well, until the test run ends."""
    url = SERVING.enter_context(serving()).url
    settings = Path(os.environ["XDG_CONFIG_HOME"]) / "navigator" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[models.providers.there]\nurl = "{url}"\n')


def added_to_host(place: Place) -> None:
    place.said("host", "install", "claude-code")


def mcp_server(place: Place) -> None:
    """Adds an MCP server with one tool and one resource, without approving it."""
    place.said("mcp", "add", "there", "--", sys.executable, str(MCP_SERVER))


def policy_file(_place: Place) -> None:
    file = user_file().with_name("policy.toml")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('sources = ["github.com/acme/*"]\nfolders = true\n')


def profile(place: Place) -> None:
    place.said("profile", "save", "small", "word-count", "gone")


def changed(place: Place) -> None:
    Project(place.root, agents=False).changes.make("run-1", "notes.txt", None, b"new\n")


def results(place: Place) -> None:
    place.write({"mybox/workspace/20260101-120000000-abcdef/report.md": "# Report\n"})


def damaged(place: Place) -> None:
    changed(place)
    (record,) = state_of(place.root).glob("changes/run-1/*.after")
    record.write_bytes(b"other\n")


def no_trust(place: Place) -> None:
    path = Path(os.environ["XDG_STATE_HOME"]) / "navigator" / "trust.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{ broken")


def run_that(state: RunState, token: str = "run-1") -> Before:
    """Stores a workflow, and a run of it in that state."""

    def made(place: Place) -> None:
        workflow_file(place.root, "say", ("word-count", "/word-count lifetimes"))
        journal = Project(place.root, agents=False).journal
        step = WorkflowStep(text="say", skill="word-count", agent="skills", input="/word-count lifetimes")
        journal.propose(token, "talk", WorkflowPlan(name="say", description="say it", steps=(step,)))
        journal.mark(token, state)

    return made
