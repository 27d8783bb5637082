"""Follows values through a Python module: decoded or fetched code that is run, and secrets that are sent.

Names are followed regardless of order, and through the functions of the module: a name counts as having every value
that it may have at any time. Whatever else a call does to a value, its result still counts as that value.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from navigator_kernel.skills.scan.finding import Level
from navigator_kernel.skills.scan.flow.python_acts import may_act
from navigator_kernel.skills.scan.flow.python_calls import (
    ACTS,
    CHANGES,
    DECODES,
    DROPS,
    FETCHES,
    KEPT_APART,
    LOOKS_UP,
    PRIVATE_FILE,
    READS,
    RUNS,
    SENDS,
    STARTED,
    STARTS,
    TOKEN_NAME,
    WRITES,
)
from navigator_kernel.skills.scan.flow.python_texts import name_of, names_of, nodes_of, text_of
from navigator_kernel.skills.scan.rule import Hit
from navigator_kernel.skills.scan.secret_places import LOCAL, STORE
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import NOT_SCANNED

Marks = frozenset[
    str
]  # decoded, fetched, saved (a fetched file), store and started (paths), secret, environment, token, runner

NONE: Marks = frozenset()
ROUNDS = 4  # passes over the module; longer flows are not followed
MOST = 400_000  # nodes of one module
LONG = 300  # characters from which a text is not considered a path
_BREAK = lazy_compile(r"\r\n?|\n")
_Definition = ast.FunctionDef | ast.AsyncFunctionDef


def hits(body: str) -> Iterator[Hit]:
    """The hits in `body`, if it parses as Python; `at` is a place in `body`. Code that is too large or too deep is
    reported as not scanned."""
    try:
        try:
            tree = ast.parse(body)
        except (SyntaxError, ValueError):
            return
        nodes = nodes_of(tree)
        if len(nodes) > MOST:
            raise RecursionError
        found = _Flow(tree, nodes).found()
    except (RecursionError, MemoryError):
        yield Hit(NOT_SCANNED, 0, "warning", "not all of it was scanned: too much of it is one Python module")
        return
    starts = [0, *(hit.end() for hit in _BREAK.finditer(body))]
    for (number, code), (level, message) in sorted(found.items()):
        yield Hit(code, starts[min(number - 1, len(starts) - 1)], level, message, whole=True)


class _Flow:
    def __init__(self, tree: ast.Module, nodes: Sequence[ast.AST]) -> None:
        self._tree, self._nodes = tree, nodes
        self._held: dict[tuple[str, str], Marks] = defaultdict(lambda: NONE)
        self._full = names_of(nodes)
        self._functions: dict[str, _Definition] = {node.name: node for node in nodes if isinstance(node, _Definition)}
        self._texts: dict[str, ast.expr] = {}
        self._found: dict[tuple[int, str], tuple[Level, str]] = {}
        self._wraps: dict[str, set[str]] = defaultdict(set)
        self._seen: dict[tuple[ast.expr, str], Marks] = {}  # marks of the expressions in the current statement
        self._said: dict[ast.expr, str] = {}
        self._acting: dict[ast.expr, bool] = {}
        self._guards = 0
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._texts.setdefault(node.targets[0].id, node.value)

    def found(self) -> Mapping[tuple[int, str], tuple[Level, str]]:
        if not may_act(self._nodes, self._full, self._texts):
            return {}
        for _ in range(ROUNDS):
            before = sum(map(len, self._held.values()))
            self._found.clear()
            self._block(self._tree.body, "")
            if sum(map(len, self._held.values())) == before:
                break
        return self._found

    def _block(self, body: list[ast.stmt], scope: str) -> None:
        for node in body:
            self._statement(node, scope)

    def _statement(self, node: ast.stmt, scope: str) -> None:
        self._seen.clear()
        if isinstance(node, _Definition):
            self._block(node.body, node.name)
            return
        if isinstance(node, ast.ClassDef):
            self._block(node.body, scope)
            return
        if isinstance(node, ast.Assign):
            marks = self._of(node.value, scope)
            for target in node.targets:
                self._bind(target, marks, scope)
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            self._bind(node.target, self._of(node.value, scope) if node.value else NONE, scope)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._bind(node.target, self._of(node.iter, scope), scope)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                marks = self._of(item.context_expr, scope)
                if item.optional_vars is not None:
                    self._bind(item.optional_vars, marks, scope)
                self._wrap(item.optional_vars, item.context_expr)
        elif isinstance(node, ast.Return):
            self._hold(("return", scope), self._of(node.value, scope) if node.value else NONE)
        elif isinstance(node, ast.Expr):
            self._of(node.value, scope)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._of(child, scope)
        guard = isinstance(node, ast.If) and any(
            isinstance(one, ast.Constant) and isinstance(one.value, str) and PRIVATE_FILE.search(one.value)
            for one in ast.walk(node.test)
        )
        self._guards += guard
        for name in ("body", "orelse", "finalbody"):
            self._block(getattr(node, name, []), scope)
        self._guards -= guard
        for handler in getattr(node, "handlers", []):
            self._block(handler.body, scope)
        for case in getattr(node, "cases", []):
            self._block(case.body, scope)

    def _wrap(self, name: ast.expr | None, made: ast.expr) -> None:
        """Notes that data written to `name` is also written to the arguments of the call `made`."""
        if isinstance(name, ast.Name) and isinstance(made, ast.Call):
            self._wraps[name.id] |= {one.id for one in made.args if isinstance(one, ast.Name)}

    def _hold(self, key: tuple[str, str], marks: Marks) -> None:
        if marks:
            self._held[key] |= marks

    def _bind(self, target: ast.expr, marks: Marks, scope: str) -> None:
        if isinstance(target, ast.Name):
            self._hold((scope, target.id), marks)
            for name in self._wraps.get(target.id, ()):
                self._hold((scope, name), marks & {"secret", "environment"})
        elif isinstance(target, ast.Starred | ast.Subscript | ast.Attribute):
            self._bind(target.value, marks, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._bind(one, marks, scope)

    def _of(self, node: ast.expr, scope: str) -> Marks:
        """The marks of an expression, cached for each statement: without the cache, the work would double on each
        level."""
        held = self._seen.get((node, scope))
        if held is None:
            held = self._seen[node, scope] = self._inner(node, scope) | self._places(node)
        return held

    def _places(self, node: ast.expr) -> Marks:
        text = self._text(node) if isinstance(node, ast.BinOp | ast.Call | ast.Constant | ast.JoinedStr) else ""
        if not text or len(text) >= LONG:
            return NONE
        marks = frozenset({"store"}) if STORE.search(text) else NONE
        return marks | {"started"} if STARTED.search(text) else marks

    def _text(self, node: ast.expr) -> str:
        if node not in self._said:
            self._said[node] = text_of(node, self._texts)
        return self._said[node]

    def _inner(self, node: ast.expr, scope: str) -> Marks:
        if isinstance(node, ast.Name):
            return self._held[scope, node.id] | self._held["", node.id]
        if isinstance(node, ast.Call):
            return self._call(node, scope)
        if isinstance(node, ast.Attribute):
            return frozenset({"environment"}) if self._name(node) == "os.environ" else self._of(node.value, scope)
        if isinstance(node, ast.Subscript):
            marks = self._of(node.value, scope)
            if isinstance(node.slice, ast.Slice):
                step = text_of(node.slice.step, {}) if node.slice.step else ""
                return marks | {"decoded"} if step == "-1" else marks
            return self._picked(marks, node.slice)
        if isinstance(node, ast.Compare):
            return NONE
        if isinstance(node, ast.Lambda):
            return self._of(node.body, scope)
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self._comprehension(node, scope)
        marks = NONE
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                marks |= self._of(child, scope)
        return marks

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: str) -> Marks:
        marks = NONE
        for one in node.generators:
            held = self._of(one.iter, scope)
            self._bind(one.target, held, scope)
            marks |= held - {"environment"} if isinstance(one.target, ast.Tuple) and one.ifs else held
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        for part in parts:
            marks |= self._of(part, scope)
        if any(isinstance(part, ast.BinOp) and isinstance(part.op, ast.BitXor) for part in parts):
            marks |= {"decoded"}
        return marks

    def _picked(self, marks: Marks, key: ast.expr) -> Marks:
        """The marks of one entry. An entry of the environment usually configures programs, but a secret must not be
        looked up."""
        if "environment" not in marks:
            return marks
        name = self._text(key)
        return (marks - {"environment"}) | ({"token"} if TOKEN_NAME.search(name) else NONE)

    def _name(self, node: ast.expr) -> str:
        return name_of(node, self._full)

    def _call(self, node: ast.Call, scope: str) -> Marks:
        name = self._name(node.func)
        last = name.rpartition(".")[2]
        given = [self._of(one, scope) for one in node.args]
        named = {one.arg or "**": self._of(one.value, scope) for one in node.keywords}
        receiver = self._of(node.func.value, scope) if isinstance(node.func, ast.Attribute) else NONE
        everything = receiver.union(*given, *named.values())
        self._judge(node, name, given, named, receiver, scope)
        if last in {"getenv"} or (last == "get" and "environment" in receiver):
            return self._picked(frozenset({"environment"}), node.args[0]) if node.args else NONE
        if function := self._functions.get(last):
            names = [one.arg for one in function.args.args]
            for key, marks in [*zip(names[-len(given) :] if given else [], given, strict=False), *named.items()]:
                self._hold((function.name, key), marks)
            return self._held["return", function.name] | (everything & {"secret"})
        if last in READS and ("store" in everything or (self._guards and last in {"open", "read_text", "read_bytes"})):
            everything |= {"secret"}
            given = [marks | {"secret"} for marks in given]
        if isinstance(node.func, ast.Attribute) and last in CHANGES:
            self._bind(node.func.value, NONE.union(*given), scope)
        if name in DROPS or last in DROPS:
            return NONE
        if last == "urlretrieve" and len(node.args) > 1:
            self._bind(node.args[1], frozenset({"saved"}), scope)
            return frozenset({"saved"})
        if last in {"write_bytes", "write_text", "write"} and "fetched" in everything:
            self._bind(
                node.func.value if isinstance(node.func, ast.Attribute) else node.func, frozenset({"saved"}), scope
            )
        if last == "getattr" and len(node.args) > 1 and self._text(node.args[1]) in {"exec", "eval", "system"}:
            return frozenset({"runner"})
        if (
            DECODES.search(name)
            or any(isinstance(one, ast.Name) and one.id == "chr" for one in node.args)
            or last == "chr"
        ):
            return everything | {"decoded"}
        if FETCHES.search(name):
            return (everything - {"environment"}) | {"fetched"}
        return everything

    def _judge(
        self, node: ast.Call, name: str, given: list[Marks], named: Mapping[str, Marks], receiver: Marks, scope: str
    ) -> None:
        last = name.rpartition(".")[2]
        made = self._of(node.func, scope) if not isinstance(node.func, ast.Name | ast.Attribute) else NONE
        runner = "runner" in made or (isinstance(node.func, ast.Name) and "runner" in self._held[scope, node.func.id])
        first = given[0] if given else NONE
        if RUNS.search(name) or runner:
            self._run(node, NONE.union(*given), exact=True)
        elif STARTS.search(name):
            command = node.args[0] if node.args else None
            parts = command.elts if isinstance(command, ast.List | ast.Tuple) else []
            if not parts:
                self._run(node, first, exact=False)
            elif {"decoded", "fetched"} & self._of(parts[0], scope):
                self._run(node, self._of(parts[0], scope), exact=False)
            elif len(parts) > 2 and self._text(parts[1]) in {"-c", "-e"}:
                self._run(node, self._of(parts[2], scope), exact=False)
            elif any("saved" in self._of(one, scope) for one in parts):
                self._tell(node, "fetch-execute", "warning", "runs a file that it has just fetched")
        elif last == "exec_module" and "saved" in receiver.union(*given):
            self._tell(node, "fetch-execute", "error", "runs code that it fetches")
        elif last == "marshal.loads" or name == "marshal.loads":
            if "decoded" in first:
                self._tell(node, "encoded-execute", "error", "decodes compiled code and runs it")
        elif LOOKS_UP.search(name) and NONE.union(*given) & {"secret", "environment", "token"}:
            self._tell(node, "lookup-leak", "error", "sends a secret in a name that it looks up")
        elif SENDS.search(name):
            self._send(node, given, named)
        elif last in WRITES and "started" in receiver.union(*given):
            self._write(node)

    def _run(self, node: ast.Call, marks: Marks, *, exact: bool) -> None:
        if "decoded" in marks:
            self._tell(node, "encoded-execute", "error", "decodes a text and runs it")
        elif "fetched" in marks:
            level: Level = "error" if exact else "warning"
            self._tell(node, "fetch-execute", level, "runs code that it fetches")

    def _write(self, node: ast.Call) -> None:
        bad = any(self._acts(one) for arg in node.args for one in (arg, *self._meant(arg)))
        self._tell(
            node,
            "persistence",
            "error" if bad else "warning",
            "writes to files that are started or read automatically later",
        )

    def _meant(self, node: ast.expr) -> list[ast.expr]:
        """The expressions that the names in `node` were set from, if they are known."""
        return [self._texts[one.id] for one in ast.walk(node) if isinstance(one, ast.Name) and one.id in self._texts]

    def _acts(self, node: ast.expr) -> bool:
        if node not in self._acting:
            texts = (one.value for one in ast.walk(node) if isinstance(one, ast.Constant))
            self._acting[node] = any(isinstance(text, str) and ACTS.search(text) for text in texts)
        return self._acting[node]

    def _send(self, node: ast.Call, given: list[Marks], named: Mapping[str, Marks]) -> None:
        texts = [self._text(one) for one in node.args]
        if any(LOCAL.search(text.partition("://")[2]) for text in texts if "://" in text):
            return
        body = NONE.union(*given, *(marks for key, marks in named.items() if key not in KEPT_APART))
        apart = NONE.union(*(marks for key, marks in named.items() if key in {"headers", "auth"}))
        if "secret" in body or "environment" in body:
            what = "the secrets of another program" if "secret" in body else "all environment variables"
            self._tell(node, "credential-flow", "error", f"reads {what} and sends them to another machine")
        elif "secret" in apart:
            self._tell(node, "credential-flow", "warning", "uses the secrets of another program to sign in elsewhere")

    def _tell(self, node: ast.Call, code: str, level: Level, message: str) -> None:
        key = (node.lineno, code)
        if key not in self._found or level == "error":
            self._found[key] = level, message
