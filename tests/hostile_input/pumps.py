"""Texts that make a regular expression slow, made from its own parse tree, and how it is used in the code."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]  # no public way to the parse tree
from types import ModuleType
from typing import Any, NamedTuple

import navigator_kernel
from cpu_time import thread_seconds
from navigator_kernel import text
from wide import sample

METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
FIRST = 19  # characters; only a pattern that takes exponential time is slow on so few
SIZES = (FIRST, 200, 1_000, 4_000)
UNKNOWN = {"finditer", "fullmatch"}  # of a pattern that has no name: each way to read a text
TIMES = 4
NOISE = 0.002  # seconds
ENOUGH = 0.1  # seconds
FACTOR = 7.0  # linear work takes 4 times as long, quadratic work 16 times
EVERY = (
    "".join(map(chr, (*range(9, 14), *range(32, 127)))) + "\x1b\x85é一的和先，。：、；！“”「」（）《\u3000ſ\U00020000"
)
REPEATS = {_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT}
LOOKS = {_constants.ASSERT, _constants.ASSERT_NOT}
SETS = {_constants.LITERAL, _constants.NOT_LITERAL, _constants.IN, _constants.ANY}
LONG = 20  # a part that repeats at most so often costs each character little


Call = Callable[[Any], object]


class Use(NamedTuple):
    """A pattern, and the names of the methods of `re.Pattern` by which the code uses it."""

    place: str
    pattern: Any  # a pattern of `re` or of `text.lazy_compile`
    methods: frozenset[str]


class _Texts:
    """Sample texts of the parts of one parse tree."""

    def __init__(self, tree: Any) -> None:
        self._state = tree.state
        self._flags = tree.state.flags
        self._is_binary = isinstance(tree.state.str, bytes)
        self._first: dict[str, str] = {}
        letters = [chr(node[1]) for node in _nodes(tree) if node[0] is _constants.LITERAL]
        sets = {repr(node): node for node in _nodes(tree) if node[0] in SETS}
        every = dict.fromkeys([*EVERY, *letters])
        kinds: dict[tuple[bool, ...], str] = {}
        tests = [self._is_in(node) for node in sets.values()]
        for letter in [one for one in every if not self._is_binary or ord(one) < 256]:
            kinds.setdefault(tuple(test(letter) for test in tests), letter)
        self.letters = [letter for kind, letter in kinds.items() if any(kind)]
        self.other = next((letter for kind, letter in kinds.items() if not any(kind)), "\x00")
        for (name, _), at in zip(sets.items(), range(len(sets)), strict=True):
            self._first[name] = next((letter for kind, letter in kinds.items() if kind[at]), "")

    def _is_in(self, node: Any) -> Callable[[str], bool]:
        part = _parser.SubPattern(self._state, [node])
        found = _compiler.compile(part, self._flags)
        return lambda letter: found.match(letter.encode("latin-1") if self._is_binary else letter) is not None

    def sample(self, nodes: Any) -> str:
        """A text that `nodes` matches, apart from assertions; the shortest way through each repeat but once."""
        return "".join(map(self._of_node, nodes))

    def _of_node(self, node: Any) -> str:
        kind, given = node
        if kind in SETS:
            return self._first[repr(node)]
        if kind in REPEATS:
            return self.sample(given[2]) * max(int(given[0]), 1)
        if kind is _constants.SUBPATTERN:
            return self.sample(given[3])
        if kind is _constants.ATOMIC_GROUP:
            return self.sample(given)
        return self.sample(given[1][0]) if kind is _constants.BRANCH else ""

    def ways(self, nodes: Any) -> list[str]:
        """A sample of each branch of `nodes`."""
        found = [self.sample(nodes)]
        for kind, given in nodes:
            if kind is _constants.BRANCH:
                found += [text for way in given[1] for text in self.ways(way)]
            elif kind is _constants.SUBPATTERN:
                found += self.ways(given[3])
        return found

    def repeats(self, nodes: Any, before: str = "") -> Iterator[tuple[str, list[str]]]:
        """The text before each part that repeats often, and what it repeats."""
        for node in nodes:
            kind, given = node
            if kind in REPEATS:
                if given[1] > LONG:
                    yield before, self.ways(given[2])
                yield from self.repeats(given[2], before)
            elif kind is _constants.SUBPATTERN:
                yield from self.repeats(given[3], before)
            elif kind is _constants.ATOMIC_GROUP:
                yield from self.repeats(given, before)
            elif kind in LOOKS:
                yield from self.repeats(given[1], before if given[0] > 0 else "")
            elif kind is _constants.BRANCH:
                for way in given[1]:
                    yield from self.repeats(way, before)
            before += self._of_node(node)


def _nodes(tree: Any) -> Iterator[Any]:
    for node in tree:
        if isinstance(node, _parser.SubPattern):
            yield from _nodes(node)
        elif isinstance(node, tuple) and node and isinstance(node[0], type(_constants.LITERAL)):
            yield node
            if node[0] is not _constants.IN and isinstance(node[1], tuple | list | _parser.SubPattern):
                yield from _nodes(node[1])
        elif isinstance(node, list | tuple):
            yield from _nodes(node)


def repeats_in_possessive(pattern: Any) -> bool:
    """Whether a part repeats inside a group that is repeated possessively, or that is atomic."""
    groups = [
        given if kind is _constants.ATOMIC_GROUP else given[2]
        for kind, given in _nodes(_parser.parse(pattern.pattern, pattern.flags))
        if kind in {_constants.ATOMIC_GROUP, _constants.POSSESSIVE_REPEAT}
    ]
    return any(kind in REPEATS for group in groups for kind, _ in _nodes(group))


def texts(source: Any, flags: int) -> Iterator[tuple[str, str, str]]:
    """Beginning, repeated piece and end of each text to try; nothing for a pattern without a long repeat."""
    tree = _parser.parse(source, flags)
    made = _Texts(tree)
    repeats = list(made.repeats(tree))
    if not repeats:
        return
    pieces = dict.fromkeys(made.letters)
    pieces |= dict.fromkeys(way for _, ways in repeats for way in ways)
    pieces |= dict.fromkeys(before for before, _ in repeats)
    pieces |= dict.fromkeys(before + way for before, ways in repeats for way in ways)
    pairs = dict.fromkeys(("", piece) for piece in pieces)
    pairs |= dict.fromkeys((before, piece) for before, ways in repeats for piece in (*made.letters, *ways))
    for before, piece in pairs:
        if piece:
            for after in ("", made.other, "\n" + made.other):
                yield before, piece, after


def calls(pattern: Any, methods: frozenset[str]) -> list[Call]:
    """What to measure: the methods that read the text in the same way count once."""
    found: list[Call] = []
    if methods & {"finditer", "findall", "sub", "subn", "split"}:
        found.append(lambda text: sum(1 for _ in pattern.finditer(text)))
    elif "search" in methods:
        found.append(pattern.search)
    if "fullmatch" in methods:
        found.append(pattern.fullmatch)
    if "match" in methods:
        found.append(pattern.match)
    return found


def slow(use: Use, limit: int = 100_000) -> str:
    """A text whose time grows clearly more than its length, or nothing; at most `limit` texts are tried."""
    every = list(texts(use.pattern.pattern, use.pattern.flags))
    for at in sorted(sample(len(every), limit)):
        for call in calls(use.pattern, use.methods):
            if (size := _slow_size(call, *every[at], is_binary=isinstance(use.pattern.pattern, bytes))) is not None:
                before, piece, after = every[at]
                return f"{use.place}: {before!r} + {piece!r} * {size // len(piece)} + {after!r}"
    return ""


def _slow_size(call: Call, before: str, piece: str, after: str, *, is_binary: bool) -> int | None:
    """The number of characters from which the time for such a text grows more than its length."""

    def seconds(size: int, tries: int = 2) -> float:
        whole = before + piece * (size // len(piece) + 1) + after
        text = whole.encode("latin-1") if is_binary else whole
        return thread_seconds(lambda: call(text), tries)

    for size in SIZES:
        if seconds(size, 1) < NOISE:
            continue
        long = size
        while (taken := seconds(long)) > max(NOISE, FACTOR * seconds(long // TIMES)):
            if taken > ENOUGH or size == FIRST:
                return long
            long *= 2  # a part that repeats some hundred times at most takes linear time from there on
        return None
    return None


def methods_of(tree: ast.AST) -> dict[str, set[str]]:
    """For each name, the methods of a pattern that the code calls on it."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in METHODS:
            value = node.value
            name = value.id if isinstance(value, ast.Name) else value.attr if isinstance(value, ast.Attribute) else ""
            found.setdefault(name, set()).add(node.attr)
    return found


def _modules() -> list[ModuleType]:
    every = pkgutil.walk_packages(navigator_kernel.__path__, "navigator_kernel.")
    return [importlib.import_module(one.name) for one in every if not one.name.endswith("__main__")]


def made_by_modules() -> list[tuple[str, str | bytes, int, set[str]]]:
    """Place, source, flags and methods of each pattern that exists when every module of the kernel is loaded."""
    names: dict[int, str] = {}
    methods: dict[int, set[str]] = {}
    for module in _modules():
        called = methods_of(ast.parse(inspect.getsource(module))) if module.__file__ else {}
        for name, value in vars(module).items():
            if isinstance(value, text.LatePattern):
                names.setdefault(id(value), f"{module.__name__}.{name}")
                methods.setdefault(id(value), set()).update(called.get(name, ()))
    gc.unfreeze()  # what was loaded early may be out of the reach of get_objects
    made = [one for one in gc.get_objects() if isinstance(one, text.LatePattern)]
    return [
        (names.get(id(one), repr(one.pattern)), one.pattern, one.flags, methods.get(id(one)) or UNKNOWN) for one in made
    ]
