"""A planner on SQLite, and on a real Postgres."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.tools.factory import FunctionTool, ToolFactory
from navigator_planner.toolkit import URL, open_sessions, registry

Tools = Callable[[], dict[str, FunctionTool]]


@pytest.fixture
def planner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> dict[str, FunctionTool]:
    """The tools by their names, on the test's database."""
    kind = getattr(request, "param", "sqlite")
    if kind == "postgres":
        monkeypatch.setenv(URL, request.getfixturevalue("postgres"))
        _emptied(request.getfixturevalue("postgres"))
    else:
        monkeypatch.delenv(URL, raising=False)
    sessions = open_sessions(tmp_path / "planner.sqlite", lambda: None)
    return {tool.name: tool for tool in ToolFactory(sessions).registry(registry())}


def _emptied(url: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as database:
        database.execute("DROP SCHEMA public CASCADE")
        database.execute("CREATE SCHEMA public")


def both(*, more: Any = ()) -> pytest.MarkDecorator:
    """Runs the test on SQLite, and in CI on Postgres as well."""
    return pytest.mark.parametrize(
        "planner", ["sqlite", pytest.param("postgres", marks=[pytest.mark.ci, *more])], indirect=True
    )
