"""Tools for models: typed functions made callable, and the fence that decides which may be called."""
