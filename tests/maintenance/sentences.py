"""Prints every sentence that a person can see, as a table: where it stands in the code, English, Chinese.

`python tests/maintenance/sentences.py` prints all of them, those with a key also with the modules that show them; with `--missing`
the English ones without a Chinese form, as they belong into `language/chinese.tsv`; with `--wrong` these, the hints that name
an unknown command, and the sentences that say "1 lines". With one of them it ends with 1 if it prints anything.

Most sentences are written where they are used, in English, with their values in place. Here each becomes a template
(`no skill called {name!r} is installed`), which `language/chinese.py` finds again in the finished sentence.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from pathlib import Path
from string import Formatter
from typing import NamedTuple

import click

from navigator_kernel.language.chinese import chinese_forms
from navigator_kernel.language.wording import say, sentences
from tables import table

TOP = Path(__file__).resolve().parents[2]
FORMS = 24  # texts that one expression may be
DEPTH = 6  # names and functions that are followed to a text
# Keywords of any call, and functions of the terminal, whose texts are shown; all others are those of errors
SHOWN = frozenset({"hint", "help", "short_help", "epilog", "problem", "remedy", "detail"})
PRINTING = frozenset({"note", "say_lines", "confirm", "prompt", "echo", "unknown_name"})
HELPING = frozenset({"command", "group"})  # decorators of functions whose docstring is help
WHOLE = (  # modules every text of which is shown
    "/storage_errors.py", "bootstrap/health.py", "cli/registry.py", "cli/skill/__init__.py", "config/settings.py",
    "config/denials.py", "navigator_nats/inspection.py",
    "sandbox/guard.py",
)  # fmt: skip
CLICK = ("decorators.py", "exceptions.py", "parser.py", "types.py")  # messages about a wrong command line
WORDS = re.compile(r"[A-Za-z]{2,}[,:;]? [A-Za-z]+")  # what makes a text a sentence
WORD, VALUE = re.compile(r"(?<![\w./-])[a-z]{3,}(?![\w./-])"), re.compile(r"\{[^{}]*\}")
COUNTED = re.compile(
    r"\{([a-z]\w*)\}(?: more| other| old| new)? (?:agent|byte|call|change|character|command|commit|day|eval|error|file|hour|line"
    r"|message|minute|model|note|package|project|request|resource|row|run|second|session|setting|skill|step|task|time|token|tool"
    r"|turn(?!s it)|worker|workflow)s\b|\{([a-z]\w*)\} (?:entries|repositories|dependencies|processes)\b"
)
# Values that are never 1: limits, and numbers of what there is too much of
MANY = frozenset("answer commit_ids each failures found given limit meant most named names packages total used".split())
# Folders and modules whose texts stay English, and who reads them
ENGLISH_ONLY: Mapping[str, str] = table(__file__, "ENGLISH_ONLY")


class Sentence(NamedTuple):
    """`place` is the module and line, or the key of a sentence that is written in both languages."""

    place: str
    english: str
    chinese: str


def every_sentence() -> list[Sentence]:
    """Every sentence, those with a key first; `chinese` is empty where it is missing."""
    chinese, seen = chinese_forms(), dict[str, str]()
    for place, text in collected():
        seen.setdefault(text, place)
    keyed = [Sentence(key, *both) for key, both in sentences().items()]
    return keyed + [Sentence(place, text, chinese.get(text, "")) for text, place in seen.items()]


def collected() -> Iterator[tuple[str, str]]:
    """Place and template of what errors, hints, help and output say, and of what click says."""
    for name in CLICK:
        for text in _marked(Path(click.__file__).with_name(name)):
            yield f"click/{name}", text
    paths = sorted([*(TOP / "kernel").rglob("*.py"), *TOP.glob("agents/*/*.py")])
    modules = [_Module(path) for path in paths if not any(part in path.as_posix() for part in ENGLISH_ONLY)]
    raising = _raising(modules)
    for module in modules:
        for line, text in module.texts(raising):
            if is_sentence(text):
                yield f"{module.path.relative_to(TOP)}:{line}", text


def wrong() -> Iterator[str]:
    """What is wrong with the sentences, each with its place."""
    from cli.hints import hints, problem

    for one in every_sentence():
        if not one.chinese:
            yield f"{one.place}: without a Chinese form: {one.english}"
        counts = {hit[1] or hit[2]: 1 for hit in COUNTED.finditer(one.english)}
        if one.place in sentences():
            text = say(one.place, "en", **{name: counts.get(name, f"{{{name}}}") for name in _values(one.english)})
            if re.search(r"\b1 (?:\w+ )?\w+s\b(?<!ss)", text) and counts:
                yield f"{one.place}: a number of one: {text}"
        elif counts.keys() - MANY and not one.place.startswith("click/"):
            yield f"{one.place}: a number of one: {one.english} (numbered(count, noun) gives both forms)"
    yield from (f"{hint.place}: navigator {hint.text}: {why}" for hint in hints() if (why := problem(hint)))


def _values(text: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(text) if name]


def shown_by() -> Mapping[str, Sequence[str]]:
    """Key → the modules that say it, by the whole key or by its beginning, as `head.` of `f"head.{name}"`."""
    found: dict[str, list[str]] = {key: [] for key in sentences()}
    for path in sorted((TOP / "kernel").rglob("*.py")):
        texts = {part.value for part in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(part, ast.Constant)}
        begins = tuple(
            text for text in texts if isinstance(text, str) and text.endswith(".") and text[:-1].isidentifier()
        )
        for key, places in found.items():
            if key in texts or (begins and key.startswith(begins)):
                places.append(str(path.relative_to(TOP / "kernel")))
    return found


def is_sentence(text: str) -> bool:
    """Whether a template says something: two words, or one beside a value."""
    fixed = VALUE.sub("", text)
    return bool(WORDS.search(fixed) or (VALUE.search(text) and WORD.search(fixed)))


def _marked(path: Path) -> Iterator[str]:
    """The sentences of a module that are marked for gettext."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and _last(node.func) in {"_", "ngettext"}:
            texts = [part.value for part in node.args if isinstance(part, ast.Constant)]
            yield from (text for text in texts if isinstance(text, str) and is_sentence(text))


def _raising(modules: Sequence[_Module]) -> frozenset[str]:
    """The names of the classes of errors, and of the functions that return an error."""
    errors, more = set[str](), {"KernelError", "ClickException"}
    while more - errors:
        errors |= more
        classes = (node for module in modules for node in module.nodes if isinstance(node, ast.ClassDef))
        more = {node.name for node in classes if any(_last(base) in errors for base in node.bases)}
    functions = [node for module in modules for node in module.functions.values() if node.returns]
    returned = {node.name: {_last(part) for part in ast.walk(node.returns)} for node in functions if node.returns}
    return frozenset(errors | {name for name, names in returned.items() if names & errors})


def _last(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Module:
    def __init__(self, path: Path) -> None:
        self.path = path
        tree = ast.parse(path.read_text("utf-8"))
        self.nodes = list(ast.walk(tree))
        self.functions = {node.name: node for node in self.nodes if isinstance(node, Function)}
        self._scopes: dict[int, ast.AST] = {}  # node → the function around it, or the module
        self._values: dict[tuple[int, str], list[ast.expr]] = {}  # what a name is assigned in a scope
        self._visit(tree, tree)

    def texts(self, raising: frozenset[str]) -> Iterator[tuple[int, str]]:
        """Line and template of each text that is shown."""
        if self.path.as_posix().endswith(WHOLE):
            yield from self._forms_of(self._whole())
        for node in self.nodes:
            if isinstance(node, ast.Call):
                shown = _last(node.func) in raising | PRINTING
                words = [word.value for word in node.keywords if shown or word.arg in SHOWN]
                yield from self._forms_of([*node.args, *words] if shown else words)
            elif isinstance(node, ast.Assign) and any(
                _last(target) in SHOWN for target in node.targets if isinstance(target, ast.Attribute)
            ):
                yield from self._forms_of([node.value])  # `error.hint = …`
            elif isinstance(node, Function) and any(
                isinstance(mark, ast.Call) and _last(mark.func) in HELPING for mark in node.decorator_list
            ):
                yield node.lineno, ast.get_docstring(node) or ""

    def _visit(self, node: ast.AST, scope: ast.AST) -> None:
        self._scopes[id(node)] = scope
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            targets = [node.target]
        for target in targets:
            for name, value in _pairs(target, getattr(node, "value", None)):
                self._values.setdefault((id(scope), name), []).append(value)
        inner = node if isinstance(node, Function) else scope
        for child in ast.iter_child_nodes(node):
            self._visit(child, inner)

    def _whole(self) -> list[ast.expr]:
        """Every text that is not a docstring or a part of another text."""
        joined = [node for node in self.nodes if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for node in joined for part in ast.walk(node) if part is not node}
        parts |= {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        texts = (node for node in self.nodes if isinstance(node, ast.JoinedStr | ast.Constant))
        return [node for node in texts if id(node) not in parts]

    def _forms_of(self, values: Sequence[ast.expr]) -> Iterator[tuple[int, str]]:
        return ((value.lineno, text) for value in values for text in self._forms(value))

    def _forms(self, node: ast.expr, depth: int = 0) -> Iterator[str]:
        """The templates that an expression may be."""
        if depth > DEPTH:
            return
        match node:
            case ast.Constant(value=str(text)):
                yield text.replace("{", "{{").replace("}", "}}")
            case ast.JoinedStr(values=parts):
                names: dict[str, int] = {}
                choices = [self._part(part, names, depth) for part in parts]
                yield from ("".join(texts) for texts in islice(product(*choices), FORMS))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                sides = [[*self._forms(side, depth + 1)] or [f"{{{_name(side)}}}"] for side in (left, right)]
                yield from ("".join(pair) for pair in product(*sides))
            case ast.Name(id=name):
                yield from self._all(self._assigned(node, name), depth)
            case ast.Call():
                yield from self._all(self._passed_on(node), depth)
            case _:
                yield from self._all(_alternatives(node), depth)

    def _all(self, nodes: Sequence[ast.expr], depth: int) -> Iterator[str]:
        for node in nodes:
            yield from self._forms(node, depth + 1)

    def _passed_on(self, call: ast.Call) -> Sequence[ast.expr]:
        """What a call returns: the value that it cleans or looks up, or what a function of the module returns."""
        name = _last(call.func)
        if name in {"clean", "shorten", "escape_controls"}:
            return call.args[:1]
        if name == "get" and isinstance(call.func, ast.Attribute):
            return [call.func.value, *call.args[1:]]
        function = self.functions.get(name)
        if function is None or _last(function.returns or call) != "str":
            return []
        return [part.value for part in ast.walk(function) if isinstance(part, ast.Return) and part.value]

    def _part(self, part: ast.expr, names: dict[str, int], depth: int) -> Sequence[str]:
        """The texts of one part of an f-string: fixed, the few that it may be, or a placeholder."""
        if not isinstance(part, ast.FormattedValue):
            return [*self._forms(part, depth)]
        if part.conversion == -1 and self._is_fixed(part.value):
            return [*self._forms(part.value, depth + 1)]
        name = _name(part.value)
        names[name] = names.get(name, 0) + 1
        name += str(names[name]) if names[name] > 1 else ""
        return [f"{{{name}!r}}" if part.conversion == ord("r") else f"{{{name}}}"]

    def _is_fixed(self, node: ast.expr) -> bool:
        """Whether an expression is one of a few texts without values."""
        match node:
            case ast.Constant(value=str()):
                return True
            case ast.IfExp(body=body, orelse=other):
                return self._is_fixed(body) and self._is_fixed(other)
            case ast.Name(id=name):
                values = self._assigned(node, name)
                return bool(values) and all(self._is_fixed(value) for value in values)
            case _:
                return False

    def _assigned(self, node: ast.expr, name: str) -> Sequence[ast.expr]:
        scope = self._scopes[id(node)]
        while not (values := self._values.get((id(scope), name))):
            if scope is self._scopes[id(scope)] or name in _parameters(scope):
                return ()
            scope = self._scopes[id(scope)]
        return values


def _parameters(scope: ast.AST) -> set[str]:
    if not isinstance(scope, Function):
        return set()
    return {word.arg for word in (*scope.args.posonlyargs, *scope.args.args, *scope.args.kwonlyargs)}


def _pairs(target: ast.expr, value: ast.expr | None) -> Iterator[tuple[str, ast.expr]]:
    """Names and what they are assigned, also of tuples."""
    if isinstance(target, ast.Name) and value is not None:
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        sides = [value.body, value.orelse] if isinstance(value, ast.IfExp) else [value]
        for side in sides:
            for name, one in zip(target.elts, side.elts if isinstance(side, ast.Tuple) else (), strict=False):
                yield from _pairs(name, one)


def _alternatives(node: ast.expr) -> Sequence[ast.expr]:
    """The expressions one of which an expression is."""
    match node:
        case ast.IfExp(body=body, orelse=other):
            return [body, other]
        case ast.BoolOp(values=values) | ast.List(elts=values) | ast.Tuple(elts=values) | ast.Dict(values=values):
            return values
        case ast.Starred(value=value) | ast.Subscript(value=value) | ast.ListComp(elt=value):
            return [value]
        case ast.GeneratorExp(elt=value) | ast.Lambda(body=value):
            return [value]
        case _:
            return []


def _name(node: ast.expr) -> str:
    """The name of a value: that of a variable or attribute, or of what a function is called with."""
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name.strip("_")
        case ast.Call(func=ast.Name(id="numbered")):
            return "count"
        case ast.Call(func=ast.Attribute(attr="join")) | ast.Call(args=[ast.Constant(), *_]):
            return "value"
        case ast.Call(args=[value, *_]) | ast.Call(func=ast.Attribute(value=value)) | ast.BinOp(left=value):
            return _name(value)
        case ast.Subscript(value=value) | ast.IfExp(body=value):
            return _name(value)
        case _:
            return "value"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true", help="only what has no Chinese form")
    parser.add_argument("--wrong", action="store_true", help="only what is wrong")
    given = parser.parse_args()
    if given.wrong:
        lines = list(wrong())
    elif given.missing:
        lines = [_on_one_line(one.english) for one in every_sentence() if not one.chinese]
    else:
        places = shown_by()
        rows = [(*one, " ".join(places.get(one.place, ()))) for one in every_sentence()]
        lines = ["\t".join(map(_on_one_line, row)) for row in rows]
    print(*lines, sep="\n" if lines else "", end="\n" if lines else "")
    return int(bool(lines) and (given.missing or given.wrong))


def _on_one_line(text: str) -> str:
    return text.replace("\n", "\\n").replace("\t", "\\t")


if __name__ == "__main__":
    sys.exit(main())
