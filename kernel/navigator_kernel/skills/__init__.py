"""Skills on disk: reading, listing, installing, recording."""
