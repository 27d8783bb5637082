"""The kernel as a client of MCP servers: their processes, one connection each, and what they answer (AGT-4, AGT-9)."""
