"""The kernel as an MCP server: a router for the agent that people already use."""
