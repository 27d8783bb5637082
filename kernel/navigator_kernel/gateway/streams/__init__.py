"""The events of runs for clients: feeds in memory, their frames, server-sent events."""
