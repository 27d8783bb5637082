"""The kernel as an agent of the Agent Client Protocol (ACP), for editors: a plugin that adds the command `acp`."""
