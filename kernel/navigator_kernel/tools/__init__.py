"""Tools for models, and the checks in front of every call."""
