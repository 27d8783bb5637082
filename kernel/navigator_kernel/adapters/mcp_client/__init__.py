"""The client of MCP servers: their processes, one connection to each, and their answers (AGT-4, AGT-9)."""
