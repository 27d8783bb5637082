"""Says whether a Python module has both a call that acts and something to act on: most have only one of the two, and
following values takes several times as long."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from navigator_kernel.skills.scan.flow.python_calls import (
    DECODES,
    FETCHES,
    LOOKS_UP,
    PRIVATE_FILE,
    RUNS,
    SENDS,
    STARTED,
    STARTS,
    WRITES,
)
from navigator_kernel.skills.scan.flow.python_texts import name_of, text_of
from navigator_kernel.skills.scan.secret_places import STORE
from navigator_kernel.text import lazy_compile

_RUNNING = frozenset({"exec_module", "getattr"})
_MAKING = frozenset({"chr", "urlretrieve"})
# One search covers many names or texts, one on each line
_RUNS, _MAKES, _SENDS, _STARTED = (
    lazy_compile("|".join(one.pattern for one in held), re.MULTILINE)
    for held in ((RUNS, STARTS), (DECODES, FETCHES), (SENDS, LOOKS_UP), (STARTED,))
)


def may_act(nodes: Sequence[ast.AST], full: Mapping[str, str], known: Mapping[str, ast.expr]) -> bool:
    """Never False if `python_flow` finds something. `full` are the imported names, `known` the expressions that names
    are set to."""
    names = {name_of(node.func, full) for node in nodes if isinstance(node, ast.Call)}
    last = {name.rpartition(".")[2] for name in names}
    lines = "\n".join(names)
    runs = "marshal.loads" in names or not last.isdisjoint(_RUNNING) or _RUNS.search(lines)
    if runs and (not last.isdisjoint(_MAKING) or _MAKES.search(lines) or any(map(_is_made, nodes))):
        return True
    sends, writes = _SENDS.search(lines), not last.isdisjoint(WRITES)
    if sends and (
        "getenv" in last or any(isinstance(node, ast.Attribute) and node.attr == "environ" for node in nodes)
    ):
        return True
    texts = "\n".join(_texts(nodes, known)) if sends or writes else ""
    if sends and (STORE.search(texts) or any(map(_is_private, nodes))):
        return True
    return bool(writes and _STARTED.search(texts))


def _is_made(node: ast.AST) -> bool:
    """Whether the node makes one text from another without a call that has a name for it."""
    if isinstance(node, ast.Slice):
        return node.step is not None
    return isinstance(node, ast.BitXor) or (isinstance(node, ast.Name) and node.id == "chr")


def _is_private(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and bool(PRIVATE_FILE.search(node.value))


def _texts(nodes: Iterable[ast.AST], known: Mapping[str, ast.expr]) -> Iterator[str]:
    for node in nodes:
        if isinstance(node, ast.BinOp | ast.Call | ast.JoinedStr):
            yield text_of(node, known)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
