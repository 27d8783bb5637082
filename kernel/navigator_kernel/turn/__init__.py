"""A turn, from the message to the reply; `turn.py` shows the whole way."""
