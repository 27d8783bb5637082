"""What a turn was told from outside, kept beside its events, so that it can be taken again and compared."""
