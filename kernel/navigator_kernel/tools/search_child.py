"""Searches files with a model's regular expression, in a child process: see `module_child.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from navigator_kernel.adapters.files.tree import read_inside
from navigator_kernel.adapters.processes.module_child import serve
from navigator_kernel.errors import KernelError
from navigator_kernel.text import lines_of

LARGEST = 16 * 1024 * 1024  # bytes of a file to read or search
SHOWN, WIDTH = 200, 300  # lines to find, and characters of each


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """`{paths, pattern, flags, names}` → `{found, cut}`; each of `paths` is a folder and a path below it, and with
    `names` a file is named once."""
    wanted = re.compile(question["pattern"], question["flags"])
    found: list[str] = []
    for root, path in question["paths"]:
        try:
            data = read_inside(Path(root), path.split("/"), LARGEST)
        except (KernelError, OSError):
            continue
        if is_binary(data):
            continue
        for number, line in enumerate(lines_of(data.decode("utf-8", "replace")), start=1):
            if wanted.search(line) is None:
                continue
            if len(found) == SHOWN:
                return {"found": found, "cut": True}
            found.append(path if question["names"] else f"{path}:{number}: {line[:WIDTH]}")
            if question["names"]:
                break
    return {"found": found, "cut": False}


def is_binary(data: bytes) -> bool:
    """Whether the data is binary, by git's rule: a zero byte near the beginning."""
    return b"\x00" in data[:8192]


if __name__ == "__main__":
    serve(answer)
