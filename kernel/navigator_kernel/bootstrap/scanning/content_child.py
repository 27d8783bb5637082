"""Scans files by content rules and for secrets, in a child process: see `module_child.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from navigator_kernel.adapters.pattern_set import PatternSet
from navigator_kernel.adapters.processes.module_child import serve
from navigator_kernel.adapters.secrets.redaction import Secret, found
from navigator_kernel.adapters.secrets.shapes import every
from navigator_kernel.config.settings import user_state
from navigator_kernel.skills.scan.content import findings
from navigator_kernel.skills.scan.secrets import findings as secret_findings
from navigator_kernel.values.resource import Diagnostic

MANY = 512 * 1024  # bytes in all: with fewer, it takes longer to compile the shapes (0.3 s) than to do without that
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
    search = _search()
    search.expect(sum(map(len, files.values())))
    for path, data in sorted(files.items()):
        if b"\x00" in data[:4096]:
            continue
        text = data.decode("utf-8", "replace")
        if secrets := search.secrets_in(text):
            yield from secret_findings(path, text, secrets)


class _Search:
    """Finds the secrets of texts: of few by the words that the shapes need, of many with all shapes in one pass."""

    def __init__(self) -> None:
        self._size = 0
        self._shapes: PatternSet | None = None

    def expect(self, size: int) -> None:
        """Says that texts of so many bytes follow."""
        self._size += size
        if self._shapes is None and self._size > MANY:
            self._shapes = PatternSet((shape.found.pattern for shape in every()), user_state() / "cache" / "patterns")

    def secrets_in(self, text: str) -> list[Secret]:
        if self._shapes is None:
            return found(text)
        may = self._shapes.possible(text)
        shapes = [shape for shape in every() if shape.found.pattern in may]
        return found(text, shapes) if shapes else []


@cache
def _search() -> _Search:
    return _Search()


if __name__ == "__main__":
    main()
