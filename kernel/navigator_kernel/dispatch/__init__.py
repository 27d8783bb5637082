"""Sends packets to agents and turns any answer into one valid report."""
