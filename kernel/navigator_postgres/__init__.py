"""Postgres as the place of a project's state, which several hosts share. A plugin: it uses only public hooks and
ports."""
