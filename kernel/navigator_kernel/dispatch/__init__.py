"""Carries packets to agents and makes one valid report of whatever comes back."""
