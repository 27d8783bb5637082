"""Registers the kernel with coding agents, and removes it again byte for byte."""
