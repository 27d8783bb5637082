"""The same decision on every surface: the command line, a host's hook, the MCP tool `route` and the library.

The table is `golden/surfaces.tsv`; `UPDATE_GOLDEN=1` writes it.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel import Kernel, Reply
from navigator_kernel.bootstrap.project import Project
from navigator_kernel.cli.project import App
from navigator_kernel.cli.route.routed import routed
from navigator_kernel.config.settings import Settings
from navigator_kernel.daemon.prompt_hook import render_hint
from navigator_kernel.mcp_server.server import KernelTools
from navigator_kernel.values.request import Message, Session

TABLE = Path(__file__).parent / "golden" / "surfaces.tsv"
HEAD = "message\tdecision\tat a terminal\thook"
MESSAGES = [line.split("\t")[0] for line in TABLE.read_text("utf-8").splitlines()[1:]]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the shipped skills."""
    return tmp_path_factory.mktemp("surfaces")


Surfaces = tuple[App, KernelTools, Kernel]


async def no_turn(_message: Message, _session: Session) -> Reply:
    raise AssertionError("a route takes no turn")


@pytest.fixture
def surfaces(root: Path, monkeypatch: pytest.MonkeyPatch) -> Surfaces:
    monkeypatch.chdir(root)
    settings = Settings()
    app = App(root_flag=str(root))
    tools = KernelTools(kernel=Project(root, settings), take=no_turn)
    app.bare = Project(root, settings, agents=False)
    return app, tools, Kernel(root)


def hint(told: dict[str, Any]) -> str:
    """The hook's text, in short."""
    said = render_hint(told)
    return "" if not said else "use it" if "fits this message" in said else "may fit"


def test_every_surface_makes_the_same_decision(surfaces: Surfaces) -> None:
    app, tools, kernel = surfaces
    rows = [HEAD]
    for text in MESSAGES:
        told = routed(app, text, 5)
        chosen, options = told["entity"] if told["kind"] == "skills" else None, told["options"]
        mcp = asyncio.run(tools.route(text))
        ours = kernel.route(text)
        assert (mcp["kind"], mcp["entity"], mcp.get("options", [])) == (told["kind"], told["entity"], options), text
        assert (ours.kind, ours.skill or None, list(ours.options)) == (told["kind"], chosen, options), text
        said = hint(told)
        assert said == ("use it" if chosen else "may fit" if options else ""), text
        decision = f"take {chosen}" if chosen else f"offer {', '.join(options)}" if options else told["kind"]
        rows.append("\t".join((text, decision, told["phase_one"].get("question", ""), said)))
    if os.environ.get("UPDATE_GOLDEN") == "1":
        TABLE.write_text("\n".join(rows) + "\n", "utf-8")
    assert rows == TABLE.read_text("utf-8").splitlines()


def test_the_table_is_large_and_has_every_decision() -> None:
    decisions = [line.split("\t")[1].split(" ")[0] for line in TABLE.read_text("utf-8").splitlines()[1:]]
    assert len(decisions) >= 60
    assert min(decisions.count(one) for one in ("take", "offer", "direct")) >= 5
