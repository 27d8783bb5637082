"""A person's tasks, notes and links: tools for models, and endpoints of the HTTP API. It is a plugin (`plugin.py`)."""
