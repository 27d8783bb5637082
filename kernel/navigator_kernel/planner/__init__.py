"""A person's tasks, notes and links. Only the plugin `agents/planner` imports it; it imports only what a plugin may."""
