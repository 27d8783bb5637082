"""Commands that stand for themselves."""
