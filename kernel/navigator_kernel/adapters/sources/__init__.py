"""Repositories, folders and archives, each read as a tree of entries."""
