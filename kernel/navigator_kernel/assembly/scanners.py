"""Puts the scanners of skills together: content rules, detect-secrets, and those of plugins, which run apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from navigator_kernel.assembly.places import installed_plugins
from navigator_kernel.errors import KernelError
from navigator_kernel.skills.scan.finding import finding
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic

if TYPE_CHECKING:
    from navigator_kernel.values.resource import SkillDef

CHILD = "navigator_kernel.assembly.scan_child"
SECONDS, MEMORY = 60, 2 * 1024**3  # what the scanners of plugins may take for one skill
TEXT_LIMIT = 1024 * 1024  # bytes of one file in which secrets are looked for


def open_scan() -> Callable[[SkillDef, Mapping[str, bytes]], Sequence[Diagnostic]]:
    """Everything that all of them find. One that fails is a finding: "not scanned", never "clean"."""
    idle = False

    def scan(skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic]:
        nonlocal idle
        found: list[Diagnostic] = []
        for name, scanner in (("content rules", _content), ("detect-secrets", _secrets)):
            try:
                found += scanner(files)
            except Exception as error:  # noqa: BLE001 - a scanner that fails must not pass for one that found nothing
                found.append(_failed(name, f"{type(error).__name__}: {error}", skill.name))
        if not idle:
            told = _plugins(files, skill.name) if installed_plugins() else None
            idle = told is None
            found += told or ()
        return found

    return scan


def _content(files: Mapping[str, bytes]) -> Sequence[Diagnostic]:
    from navigator_kernel.skills.scan.content import findings

    return findings(files)


def _secrets(files: Mapping[str, bytes]) -> Iterator[Diagnostic]:
    """One finding a line; what it is, and never the secret itself."""
    from navigator_kernel.adapters.redaction import found
    from navigator_kernel.skills.scan.secrets import findings as secret_findings

    for path, data in sorted(files.items()):
        if b"\x00" in data[:4096]:
            continue
        text = data[:TEXT_LIMIT].decode("utf-8", "replace")
        yield from secret_findings(path, text, found(text))


def _plugins(files: Mapping[str, bytes], skill: str) -> list[Diagnostic] | None:
    """What plugins' scanners found, None where no plugin has one."""
    from navigator_kernel.adapters.module_call import call_module

    try:
        told = call_module(CHILD, dict(files), seconds=SECONDS, memory=MEMORY)
        found = [_read(item) for item in told["findings"]]
        return None if not told["scanners"] else [*found, *(_failed(who, why, skill) for who, why in told["failures"])]
    except (KernelError, KeyError, TypeError, ValueError) as error:
        return [_failed("the scanners of plugins", str(error), skill)]


def _read(item: Mapping[str, Any]) -> Diagnostic:
    """A finding as a plugin said it; what its words hold is for whoever shows them to clean."""
    line = item["line"]
    text = str(item.get("text") or item["message"])
    return finding(
        str(item["code"]),
        "error" if item["level"] == "error" else "note" if item["level"] == "note" else "warning",
        str(item["path"]),
        str(item["message"]),
        line if isinstance(line, int) and line > 0 else None,
        text,
    )


def _failed(name: str, error: str, skill: str) -> Diagnostic:
    return finding(NOT_SCANNED, "warning", skill, f"{name}: {error}", None, name)
