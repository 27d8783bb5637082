"""The commands of `navigator mcp`."""
