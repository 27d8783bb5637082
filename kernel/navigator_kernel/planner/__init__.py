"""A person's tasks, notes and links. Only the plugin `agents/planner` imports it, and it imports what a plugin may."""
