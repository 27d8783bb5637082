"""The events of a turn in the forms of other protocols."""
