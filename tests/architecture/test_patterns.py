"""Every pattern is made by `text.lazy_compile`, where a test finds it and measures it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from architecture.source import python_files, read

FUNCTIONS = frozenset("compile match fullmatch search sub subn split findall finditer template".split())
# The calls that compile something other than a pattern of the kernel
EXCEPT = {
    "kernel/navigator_planner/schemas.py": "a plugin does not import `text`; its pattern repeats nothing",
    "kernel/navigator_kernel/text.py": "the constructor",
    "kernel/navigator_kernel/tools/reading.py": "checks a model's pattern, which a child process with limits runs",
    "kernel/navigator_kernel/tools/search_child.py": "that child process",
}


def calls(tree: ast.AST) -> Iterator[int]:
    """The line of each use of a function of `re` that takes a pattern."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "re":
            if node.attr in FUNCTIONS:
                yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "re":
            yield from (node.lineno for one in node.names if one.name in FUNCTIONS)


def constants(tree: ast.Module) -> Iterator[int]:
    """The line of each pattern that a function makes although it is always the same."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                made = isinstance(node, ast.Call) and ast.unparse(node.func).endswith("lazy_compile")
                if made and isinstance(node, ast.Call) and isinstance(node.args[0], ast.Constant):
                    yield node.lineno


def test_every_pattern_is_made_by_the_constructor() -> None:
    files = [path for path in python_files("kernel", "agents", "bin") if str(path) not in EXCEPT]
    assert [f"{path}:{line}" for path in files for line in calls(ast.parse(read(path)))] == []


def test_every_constant_pattern_is_made_when_its_module_is_loaded() -> None:
    files = python_files("kernel", "agents", "bin")
    assert [f"{path}:{line}" for path in files for line in constants(ast.parse(read(path)))] == []


def test_every_exception_makes_a_pattern() -> None:
    trees = {path: ast.parse(read(path)) for path in python_files("kernel") if str(path) in EXCEPT}
    assert {str(path) for path, tree in trees.items() if any(calls(tree))} == set(EXCEPT)


@pytest.mark.parametrize(
    "code", ['re.sub("a", "", t)', "import re\nre.compile(x)", "from re import search", "use(re.match, x)"]
)
def test_each_way_to_make_a_pattern_is_noticed(code: str) -> None:
    assert len([*calls(ast.parse(code))]) == 1
