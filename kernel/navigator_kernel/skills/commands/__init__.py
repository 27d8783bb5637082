"""The skill commands, each a function of the ground that it stands on and its parameters."""
