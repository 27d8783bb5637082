"""The only rooms with a window: every call to the world outside the process."""
