"""Errors of the planner, each a ValueError with a sentence."""


class NoSuchEntry(ValueError):
    """No entry has the requested number."""


class ChangedMeanwhile(ValueError):
    """Somebody else changed the same entry at the same time; nothing was written."""


class DefaultProject(ValueError):
    """The default project cannot be deleted."""
