"""A conversation with the kernel: `navigator chat`."""

import sys

from navigator_kernel.cli.main import main

if __name__ == "__main__":
    main(["chat", *sys.argv[1:]])
