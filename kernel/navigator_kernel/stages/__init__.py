"""The stages of a turn: plain functions over values, which never import each other."""
