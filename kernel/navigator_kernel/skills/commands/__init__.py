"""The skill commands, each a function of its services and parameters."""
