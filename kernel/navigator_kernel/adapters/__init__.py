"""Every call to the world outside the process: files, git, databases, processes, models."""
