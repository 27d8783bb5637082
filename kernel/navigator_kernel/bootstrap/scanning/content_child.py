"""Scans files by content rules and for secrets, in a child process: see `module_child.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from navigator_kernel.adapters.processes.module_child import serve
from navigator_kernel.adapters.secrets.redaction import found
from navigator_kernel.skills.scan.content import findings
from navigator_kernel.skills.scan.secrets import findings as secret_findings
from navigator_kernel.values.resource import Diagnostic

_USUAL = {  # compiles the patterns that most skills need
    "SKILL.md": b"---\nname: usual\n---\n# Usual\n\n```\nrun `it` https://example.org\n```\n",
    "run.py": b"0\n",
}

Files = Mapping[str, bytes]


def main() -> None:
    answer({"files": _USUAL, "secrets": True})
    serve(answer)


def answer(question: Mapping[str, Any]) -> dict[str, Any]:
    """`{files, secrets}` → `{findings, failures: [(scanner, reason)]}`; searches for secrets only with `secrets`."""
    files: Files = question["files"]
    told: list[dict[str, Any]] = []
    failures: list[tuple[str, str]] = []
    wanted: list[tuple[str, Callable[[Files], Any]]] = [("content rules", findings)]
    wanted += [("secrets", _secrets)] if question["secrets"] else []
    for name, scanner in wanted:
        try:
            told += [one.to_dict() for one in scanner(files)]
        except MemoryError:
            failures.append((name, "it needs too much memory"))
        except Exception as error:  # noqa: BLE001 - a scanner that fails must not pass for one that found nothing
            failures.append((name, f"{type(error).__name__}: {error}"))
    return {"findings": told, "failures": failures}


def _secrets(files: Files) -> Iterator[Diagnostic]:
    """Yields one finding per line: the kind of secret, never the secret itself."""
    for path, data in sorted(files.items()):
        if b"\x00" in data[:4096]:
            continue
        text = data.decode("utf-8", "replace")
        if secrets := found(text):
            yield from secret_findings(path, text, secrets)


if __name__ == "__main__":
    main()
