"""Records what a turn receives from outside, so that the turn can be replayed and compared."""
