"""Installs, finds and removes skills: `navigator skill` under the name of the documents."""

import sys

try:
    from _environment import main
except ImportError:  # the sandbox starts Python without this folder (-I -P)
    from navigator_kernel.cli.main import main

main(["skill", *sys.argv[1:]])
