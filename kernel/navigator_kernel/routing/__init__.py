"""Which resource is meant: exact names, protocol verbs, then retrieval (X-1)."""
