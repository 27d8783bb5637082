"""Who may do what, and the gate before every process."""
