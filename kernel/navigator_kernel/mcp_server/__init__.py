"""The kernel as an MCP server: a router for coding agents."""
