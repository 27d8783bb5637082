"""Starts the scanners of a skill in child processes."""
