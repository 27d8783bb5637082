"""The events of runs as clients are sent them: feeds in memory, their frames, server-sent events."""
