"""Installs, finds and removes skills: `navigator skill` under the name of the documents."""

import sys

from navigator_kernel.cli.main import main

if __name__ == "__main__":
    main(["skill", *sys.argv[1:]])
