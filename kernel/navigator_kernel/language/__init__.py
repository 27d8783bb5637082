"""Sentences for people, and what is read out of theirs."""
