"""Adds, approves, asks and removes MCP servers: `navigator mcp` under the name of the documents."""

import sys

try:
    from _environment import main
except ImportError:  # the sandbox starts Python without this folder (-I -P)
    from navigator_kernel.cli.main import main

main(["mcp", *sys.argv[1:]])
