"""Scanning skills before they are trusted."""
