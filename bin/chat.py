"""A conversation with the kernel: `navigator chat`."""

import sys

try:
    from _environment import main
except ImportError:  # the sandbox starts Python without this folder (-I -P)
    from navigator_kernel.cli.main import main

main(["chat", *sys.argv[1:]])
