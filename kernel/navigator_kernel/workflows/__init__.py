"""Workflows: recognised in a message, stored in a file, run step by step, without a model."""
