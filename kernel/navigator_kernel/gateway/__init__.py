"""The kernel behind HTTP: its API, its event streams, and the projections that other clients speak."""
