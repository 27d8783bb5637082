"""Data flow analysis of code."""
