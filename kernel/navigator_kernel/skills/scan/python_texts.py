"""What an expression of Python says, as far as its constants say it."""

from __future__ import annotations

import ast
from collections.abc import Mapping

DEEP = 12  # expressions within each other that are looked through


def names_of(tree: ast.Module) -> Mapping[str, str]:
    """The full name of each name that is imported."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for one in node.names:
                found[one.asname or one.name.partition(".")[0]] = one.name if one.asname else one.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            for one in node.names:
                found[one.asname or one.name] = f"{node.module}.{one.name}"
    return found


def text_of(node: ast.expr | None, known: Mapping[str, ast.expr], deep: int = 0) -> str:
    """Its constants put together; a path's parts with `/` between them, what is not known left out."""
    if node is None or deep > DEEP:
        return ""

    def of(one: ast.expr) -> str:
        return text_of(one, known, deep + 1)

    if isinstance(node, ast.Constant):
        return str(node.value) if isinstance(node.value, str | int) else ""
    if isinstance(node, ast.Name):
        return of(known[node.id]) if node.id in known else ""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return f"-{of(node.operand)}"
    if isinstance(node, ast.BinOp):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return f"{of(node.left)}{between}{of(node.right)}"
    if isinstance(node, ast.JoinedStr):
        return "".join(of(one) for one in node.values)
    if isinstance(node, ast.FormattedValue):
        return of(node.value)
    if isinstance(node, ast.Call):
        return _of_call(node, known, deep)
    return ""


def _of_call(node: ast.Call, known: Mapping[str, ast.expr], deep: int) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "join" and isinstance(node.func, ast.Attribute) and len(node.args) == 1:
        held = known.get(node.args[0].id, node.args[0]) if isinstance(node.args[0], ast.Name) else node.args[0]
        parts = held.elts if isinstance(held, ast.List | ast.Tuple) else []
        return text_of(node.func.value, known, deep + 1).join(text_of(one, known, deep + 1) for one in parts)
    if name in {"join", "Path", "joinpath", "PurePath", "expanduser"}:
        own = [node.func.value] if isinstance(node.func, ast.Attribute) and name in {"joinpath", "expanduser"} else []
        return "/".join(text for one in (*own, *node.args) if (text := text_of(one, known, deep + 1)))
    if name in {"glob", "rglob"} and node.args:
        return text_of(node.args[0], known, deep + 1)
    if name in {"lower", "strip", "format", "resolve"} and isinstance(node.func, ast.Attribute):
        return text_of(node.func.value, known, deep + 1)
    return "~" if name == "home" else ""
