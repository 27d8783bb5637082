"""The client of the process that keeps the router loaded, and the hook that asks it."""
