"""Starts a script again with the Python of `.venv`, the environment that `make` made beside this folder.

Any Python can run this file: one that is too old for the kernel, too, and one without the kernel's packages.
"""

import os
import sys
import time
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
VENV = TOP / ".venv"
PYTHON = VENV / "bin" / "python"
NEEDED = ("navigator_kernel", "click", "msgspec")


def main(argv: "Sequence[str] | None" = None) -> None:
    """The command line `argv`, by this Python or by the environment's; else says how that is made, exit code 1."""
    inside = Path(sys.prefix).resolve() == VENV.resolve()
    if _can_run() and (inside or not _is_made() or _is_of_this_tree()):
        import_module("navigator_kernel.cli.main").main(argv)
        return
    if inside or not _is_made():
        _offer()
    os.execv(str(PYTHON), [str(PYTHON), *sys.argv])  # noqa: S606 - the same command line, by another Python


def _can_run() -> bool:
    return sys.version_info >= (3, 11) and all(find_spec(name) is not None for name in NEEDED)


def _is_of_this_tree() -> bool:
    spec = find_spec("navigator_kernel")
    return spec is not None and TOP in Path(str(spec.origin)).resolve().parents


def _is_made() -> bool:
    return (VENV / "made").exists() and os.access(str(PYTHON), os.X_OK)


def _offer() -> None:
    """On a terminal it makes the environment after a yes; everywhere else it ends with one line."""
    from shlex import quote

    if not (TOP / "Makefile").exists():
        sys.exit("error: this Python lacks navigator_kernel; use the one that has it")
    line = f"make -C {quote(str(TOP))} .venv/made"
    missing = f"error: the environment is not made yet; make it with: {line}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        sys.exit(missing)
    sys.stderr.write(f"The environment is not made yet. Make it now ({line})? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes", "是"}:
        sys.exit(missing)
    _make()


def _make() -> None:
    """With a line that counts the seconds; what went wrong is shown as `make` says it."""
    import subprocess
    import tempfile

    words = ["make", "-s", "-C", str(TOP), ".venv/made"]
    words += [f"PYTHON={sys.executable}"] if sys.version_info >= (3, 11) else []
    began = time.time()
    with tempfile.TemporaryFile() as said:
        try:
            process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
        except OSError:
            sys.exit("error: make is missing: install the package make")
        while process.poll() is None:
            sys.stderr.write(f"\rmaking .venv, once: {time.time() - began:.0f} s")
            sys.stderr.flush()
            time.sleep(0.5)
        sys.stderr.write("\n")
        said.seek(0)
        if process.returncode:
            sys.exit("error: it could not be made\n" + said.read().decode("utf-8", "replace").strip())
