"""The client of the resident router process, and the prompt hook."""
