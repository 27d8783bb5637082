"""Runs the scanners of plugins over one skill: reads its files from stdin and writes findings to stdout."""

from __future__ import annotations

import json
import marshal
import os
import sys

from navigator_kernel.bootstrap.places import installed_plugins
from navigator_kernel.plugins import add_entry_points, build_manager
from navigator_kernel.values.resource import Diagnostic

HOOK = "kernel_scan_skill"


def main() -> None:
    """Writes `{scanners, findings, failures}` as JSON. The output of plugins goes to stderr."""
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    files = marshal.loads(sys.stdin.buffer.read())  # noqa: S302 - the kernel wrote it
    plugins = build_manager()
    add_entry_points(plugins, installed_plugins())
    scanners = getattr(plugins.manager.hook, HOOK).get_hookimpls()
    found = plugins.all(HOOK, files) if scanners else []
    for name, items in found:
        if wrong := [type(item).__name__ for item in items if not isinstance(item, Diagnostic)]:
            plugins.fail(name, HOOK, TypeError(f"{wrong[0]} is not a finding"))
    told = [item.to_dict() for _, items in found for item in items if isinstance(item, Diagnostic)]
    failures = [(one.plugin, one.error) for one in plugins.failures if one.hook in {HOOK, "load"}]
    with answer:
        json.dump({"scanners": len(scanners) or len(failures), "findings": told, "failures": failures}, answer)


if __name__ == "__main__":
    main()
