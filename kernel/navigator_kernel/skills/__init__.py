"""Skills on disk: read, listed, installed, recorded."""
