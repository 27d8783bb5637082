"""The project's own files, as git sees them, and their measures."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
SUPPRESSION = re.compile(
    r"#\s*(?:ruff:\s*)?(?:noqa|type:\s*ignore|mypy:)"  # the directive
    r"(?:\[[^\]]*\]|:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*)?"  # the checks that it silences
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    place: str
    lines: int


def tracked(*folders: str) -> list[Path]:
    """Files that git tracks or would track, relative to the root; all of them if no folder is named."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z", "--", *folders]
    listing = subprocess.run(argv, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [Path(name) for name in sorted(listing.split("\0")) if name and (ROOT / name).is_file()]


def python_files(*folders: str) -> list[Path]:
    return [path for path in tracked(*folders) if path.suffix == ".py"]


def read(path: Path) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def line_count(path: Path) -> int:
    return len(read(path).splitlines())


@cache
def functions(path: Path) -> tuple[Function, ...]:
    nodes = [
        node for node in ast.walk(ast.parse(read(path))) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return tuple(Function(place=f"{path}:{node.lineno} {node.name}", lines=length(node)) for node in nodes)


def length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def suppressions(text: str) -> Iterator[str]:
    """Each comment that silences a check, verbatim."""
    if not SUPPRESSION.search(text):
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and SUPPRESSION.search(token.string):
            yield token.string


def has_reason(comment: str) -> bool:
    return len(re.findall(r"\w+", SUPPRESSION.sub("", comment))) >= 2
