"""Makes the kernel known to coding agents, and takes it out again to the byte."""
