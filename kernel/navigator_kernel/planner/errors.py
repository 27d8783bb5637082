"""Refusals of the planner, each a ValueError with a sentence."""


class NoSuchEntry(ValueError):
    """What was asked for by its number is not there."""


class ChangedMeanwhile(ValueError):
    """Somebody else changed the same entry at the same time; nothing was written."""


class DefaultProject(ValueError):
    """The default project cannot be deleted."""
