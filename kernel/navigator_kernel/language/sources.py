"""Reads patterns of words from files beside this one."""

from __future__ import annotations

from pathlib import Path

from navigator_kernel.text import lazy_compile

_PART = lazy_compile(r"<<(\w+)>>")


def sources(name: str) -> dict[str, str]:
    """The patterns of the file by their names, each with the earlier ones that it has in it."""
    found: dict[str, str] = {}
    for line in Path(__file__).with_name(name).read_text("utf-8").splitlines()[1:]:
        key, _, source = line.partition("\t")
        found[key] = _PART.sub(lambda hit: found[hit[1]], source)
    return found
