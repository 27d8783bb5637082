"""Prints every sentence that a person can see, as a table: where it stands in the code, English, Chinese.

`python docs/sentences.py` prints all, `python docs/sentences.py --missing` those without a Chinese form, one a line as
they belong into `language/zh.tsv`; the latter ends with 1 where there is one.

A sentence of an error is written where the error is raised, in English, with its values in place. Here it becomes a
template: `no skill called {name!r}`. `language/chinese.py` finds the template again in the finished sentence.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from typing import NamedTuple

import click
from navigator_kernel.language.chinese import chinese_forms
from navigator_kernel.language.wording import SENTENCES

TOP = Path(__file__).resolve().parent.parent
FORMS = 24  # of one sentence with alternatives in it
# Keywords of any call whose value a person reads
SHOWN = frozenset({"hint", "help", "short_help", "epilog", "problem", "remedy", "detail"})
# Functions that print their arguments, and the values that the terminal shows
PRINTING = frozenset({"note", "say_lines", "confirm", "prompt", "echo", "Finding"})
WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z]+")  # what makes a text a sentence
COMMANDS = frozenset({"command", "group"})
CLICK = ("decorators.py", "exceptions.py", "parser.py", "types.py")  # what a wrong command line is told
# Folders and modules whose texts stay English, and who reads them
ENGLISH_ONLY: Mapping[str, str] = {
    "acp/": "editors",
    "bootstrap/built_in.py": "models",
    "gateway/": "programs that use the HTTP API; the page has its own texts",
    "hookspecs.py": "authors of plugins",
    "library/": "programs in Python",
    "mcp_server/": "coding agents",
    "planner/": "models",
    "plugins.py": "authors of plugins",
    "state_graph.py": "programs in Python",
    "tools/": "models",
}


class Sentence(NamedTuple):
    """`place` is the module and line, or the key of a sentence that is written in both languages."""

    place: str
    english: str
    chinese: str


def sentences() -> list[Sentence]:
    """Every sentence, the ones of `wording.py` first; `chinese` is empty where it is missing."""
    chinese = chinese_forms()
    found = [Sentence(key, english, zh) for key, (english, zh) in SENTENCES.items()]
    seen: dict[str, str] = {}
    for place, text in collected():
        seen.setdefault(text, place)
    return found + [Sentence(place, text, chinese.get(text, "")) for text, place in seen.items()]


def collected() -> Iterator[tuple[str, str]]:
    """Place and English template of what the kernel's errors, hints, help and output say, and what click says."""
    for name in CLICK:
        for text in _marked(Path(click.__file__).with_name(name)):
            yield f"click/{name}", text
    paths = sorted([*(TOP / "kernel/navigator_kernel").rglob("*.py"), *TOP.glob("agents/*/*.py")])
    modules = [_Module(path) for path in paths if not _is_english_only(path)]
    functions = {name: node for module in modules for name, node in module.functions.items()}
    raising = _raising(modules)
    for module in modules:
        for line, text in module.texts(raising, functions):
            if WORDS.search(re.sub(r"\{[^{}]*\}", "", text)):
                yield f"{module.path.relative_to(TOP)}:{line}", text


def _marked(path: Path) -> Iterator[str]:
    """The sentences of a module that are marked for gettext."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and _last(node.func) in {"_", "ngettext"}:
            yield from (
                part.value
                for part in node.args
                if isinstance(part, ast.Constant) and isinstance(part.value, str) and WORDS.search(part.value)
            )


def _is_english_only(path: Path) -> bool:
    where = path.relative_to(TOP).as_posix()
    return any(part in where for part in ENGLISH_ONLY)


def _raising(modules: Sequence[_Module]) -> frozenset[str]:
    """The names of the error classes, and of the functions that return an error."""
    errors = {"KernelError", "ClickException", "UsageError", "BadParameter", "HttpProblem"}
    while True:
        more = {
            node.name for module in modules for node in module.classes if any(_last(base) in errors for base in node.bases)
        } - errors
        if not more:
            break
        errors |= more
    makers = {
        name
        for module in modules
        for name, node in module.functions.items()
        if node.returns is not None and any(isinstance(part, ast.Name) and part.id in errors for part in ast.walk(node.returns))
    }
    return frozenset(errors | makers)


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


class _Module:
    def __init__(self, path: Path) -> None:
        self.path = path
        tree = ast.parse(path.read_text("utf-8"))
        self.nodes = list(ast.walk(tree))
        self.classes = [node for node in self.nodes if isinstance(node, ast.ClassDef)]
        self.functions = {n.name: n for n in self.nodes if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)}
        self.scopes: dict[int, ast.AST] = {}
        self.values: dict[tuple[int, str], list[ast.expr]] = {}
        self._visit(tree, tree)
        self.tree = tree

    def _visit(self, node: ast.AST, scope: ast.AST) -> None:
        self.scopes[id(node)] = scope
        targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign | ast.NamedExpr) else []
        for target in targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=False))
            elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.IfExp):
                pairs = [
                    pair
                    for side in (node.value.body, node.value.orelse)
                    if isinstance(side, ast.Tuple)
                    for pair in zip(target.elts, side.elts, strict=False)
                ]
            for name, value in pairs:
                if isinstance(name, ast.Name) and value is not None:
                    self.values.setdefault((id(scope), name.id), []).append(value)
        inner = node if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else scope
        for child in ast.iter_child_nodes(node):
            self._visit(child, inner)

    def texts(self, raising: frozenset[str], functions: Mapping[str, ast.AST]) -> Iterator[tuple[int, str]]:
        for node in self.nodes:
            if isinstance(node, ast.Call):
                name = _last(node.func)
                if name in raising or name in PRINTING:
                    yield from self._all(node.args, raising)
                    yield from self._all([word.value for word in node.keywords], raising)
                else:
                    yield from self._all([word.value for word in node.keywords if word.arg in SHOWN], raising)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and any(
                isinstance(mark, ast.Call) and _last(mark.func) in COMMANDS for mark in node.decorator_list
            ):
                if said := ast.get_docstring(node):
                    yield node.lineno, said
            elif isinstance(node, ast.Dict) and self.path.name in {"registry.py", "group.py"}:
                yield from self._all([part for value in node.values if isinstance(value, ast.Tuple) for part in value.elts[1:]], raising)

    def _all(self, values: Sequence[ast.expr], raising: frozenset[str]) -> Iterator[tuple[int, str]]:
        for value in values:
            yield from ((value.lineno, text) for text in self.forms(value))

    def forms(self, node: ast.expr, depth: int = 0) -> Iterator[str]:
        """The texts that an expression may be, as templates."""
        if depth > 6:
            return
        match node:
            case ast.Constant(value=str(text)):
                yield text.replace("{", "{{").replace("}", "}}") if "{" in text else text
            case ast.JoinedStr(values=parts):
                seen: dict[str, int] = {}
                choices = [self._parts(part, seen, depth) for part in parts]
                yield from ("".join(parts) for parts in islice(product(*choices), FORMS))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                lefts = [*self.forms(left, depth + 1)] or [f"{{{self._name(left)}}}"]
                rights = [*self.forms(right, depth + 1)] or [f"{{{self._name(right)}}}"]
                yield from ("".join(pair) for pair in product(lefts, rights))
            case ast.IfExp(body=body, orelse=other):
                yield from self.forms(body, depth + 1)
                yield from self.forms(other, depth + 1)
            case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values):
                for value in values:
                    yield from self.forms(value, depth + 1)
            case ast.Starred(value=value):
                yield from self.forms(value, depth + 1)
            case ast.ListComp(elt=value) | ast.GeneratorExp(elt=value):
                yield from self.forms(value, depth + 1)
            case ast.Name(id=name):
                for value in self._assigned(node, name):
                    yield from self.forms(value, depth + 1)
            case ast.Dict(values=values):
                for value in values:
                    yield from self.forms(value, depth + 1)
            case ast.Subscript(value=value):
                yield from self.forms(value, depth + 1)
            case ast.Call(func=ast.Attribute(attr="get", value=value), args=args):
                yield from self.forms(value, depth + 1)
                for other in args[1:]:
                    yield from self.forms(other, depth + 1)
            case ast.Call(func=ast.Name(id="clean" | "shorten" | "escape_controls"), args=[value, *_]):
                yield from self.forms(value, depth + 1)
            case ast.Call(func=ast.Name(id=name)) if name in self.functions and _returns_text(self.functions[name]):
                for part in ast.walk(self.functions[name]):
                    if isinstance(part, ast.Return) and part.value is not None:
                        yield from self.forms(part.value, depth + 1)
            case _:
                return

    def _parts(self, part: ast.expr, seen: dict[str, int], depth: int) -> Sequence[str]:
        if isinstance(part, ast.Constant):
            return (str(part.value).replace("{", "{{").replace("}", "}}"),)
        assert isinstance(part, ast.FormattedValue)
        is_fixed = isinstance(part.value, ast.IfExp | ast.Name | ast.Constant) or _is_number_form(part.value)
        if part.conversion == -1 and is_fixed:
            if texts := [*self.forms(part.value, depth + 1)]:
                if all("{" not in text for text in texts) and len(texts) <= 4 and self._is_all_text(part.value):
                    return texts
        name = self._name(part.value)
        seen[name] = seen.get(name, 0) + 1
        name += str(seen[name]) if seen[name] > 1 else ""
        return (f"{{{name}!r}}" if part.conversion == ord("r") else f"{{{name}}}",)

    def _is_all_text(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=str()) | ast.JoinedStr():
                return True
            case ast.IfExp(body=body, orelse=other):
                return self._is_all_text(body) and self._is_all_text(other)
            case ast.Name(id=name):
                values = self._assigned(node, name)
                return bool(values) and all(self._is_all_text(value) for value in values)
            case _:
                return False

    def _name(self, node: ast.expr) -> str:
        """The name of a value: that of a variable or attribute, or of what a function is called with."""
        match node:
            case ast.Attribute(attr=name) | ast.Name(id=name):
                return name.strip("_")
            case ast.Call(func=ast.Attribute(attr="join")) | ast.Call(args=[ast.Constant(), *_]):
                return "value"
            case ast.Call(args=[value, *_]) | ast.Call(func=ast.Attribute(value=value)) | ast.BinOp(left=value):
                return self._name(value)
            case ast.Subscript(value=value) | ast.IfExp(body=value):
                return self._name(value)
            case _:
                return "value"

    def _assigned(self, node: ast.Name, name: str) -> Sequence[ast.expr]:
        scope = self.scopes.get(id(node))
        while scope is not None:
            if values := self.values.get((id(scope), name)):
                return values
            outer = self.scopes.get(id(scope))
            scope = outer if outer is not scope else None
        return ()


def _is_number_form(node: ast.expr) -> bool:
    return isinstance(node, ast.IfExp)


def _returns_text(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return isinstance(node.returns, ast.Name) and node.returns.id == "str"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only what has no Chinese form; exit 1 where there is any")
    missing = parser.parse_args().missing
    for sentence in sentences():
        english = sentence.english.replace("\n", "\\n")
        if not missing:
            print(sentence.place, english, sentence.chinese.replace("\n", "\\n"), sep="\t")
        elif not sentence.chinese:
            print(english)
    return int(missing and any(not sentence.chinese for sentence in sentences()))


if __name__ == "__main__":
    sys.exit(main())
