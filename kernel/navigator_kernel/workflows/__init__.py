"""Work of several steps: told apart in a message, kept in a file, both without a model."""
