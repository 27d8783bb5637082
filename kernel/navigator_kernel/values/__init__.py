"""The immutable values that the stages pass to each other."""
