"""Tier 1: literal commands about MCP servers."""

from __future__ import annotations

from typing import Any

import pytest

from navigator_kernel.values.route import Mcp


@pytest.mark.requirement("SEN-5")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mcp运行 files", Mcp(operation="list", server="files")),
        ("mcp 运行 files", Mcp(operation="list", server="files")),
        ("MCP运行", Mcp(operation="list")),
        ("mcp run files", Mcp(operation="list", server="files")),
        ("mcp list files", Mcp(operation="list", server="files")),
        ("mcp tools search", Mcp(operation="tools", server="search")),
        ("mcp运行 读取 files file:///a.txt", Mcp(operation="read", server="files", uri="file:///a.txt")),
        ("mcp read files file:///a.txt", Mcp(operation="read", server="files", uri="file:///a.txt")),
        ("mcp read files", Mcp(operation="read", server="files")),
        ("mcp call search query q=cats", Mcp(operation="call", server="search", tool="query", args={"q": "cats"})),
        ("mcp run files file:///a.txt", Mcp(operation="read", server="files", uri="file:///a.txt")),
        ("@files:file:///a.txt", Mcp(operation="read", server="files", uri="file:///a.txt")),
        ("总结 @files:note://一.md。", Mcp(operation="read", server="files", uri="note://一.md")),
        ("what is in @files:note:one?", Mcp(operation="read", server="files", uri="note:one")),
        ("@nowhere:note://one", Mcp(operation="read", server="nowhere", uri="note://one")),
        ("mcp prompts files", Mcp(operation="prompts", server="files")),
        ("mcp prompt files greet who=Ann", Mcp(operation="prompt", server="files", tool="greet", args={"who": "Ann"})),
        ("mcp提示 files greet", Mcp(operation="prompt", server="files", tool="greet")),
        (
            'mcp call search query limit=3 {"q": "two words", "deep": [1]}',
            Mcp(operation="call", server="search", tool="query", args={"limit": "3", "q": "two words", "deep": [1]}),
        ),
    ],
)
def test_mcp_run_goes_to_the_mcp_agent(crowd: Any, text: str, expected: Mcp) -> None:
    assert crowd.says(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "MCP is a standard",
        "MCP 是什么",
        "MCP server for our weather API, please",
        "MCP工具开发，帮我封装接口",
        "mcp tools are overrated",
    ],
)
def test_a_text_about_mcp_is_not_a_command(crowd: Any, text: str) -> None:
    assert not isinstance(crowd.says(text), Mcp)
