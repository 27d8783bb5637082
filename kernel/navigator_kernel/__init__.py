"""Navigator Kernel: installs, chooses, runs and explains Agent Skills."""

__version__ = "0.1.0"
