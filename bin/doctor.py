"""Looks for what is missing or damaged: `navigator doctor`."""

import sys

try:
    from _environment import main
except ImportError:  # the sandbox starts Python without this folder (-I -P)
    from navigator_kernel.cli.main import main

main(["doctor", *sys.argv[1:]])
