"""The stages of a turn: plain functions from values to values, which never import each other."""
