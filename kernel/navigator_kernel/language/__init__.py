"""Sentences for people, and parsing of theirs."""
