"""Adds, approves, asks and removes MCP servers: `navigator mcp` under the name of the documents."""

import sys

from navigator_kernel.cli.main import main

if __name__ == "__main__":
    main(["mcp", *sys.argv[1:]])
