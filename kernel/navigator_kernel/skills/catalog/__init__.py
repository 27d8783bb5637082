"""Installed skills: listing, searching, using."""
