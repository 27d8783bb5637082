"""Installing, updating and removing skills, in transactions."""
