"""Finds imports inside functions, from the text of the modules.

It does not see modules that other packages import (`subprocess` loads `threading`), names that a package loads on
access (`concurrent.futures`), modules inside a third-party package (`from rich import progress` counts as `rich`),
`importlib.import_module`, and modules that another module has loaded by the time the function runs.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

STARTED = {"abc", "builtins", "io", "os", "sys", "time"}  # some of the modules that the interpreter loads at its start
Import = ast.Import | ast.ImportFrom
Function = ast.FunctionDef | ast.AsyncFunctionDef
Loop = ast.For | ast.AsyncFor | ast.While


class LazyImport(NamedTuple):
    node: Import
    is_first: bool  # at the start of the function, or of a branch of it; a loop would repeat it


def needless(trees: Mapping[str, ast.Module]) -> list[str]:
    """`module:line` of each import inside a function that loads only what its module loads anyway; `trees` is the code
    by module."""
    direct = {
        name: {loaded for node in _at_once(tree) for loaded in _targets(node, trees)} for name, tree in trees.items()
    }
    found = []
    for name, tree in trees.items():
        if held := list(_lazy(tree)):
            loaded = _closure(name, direct)
            found += [f"{name}:{one.node.lineno}" for one in held if _targets(one.node, trees) <= loaded]
    return found


def misplaced(trees: Mapping[str, ast.Module]) -> list[str]:
    """`module:line` of each import inside a function that is not where the rule requires it."""
    return [f"{name}:{one.node.lineno}" for name, tree in trees.items() for one in _lazy(tree) if not one.is_first]


def _at_once(node: ast.AST) -> Iterator[Import]:
    """The imports that run when the module is imported; not those of an `except`, which replace others."""
    for child in _statements(node):
        if isinstance(child, Import):
            yield child
        elif not isinstance(child, Function | ast.ExceptHandler):
            yield from _at_once(child)


def _lazy(node: ast.AST, *, inside: bool = False) -> Iterator[LazyImport]:
    branches = [] if isinstance(node, Loop) else [getattr(node, part, []) for part in ("body", "orelse", "finalbody")]
    first = [statement for branch in branches if branch for statement in _first(branch)]
    for child in _statements(node):
        if isinstance(child, Import):
            if inside:
                yield LazyImport(child, child in first)
        else:
            yield from _lazy(child, inside=inside or isinstance(child, Function))


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """The direct child statements, including `except` and `case` blocks, but not those of an `if TYPE_CHECKING:`."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children: list[ast.AST] = [*node.orelse] if ast.unparse(node.test) == "TYPE_CHECKING" else [*node.body]
    else:
        children = list(ast.iter_child_nodes(node))
    return (child for child in children if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case))


def _first(body: list[ast.stmt]) -> list[Import]:
    """The imports at the start of `body`, after its docstring."""
    found: list[Import] = []
    is_told = isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    for statement in body[is_told:]:
        if not isinstance(statement, Import):
            break
        found.append(statement)
    return found


def _targets(node: Import, trees: Mapping[str, ast.Module]) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    whole = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    return {full if full in trees or _is_module(full) else str(node.module) for full in whole.values()}


@cache
def _is_module(name: str) -> bool:
    """Whether it is a module of the standard library; finding those of others would import their packages."""
    if name.partition(".")[0] not in sys.stdlib_module_names:
        return False
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # the part before the dot is not a package
        return False


def _closure(name: str, direct: Mapping[str, set[str]]) -> set[str]:
    """All modules that importing `name` loads, including the packages above each module."""
    found, waiting = set(STARTED), [name]
    while waiting:
        one = waiting.pop()
        if one not in found:
            found.add(one)
            above = one.rpartition(".")[0]
            waiting += [*direct.get(one, ()), *([above] if above else [])]
    return found
