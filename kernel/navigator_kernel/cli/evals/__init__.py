"""The command `eval`."""
