"""Reading and checking skill files."""
