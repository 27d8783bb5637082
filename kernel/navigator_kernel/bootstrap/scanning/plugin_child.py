"""Runs the scanners of plugins over one skill: reads its files from stdin and writes findings to stdout."""

from __future__ import annotations

import json
import marshal
import os
import sys
from typing import Any

from navigator_kernel.bootstrap.places import installed_plugins
from navigator_kernel.plugins import add_entry_points, build_manager
from navigator_kernel.values.resource import Diagnostic

HOOK = "kernel_scan_skill"
LONGEST = 50.0  # seconds of one scanner; after 60 the parent ends this process, and cannot say whose fault it is


def main() -> None:
    """Writes `{scanners, findings, failures}` as JSON. The output of plugins goes to stderr."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    files = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - the kernel wrote it
    plugins = build_manager()
    add_entry_points(plugins, installed_plugins())

    def read(item: Any) -> dict[str, Any]:
        if not isinstance(item, Diagnostic):
            raise TypeError(f"{type(item).__name__} is not a finding")
        return item.to_dict()

    scanners = getattr(plugins.manager.hook, HOOK).get_hookimpls()
    told = [body for _, body in plugins.all(HOOK, files, read, seconds=LONGEST)] if scanners else []
    failures = [(one.plugin, one.error) for one in plugins.failures if one.hook in {HOOK, "load"}]
    with answer:
        json.dump({"scanners": len(scanners) or len(failures), "findings": told, "failures": failures}, answer)


if __name__ == "__main__":
    main()
