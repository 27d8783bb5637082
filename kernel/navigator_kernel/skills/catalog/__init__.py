"""Installed skills: listed, searched, used."""
