"""The commands of `navigator skill`."""
