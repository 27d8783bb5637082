"""Records that outlive a process."""
