"""Finds the resource that a message means: by exact names, protocol verbs, then retrieval (X-1)."""
