"""The kernel over HTTP: its API, its event streams, and projections to the protocols of other clients."""
