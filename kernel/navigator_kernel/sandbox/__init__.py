"""Permissions, and the gate in front of every process."""
