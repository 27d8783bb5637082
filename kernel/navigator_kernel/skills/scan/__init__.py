"""What is looked for in a skill before it is trusted."""
