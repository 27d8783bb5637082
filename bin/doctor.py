"""Looks for what is missing or damaged: `navigator doctor`."""

import sys

from navigator_kernel.cli.main import main

if __name__ == "__main__":
    main(["doctor", *sys.argv[1:]])
