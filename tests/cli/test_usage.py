"""`navigator usage` sums up what models took, and how much of it a provider read from its cache."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.support import Place, place_in
from models.wire_server import HELLO, WireServer, serving
from specialist.turns import says, settings

pytestmark = pytest.mark.ci


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    says(server, HELLO)
    return place_in(tmp_path)


@pytest.mark.requirement("EVT-7")
def test_usage_sums_up_requests_tokens_and_what_came_from_a_cache(here: Place) -> None:
    for session in ("a", "a", "b"):
        here.json("ask", "--session", session, "hello there, how are you today?")
    told = here.json("usage")
    (model,) = told["models"]
    requests = model["requests"]
    assert (told["runs"], model["model"]) == (3, "there:worker") and requests >= 3
    assert (model["input_tokens"], model["cached_tokens"]) == (120 * requests, 100 * requests)
    assert here.json("usage", "--session", "b")["models"][0]["requests"] == requests // 3
    shown = here.run("usage").out
    assert "from a cache" in shown and "83%" in shown


def test_a_project_in_which_no_model_was_asked_has_none(tmp_path: Path) -> None:
    assert place_in(tmp_path).json("usage") == {"runs": 0, "models": [], "exit_code": 0}
