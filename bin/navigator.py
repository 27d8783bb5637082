"""The whole command line, `navigator`; not for the worker, whose orders ask for consent where this would not."""

import os
import sys

from navigator_kernel.cli.main import main

if __name__ == "__main__":
    sys.exit("error: not from inside a run") if "NAVIGATOR_PROCESS" in os.environ else main()
