"""What an MCP host waits for with 10,000 skills: a route, a page of entries, a text."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles
from typing import Any

import pytest

from cli.support import MODULE, Place
from mcp import Client
from mcp_server.hosts import asked, called, hosted
from person_state import accept

pytestmark = pytest.mark.bench

MANY, ROUNDS = 10_000, 100
MESSAGES = (
    "summarise the invoices of last month",
    "帮我把这些发票汇总一下",
    "why is the sky blue?",
    "convert a table to csv",
)


def told(what: str, milliseconds: list[float], capsys: pytest.CaptureFixture[str]) -> float:
    cuts = quantiles(milliseconds, n=20)
    with capsys.disabled():
        print(f"{what}: p50 {cuts[9]:.1f} ms, p95 {cuts[-1]:.1f} ms, {len(milliseconds)} of them")
    return cuts[-1]


async def timed(milliseconds: list[float], asking: Any) -> Any:
    began = time.perf_counter()
    answer = await asking
    milliseconds.append((time.perf_counter() - began) * 1000)
    return answer


def test_a_route_among_10000_skills_takes_under_50_ms(
    many_skills: Callable[[int], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    routes: list[float] = []
    pages: list[float] = []
    entries: list[float] = []

    async def run(client: Client) -> tuple[int, float]:
        began = time.perf_counter()
        await called(client, "route", message="which skill is meant")
        first = time.perf_counter() - began
        for number in range(ROUNDS):
            await timed(routes, called(client, "route", message=f"{MESSAGES[number % len(MESSAGES)]} {number}"))
        count = 0
        cursor: dict[str, Any] | None = {}
        while cursor is not None:
            page = await timed(pages, asked(client, "skills/list", **cursor))
            count += len(page["skills"])
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
            await timed(entries, asked(client, "skills/get", uri=page["skills"][0]["uri"]))
        return count, first

    root = many_skills(MANY)
    accept(root)  # hosts get skills that the person installed or trusts
    count, first = hosted(Place(root=root, program=MODULE), run, seconds=300)
    with capsys.disabled():
        print(f"\n{count} skills served, load {os.getloadavg()[0]:.1f}, the first answer after {first:.1f} s")
    told("skills/list, a page", pages, capsys)
    told("skills/get", entries, capsys)
    assert count >= MANY
    assert told("route", routes, capsys) < 50
