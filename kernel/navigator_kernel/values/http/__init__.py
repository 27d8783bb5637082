"""Endpoints of the HTTP API as values: what the kernel and plugins declare, without a server."""
