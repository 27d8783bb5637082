"""The kernel writes only through the write port (SAF-2, X-18)."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.source import ROOT, python_files, read
from tables import table

WRITE_PORT = "kernel/navigator_kernel/adapters/files/writer.py"
# Modules that write files other than the project's or the person's, and which files
EXCEPT = table(__file__, "EXCEPT")
METHODS = frozenset(
    "write_text write_bytes mkdir rmdir unlink rename symlink_to hardlink_to touch chmod link_to".split()
)
FUNCTIONS = frozenset(
    "os.rename os.replace os.remove os.unlink os.mkdir os.makedirs os.rmdir os.symlink os.link os.truncate os.chmod os.chown"
    " shutil.rmtree shutil.copy shutil.copy2 shutil.copyfile shutil.copytree shutil.move tempfile.mkstemp tempfile.mkdtemp".split()
)
OPENING = frozenset("w a x + wb ab xb r+ rb+ r+b w+ wt at".split())


def writes(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of each call that writes to a file."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = ast.unparse(node.func)
        if name in FUNCTIONS or (
            isinstance(node.func, ast.Attribute) and node.func.attr in METHODS and name not in FUNCTIONS
        ):
            yield node.lineno, name
        elif name == "open" or name.endswith(".open"):
            modes = [
                item.value for item in (*node.args, *(k.value for k in node.keywords)) if isinstance(item, ast.Constant)
            ]
            if any(isinstance(mode, str) and mode in OPENING for mode in modes) or "O_WRONLY" in ast.unparse(node):
                yield node.lineno, name


@pytest.mark.requirement("SAF-2")
def test_every_write_goes_through_the_write_port() -> None:
    found = {}
    for folder in ("kernel", "agents", "bin"):
        for path in python_files(folder):
            if str(path) not in {WRITE_PORT, *EXCEPT} and (hits := list(writes(ast.parse(read(path))))):
                found[str(path)] = hits
    assert found == {}


def test_the_exceptions_are_needed() -> None:
    for name in (WRITE_PORT, *EXCEPT):
        assert list(writes(ast.parse(read(ROOT / name)))), f"{name} writes nothing any more"
