"""The frozen values that the stages hand to each other."""
