"""Environments of their own for what a benchmark runs beside ours, kept in a cache folder of the person's."""

from __future__ import annotations

import os
import subprocess
import venv
from collections.abc import Sequence
from pathlib import Path

# The cache of the person who runs the benchmark.
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "navigator-bench"


class Absent(Exception):
    """It cannot be had here; says why."""


def python_with(name: str, packages: Sequence[str], probe: str) -> tuple[Path, str]:
    """The interpreter of the environment `name` with the current releases of `packages`, those put there before where
    no registry answers, and what the code `probe` prints in it. Absent where that fails."""
    place = _CACHE / name
    python = place / "bin" / "python"
    if not python.exists():
        venv.create(place, with_pip=True, clear=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--upgrade", *packages]
    done = subprocess.run(install, capture_output=True, text=True)
    held = subprocess.run([str(python), "-c", probe], capture_output=True, text=True)
    if held.returncode:
        raise Absent(f"pip cannot install it: {(done.stderr or held.stderr)[-300:]}")
    return python, held.stdout.strip()
