"""The commands `ask` and `chat`."""
