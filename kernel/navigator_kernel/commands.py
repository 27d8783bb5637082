"""What the commands of plugins need: the option `--json`, and output that is cleaned and translated like the kernel's.

Data goes to stdout, everything else to stderr. `json_option` gives a command the argument `as_json`; `document` prints
its one JSON document, with `exit_code`. `lines` prints data as it is, `say_lines` and `note` sentences.
"""

from __future__ import annotations

from navigator_kernel.cli.app import json_option
from navigator_kernel.cli.output import document, lines, note, say_lines

__all__ = ["document", "json_option", "lines", "note", "say_lines"]
