"""A world for programs that are tried as the testing user (root in CI) and as nobody, under bubblewrap and Landlock."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.world import RUNGS, User, World, opened

USERS = ("self", "nobody")


@pytest.fixture(scope="module", params=USERS)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    user: User = request.param
    if user == "nobody" and (os.getuid() != 0 or not Path("/usr/bin/python3").exists()):
        pytest.skip("only root can be another, who needs an interpreter that all may run")
    with opened(user) as found:
        yield found


@pytest.fixture(scope="module", params=RUNGS)
def rung(request: pytest.FixtureRequest, world: World) -> str:
    if not world.attempt("print(1)", request.param)["there"]:
        pytest.skip(f"there is no {request.param} here")
    name: str = request.param
    return name
