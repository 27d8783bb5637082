"""Sources of skills: parsed, opened, and searched for skills."""
