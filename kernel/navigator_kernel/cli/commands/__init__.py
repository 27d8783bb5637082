"""Commands without a group."""
