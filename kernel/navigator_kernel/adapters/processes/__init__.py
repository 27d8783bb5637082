"""Starting processes, within limits."""
