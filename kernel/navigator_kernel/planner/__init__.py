"""A person's tasks, notes and links: a toolkit for models, shipped as a plugin with the skill `task_manager`."""
