"""The command `route`."""
