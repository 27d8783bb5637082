"""The whole command line, `navigator`; not for the worker, whose orders ask for consent where this would not."""

import os
import sys

try:
    from _environment import main
except ImportError:  # the sandbox starts Python without this folder (-I -P)
    from navigator_kernel.cli.main import main
sys.exit("error: not from inside a run") if "NAVIGATOR_PROCESS" in os.environ else main()
