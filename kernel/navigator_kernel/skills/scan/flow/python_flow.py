"""Follows values through a Python module: decoded or fetched code that is run, and secrets that are sent.

Names are followed regardless of order, and through the functions of the module: a name counts as having every value
that it may have at any time. Whatever else a call does to a value, its result still counts as that value.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from typing import TYPE_CHECKING

from navigator_kernel.skills.scan.rule import Hit
from navigator_kernel.skills.scan.secrets import ADDRESS, LOCAL, STORE, hosts_of, tokens_read
from navigator_kernel.text import lazy_compile
from navigator_kernel.values.receipt import NOT_SCANNED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from navigator_kernel.skills.scan.finding import Level


DEEP = 12  # levels of nested expressions that are evaluated
MANY = 300  # expressions that are evaluated for one text
_NO_NODES = frozenset({int, str, type(None)})  # types of most fields of a node, such as its position
TEXT_LIMIT, LARGE = 2_000, 10**12  # characters of a constant that are kept; integers from this one on have no text


def nodes_of(tree: ast.AST) -> list[ast.AST]:
    """The nodes of `ast.walk` without contexts, in the same order, in a fraction of the time."""
    nodes = [tree]
    for node in nodes:  # the list grows during the loop
        for value in vars(node).values():
            if value.__class__ in _NO_NODES:
                continue
            if isinstance(value, list):
                nodes += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST) and not isinstance(value, ast.expr_context):
                nodes.append(value)
    return nodes


def names_of(nodes: Iterable[ast.AST]) -> Mapping[str, str]:
    """The full name of each imported name."""
    full: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                top = alias.name.partition(".")[0]
                full[alias.asname or top] = alias.name if alias.asname else top
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                full[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return full


def name_of(node: ast.expr, full: Mapping[str, str]) -> str:
    """The name with its module, if `full` knows it: `os.path.join`; `.post` for a method of something else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        return ".".join([full.get(node.id, node.id), *reversed(parts)])
    return "." + ".".join(reversed(parts)) if parts else ""


def text_of(node: ast.expr | None, known: Mapping[str, ast.expr]) -> str:
    """The constants of an expression, joined; a path's parts have `/` between them, unknown parts are left out."""
    return _Text(known).of(node, 0)


class _Text:
    """Builds one text from at most `MANY` expressions, because names may refer to each other many times."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self._known, self._left = known, MANY

    def of(self, node: ast.expr | None, deep: int) -> str:
        self._left -= 1
        if node is None or deep > DEEP or self._left < 0:
            return ""
        deep += 1
        if isinstance(node, ast.Constant):
            if isinstance(node.value, int):
                return str(node.value) if abs(node.value) < LARGE else ""  # Python refuses to convert a long number
            return node.value[:TEXT_LIMIT] if isinstance(node.value, str) else ""
        if isinstance(node, ast.Name):
            return self.of(self._known[node.id], deep) if node.id in self._known else ""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return f"-{self.of(node.operand, deep)}"
        if isinstance(node, ast.BinOp):
            between = "/" if isinstance(node.op, ast.Div) else ""
            return f"{self.of(node.left, deep)}{between}{self.of(node.right, deep)}"
        if isinstance(node, ast.JoinedStr):
            return "".join(self.of(one, deep) for one in node.values[: self._left])
        if isinstance(node, ast.FormattedValue):
            return self.of(node.value, deep)
        return self._of_call(node, deep) if isinstance(node, ast.Call) else ""

    def _of_call(self, node: ast.Call, deep: int) -> str:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        own = node.func.value if isinstance(node.func, ast.Attribute) else None
        args = node.args[: self._left]
        if name == "join" and own is not None and len(args) == 1:
            joined = self._known.get(args[0].id, args[0]) if isinstance(args[0], ast.Name) else args[0]
            parts = joined.elts[: self._left] if isinstance(joined, ast.List | ast.Tuple) else []
            return self.of(own, deep).join(self.of(part, deep) for part in parts)
        if name in {"join", "Path", "joinpath", "PurePath", "expanduser"}:
            first = [own] if own is not None and name in {"joinpath", "expanduser"} else []
            return "/".join(text for one in (*first, *args) if (text := self.of(one, deep)))
        if name in {"glob", "rglob"} and args:
            return self.of(args[0], deep)
        if name in {"lower", "strip", "format", "resolve"} and own is not None:
            return self.of(own, deep)
        return "~" if name == "home" else ""


DECODES = lazy_compile(
    r"(?:^|\.)(?:b(?:64|32|85|16)decode|urlsafe_b64decode|standard_b64decode|a85decode|decodebytes|a2b_\w+|unhexlify|fromhex)$"
    r"|^codecs\.decode$|^(?:zlib|lzma|bz2|gzip)\.decompress$|\.translate$|^(?:bytes|bytearray)$|^marshal\.loads$"
)
FETCHES = lazy_compile(
    r"^(?:requests|httpx)\.(?:get|post|request)$|(?:^|\.)urlopen$|^aiohttp\.|\.getresponse$|^urllib3\.|^http\.client\."
)
RUNS = lazy_compile(r"^(?:builtins\.)?(?:exec|eval|execfile)$|(?:^|\.)FunctionType$|(?:^|\.)run_code$|^\.__class__$")
STARTS = lazy_compile(
    r"^os\.(?:system|popen|exec\w+|spawn\w+)$|^subprocess\.\w+$|(?:^|\.)create_subprocess_\w+$|^pty\.spawn$"
)
SENDS = lazy_compile(
    r"^(?:requests|httpx|session|client|http)\.(?:post|put|patch|request|get)$|(?:^|\.)(?:urlopen|sendall|sendto|sendmail|send_message|storbinary|storlines)$"
    r"|\.(?:post|put|patch|request|send)$"
)
LOOKS_UP = lazy_compile(r"(?:^|\.)(?:gethostbyname\w*|getaddrinfo|resolve)$")
# The result of such a call says nothing about the value itself
DROPS = frozenset({
    "len", "int", "float", "bool", "isinstance", "print", "exists", "is_file", "is_dir", "isfile", "isdir", "stat",
    "getsize", "hasattr",
    "type", "id", "sorted_keys", "hexdigest", "digest", "any", "all", "sum", "enumerate_count", "startswith",
    "endswith", "unlink", "mkdir",
    "os.path.exists", "os.remove", "os.unlink", "os.makedirs", "os.chmod", "chmod", "shutil.which", "count", "index",
    "find", "setdefault",
    "run", "check_output", "Popen", "check_call", "call",
})  # fmt: skip
CHANGES = frozenset({
    "append", "extend", "update", "add", "write", "writestr", "read", "read_file", "insert", "put", "setdefault",
    "read_string",
})  # fmt: skip
READS = frozenset({
    "open", "read", "read_text", "read_bytes", "read_file", "readlines", "write", "load", "loads", "add", "copyfile",
    "iterdir", "parse",
})  # fmt: skip
WRITES = frozenset({"write", "write_text", "writelines"})
PRIVATE_FILE = lazy_compile(r"^\.env$|^\.?\*?\.(?:pem|p12|pfx|key|kdbx)$|^\.ssh$")
STARTED = lazy_compile(
    r"\.(?:bashrc|zshrc|zshenv|bash_profile|zprofile|profile|config/fish)$|authorized_keys$|\.git/hooks/|/etc/cron|\.config/(?:systemd|autostart)"
    r"|LaunchAgents|\.pth$|(?:site|user)customize\.py$|\.claude/settings(?:\.local)?\.json$|(?:^|/)CLAUDE\.md$"
)
ACTS = lazy_compile(
    r"\b(?:curl|wget|urlopen|nc)\b|\bexec\s*\(|/dev/tcp/|NOPASSWD|ssh-(?:rsa|ed25519)\s|\bbypassPermissions\b"
    r"|Bash\(\*\)|base64 -"
)
KEPT_APART = frozenset({"headers", "auth", "cert", "verify", "env", "timeout", "proxies", "cookies"})
TOKEN_NAME = lazy_compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|PRIVATE|CREDENTIAL", re.IGNORECASE)

_RUNNING = frozenset({"exec_module", "getattr"})
_MAKING = frozenset({"chr", "urlretrieve"})
# One search covers many names or texts, one on each line
_RUNS, _MAKES, _SENDS, _STARTED = (
    lazy_compile("|".join(pattern.pattern for pattern in patterns), re.MULTILINE)
    for patterns in ((RUNS, STARTS), (DECODES, FETCHES), (SENDS, LOOKS_UP), (STARTED,))
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
    if sends and "getenv" in last:
        return True
    if sends and any(isinstance(node, ast.Attribute) and node.attr == "environ" for node in nodes):
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


Marks = frozenset[
    str
]  # decoded, fetched, saved (a fetched file), store and started (paths), secret, environment, token, runner, FOR…

NONE: Marks = frozenset()
FOR = "token: "  # begins the mark of a file with a token of a known service
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
        results = _Flow(tree, nodes).results()
    except (RecursionError, MemoryError):
        yield Hit(NOT_SCANNED, 0, "warning", "not all of it was scanned: too much of it is one Python module")
        return
    starts = [0, *(hit.end() for hit in _BREAK.finditer(body))]
    for (number, code), (level, message) in sorted(results.items()):
        yield Hit(code, starts[min(number - 1, len(starts) - 1)], level, message, whole=True)


class _Flow:
    def __init__(self, tree: ast.Module, nodes: Sequence[ast.AST]) -> None:
        self._tree, self._nodes = tree, nodes
        self._marks: dict[tuple[str, str], Marks] = defaultdict(lambda: NONE)  # by scope and name
        self._full = names_of(nodes)
        self._functions: dict[str, _Definition] = {node.name: node for node in nodes if isinstance(node, _Definition)}
        self._values: dict[str, ast.expr] = {}  # the expressions that names are set to
        self._results: dict[tuple[int, str], tuple[Level, str]] = {}
        self._wraps: dict[str, set[str]] = defaultdict(set)  # data written to a name is also written to these names
        self._seen: dict[tuple[ast.expr, str], Marks] = {}  # marks of the expressions in the current statement
        self._texts: dict[ast.expr, str] = {}
        self._acting: dict[ast.expr, bool] = {}
        self._guards = 0
        for node in nodes:
            if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
                self._values.setdefault(node.targets[0].id, node.value)

    def results(self) -> Mapping[tuple[int, str], tuple[Level, str]]:
        """The level and the message of each finding, by its line and rule."""
        if not may_act(self._nodes, self._full, self._values):
            return {}
        for _ in range(ROUNDS):
            before = sum(map(len, self._marks.values()))
            self._results.clear()
            self._block(self._tree.body, "")
            if sum(map(len, self._marks.values())) == before:
                break
        return self._results

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
                made, name = item.context_expr, item.optional_vars
                marks = self._of(made, scope)
                if name is not None:
                    self._bind(name, marks, scope)
                if isinstance(name, ast.Name) and isinstance(made, ast.Call):
                    self._wraps[name.id] |= {argument.id for argument in made.args if isinstance(argument, ast.Name)}
        elif isinstance(node, ast.Return):
            self._add("return", scope, self._of(node.value, scope) if node.value else NONE)
        elif isinstance(node, ast.Expr):
            self._of(node.value, scope)
        else:
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.expr):
                    self._of(child, scope)
        guard = isinstance(node, ast.If) and any(map(_is_private, ast.walk(node.test)))
        self._guards += guard
        for part in ("body", "orelse", "finalbody"):
            self._block(getattr(node, part, []), scope)
        self._guards -= guard
        for branch in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
            self._block(branch.body, scope)

    def _add(self, scope: str, name: str, marks: Marks) -> None:
        if marks:
            self._marks[scope, name] |= marks

    def _bind(self, target: ast.expr, marks: Marks, scope: str) -> None:
        if isinstance(target, ast.Name):
            self._add(scope, target.id, marks)
            for name in self._wraps.get(target.id, ()):
                self._add(scope, name, marks & {"secret", "environment"})
        elif isinstance(target, ast.Starred | ast.Subscript | ast.Attribute):
            self._bind(target.value, marks, scope)
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self._bind(one, marks, scope)

    def _of(self, node: ast.expr, scope: str) -> Marks:
        """The marks of an expression, cached for each statement: without the cache, the work would double on each
        level."""
        if (marks := self._seen.get((node, scope))) is not None:
            return marks
        marks = self._inner(node, scope)
        text = self._text(node) if isinstance(node, ast.BinOp | ast.Call | ast.Constant | ast.JoinedStr) else ""
        if text and len(text) < LONG:  # it may be a path
            if STORE.search(text):
                marks |= {"store", *([f"{FOR}{hit[0]}" for hit in tokens_read(text)] or [FOR])}
            if STARTED.search(text):
                marks |= {"started"}
        self._seen[node, scope] = marks
        return marks

    def _text(self, node: ast.expr) -> str:
        if node not in self._texts:
            self._texts[node] = text_of(node, self._values)
        return self._texts[node]

    def _inner(self, node: ast.expr, scope: str) -> Marks:
        if isinstance(node, ast.Name):
            return self._marks[scope, node.id] | self._marks["", node.id]
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
        for loop in node.generators:
            items = self._of(loop.iter, scope)
            self._bind(loop.target, items, scope)
            marks |= items - {"environment"} if isinstance(loop.target, ast.Tuple) and loop.ifs else items
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
            names = [parameter.arg for parameter in function.args.args]
            for key, marks in [*zip(names[-len(given) :] if given else [], given, strict=False), *named.items()]:
                self._add(function.name, key, marks)
            return self._marks["return", function.name] | (everything & {"secret"})
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
            target = node.func.value if isinstance(node.func, ast.Attribute) else node.func
            self._bind(target, frozenset({"saved"}), scope)
        if last == "getattr" and len(node.args) > 1 and self._text(node.args[1]) in {"exec", "eval", "system"}:
            return frozenset({"runner"})
        gets_chr = any(isinstance(argument, ast.Name) and argument.id == "chr" for argument in node.args)
        if last == "chr" or gets_chr or DECODES.search(name):
            return everything | {"decoded"}
        if FETCHES.search(name):
            return (everything - {"environment"}) | {"fetched"}
        return everything

    def _judge(
        self, node: ast.Call, name: str, given: list[Marks], named: Mapping[str, Marks], receiver: Marks, scope: str
    ) -> None:
        last = name.rpartition(".")[2]
        made = self._of(node.func, scope) if not isinstance(node.func, ast.Name | ast.Attribute) else NONE
        runner = "runner" in made or (isinstance(node.func, ast.Name) and "runner" in self._marks[scope, node.func.id])
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
            level: Level = "error" if any(map(self._acts, node.args)) else "warning"
            self._tell(node, "persistence", level, "writes to files that are started or read automatically later")

    def _run(self, node: ast.Call, marks: Marks, *, exact: bool) -> None:
        if "decoded" in marks:
            self._tell(node, "encoded-execute", "error", "decodes a text and runs it")
        elif "fetched" in marks:
            level: Level = "error" if exact else "warning"
            self._tell(node, "fetch-execute", level, "runs code that it fetches")

    def _acts(self, node: ast.expr) -> bool:
        """Whether what is written has a text that acts, in `node` itself or in what its names were set to."""
        names = [part.id for part in ast.walk(node) if isinstance(part, ast.Name)]
        for value in (node, *(self._values[name] for name in names if name in self._values)):
            if value not in self._acting:
                texts = (part.value for part in ast.walk(value) if isinstance(part, ast.Constant))
                self._acting[value] = any(isinstance(text, str) and ACTS.search(text) for text in texts)
            if self._acting[value]:
                return True
        return False

    def _send(self, node: ast.Call, given: list[Marks], named: Mapping[str, Marks]) -> None:
        texts = [self._text(one) for one in node.args]
        if any(LOCAL.search(text.partition("://")[2]) for text in texts if "://" in text):
            return
        body = NONE.union(*given, *(marks for key, marks in named.items() if key not in KEPT_APART))
        apart = NONE.union(*(marks for key, marks in named.items() if key in {"headers", "auth"}))
        addresses = [self._text(key.value) for key in node.keywords if key.arg in {"url", "endpoint"}] + texts
        hosts = [host for text in addresses for host in ADDRESS.findall(text)]
        tokens = [mark.removeprefix(FOR) for mark in body | apart if mark.startswith(FOR)]
        if hosts and tokens and all(hosts_of(token).search(host) for token in tokens for host in hosts):
            return  # the key of a service goes to this service
        if "secret" in body or "environment" in body:
            what = "the secrets of another program" if "secret" in body else "all environment variables"
            self._tell(node, "credential-flow", "error", f"reads {what} and sends them to another machine")
        elif "secret" in apart:
            self._tell(node, "credential-flow", "warning", "uses the secrets of another program to sign in elsewhere")

    def _tell(self, node: ast.Call, code: str, level: Level, message: str) -> None:
        key = (node.lineno, code)
        if key not in self._results or level == "error":
            self._results[key] = level, message
