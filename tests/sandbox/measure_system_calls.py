"""Prints the system calls that scripts of a folder make, and those of them that the sandbox denies. Run by hand:

    python tests/sandbox/measure_system_calls.py FOLDER [NUMBER]

It starts NUMBER (200) of the folder's Python, shell and Node scripts with `--help` under strace(1), without a sandbox: use
a machine on which they may run.
"""

from __future__ import annotations

import collections
import os
import random
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from navigator_kernel.sandbox.backends import ALLOWED, ATTRIBUTES, CHECKED, MARKS

PROGRAMS = {".py": "python3", ".sh": "bash", ".js": "node", ".mjs": "node"}
SECONDS = 5
_CALL = re.compile(r"\d+\s+(?:<\.\.\. )?(\w+)[( ]")


def main() -> None:
    scripts = sorted(path for path in Path(sys.argv[1]).rglob("*") if path.suffix in PROGRAMS and path.is_file())
    chosen = random.Random(1).sample(scripts, min(int(sys.argv[2]) if len(sys.argv) > 2 else 200, len(scripts)))
    seen = collections.Counter(name for script in chosen for name in calls(script))
    known = {*ALLOWED, *ATTRIBUTES, *CHECKED, *MARKS}
    print(f"{len(chosen)} scripts, {len(seen)} system calls: {' '.join(sorted(seen))}")
    print(f"denied: {' '.join(f'{name} ({seen[name]} scripts)' for name in sorted(seen.keys() - known)) or 'none'}")


def calls(script: Path) -> set[str]:
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        argv = ["strace", "-f", "-qq", "-o", str(log), PROGRAMS[script.suffix], str(script.resolve()), "--help"]
        env = {"PATH": os.environ["PATH"], "HOME": folder}
        argv, none = ["timeout", str(SECONDS), *argv], subprocess.DEVNULL
        subprocess.run(argv, cwd=folder, env=env, check=False, stdin=none, stdout=none, stderr=none)
        lines = log.read_text(errors="replace").splitlines() if log.is_file() else []
    return {hit[1] for line in lines if (hit := _CALL.match(line))}


if __name__ == "__main__":
    main()
