"""Answers that a subagent may return, as hypothesis strategies: valid, nearly valid, and hostile."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from hypothesis import strategies as st

from navigator_kernel.values.packet import STATES

LETTERS = st.characters(
    categories=("L", "N", "P", "S", "Zs"), max_codepoint=0xCFFF, exclude_characters="\xa0\xad\u061c"
)
WORDS = st.text(LETTERS, max_size=20)
LINES = st.text(LETTERS, min_size=1, max_size=30).map(lambda text: " ".join(text.split())).filter(bool)
PLAIN = st.none() | st.booleans() | st.integers(-(2**62), 2**62) | WORDS
FLOATS = st.floats(allow_nan=False, allow_infinity=False, width=32)
NESTED = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)
DATA = st.dictionaries(WORDS, NESTED, max_size=4)
JSON_DATA = st.dictionaries(WORDS, PLAIN | FLOATS | st.lists(PLAIN | FLOATS, max_size=3), max_size=4)
META = st.fixed_dictionaries(
    {"agent": WORDS, "time": st.floats(0, 1e6, allow_nan=False), "ts": st.just("2025-01-29T10:30:00Z")}
)
VALID = st.fixed_dictionaries(
    {"state": st.sampled_from(STATES), "summary": LINES, "data": JSON_DATA, "meta": META},
    optional={"raw": WORDS, "recoverable": st.booleans(), "effects": st.lists(WORDS, max_size=2)},
)


class Raises:
    """An object that raises on every operation."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def _raise(self, *_: object) -> Any:
        raise self.error

    __str__ = __repr__ = __iter__ = __len__ = __bool__ = __eq__ = __hash__ = __getitem__ = _raise


class RaisingMap(Mapping[str, Any]):
    """A mapping with one method that raises."""

    def __init__(self, method: str, error: BaseException) -> None:
        self.method, self.error = method, error

    def _do(self, method: str, answer: Any) -> Any:
        if method == self.method:
            raise self.error
        return answer

    def __getitem__(self, key: str) -> Any:
        return self._do("getitem", {"state": "success", "data": {"a": 1}}[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self._do("iter", ["state", "data"]))

    def __len__(self) -> int:
        return int(self._do("len", 2))

    def get(self, key: str, default: Any = None) -> Any:
        return self._do("get", {"state": "success", "data": RaisingMap("items", self.error)}.get(key, default))

    def items(self) -> Any:
        return self._do("items", {"state": "success"}.items())

    def keys(self) -> Any:
        return self._do("keys", ["state"])


class EndlessList(list[Any]):
    def __iter__(self) -> Iterator[Any]:
        while True:
            yield 1


class LyingText(str):
    """A string whose methods raise."""

    def strip(self, *_: object) -> str:
        raise RuntimeError("strip")

    def __getitem__(self, _: object) -> str:
        raise RuntimeError("getitem")


def nearly(report: dict[str, Any], change: str) -> Any:
    """A valid report with one thing wrong."""
    mark = {"success": "✅", "error": "❌", "timeout": "⏱️", "partial": "⚠️", "pending": "⏸️"}[report["state"]]
    changed: dict[str, dict[str, Any]] = {
        "upper": {"state": report["state"].upper()},
        "spaces": {"state": f" {report['state']}\n"},
        "emoji": {"state": mark},
        "bare-emoji": {"state": mark.rstrip("\ufe0f")},
        "data-list": {"data": [report["data"]]},
        "data-text": {"data": "text"},
        "no-summary": {"summary": None},
        "list-summary": {"summary": ["a"]},
        "odd-meta": {"meta": {"agent": ["x"], "time": float("nan"), "ts": "yesterday"}},
        "text-meta": {"meta": "worker"},
        "odd-effects": {"effects": [1, None, "a"]},
        "raw-number": {"raw": 5},
    }
    if change.startswith("no-") and change != "no-summary":
        return {key: value for key, value in report.items() if key != change.removeprefix("no-")}
    return {**report, **changed[change]}


CHANGES = [
    *"upper spaces emoji bare-emoji data-list data-text no-summary list-summary".split(),
    *"odd-meta text-meta odd-effects raw-number no-meta no-data".split(),
]
NEARLY = st.tuples(VALID, st.sampled_from(CHANGES))


def deep(kind: type[Any], levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value} if kind is dict else kind([value])
    return value


def cyclic(width: int) -> list[Any]:
    found: list[Any] = []
    found += [found] * width
    return found


def bomb(levels: int, width: int) -> Any:
    value: Any = "x" * 100
    for _ in range(levels):
        value = [value] * width
    return value


YAML_BOMB = "state: success\ndata:\n  a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"  {new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)
MADE: list[Callable[[], Any]] = [
    lambda: deep(list, 5_000),
    lambda: deep(dict, 5_000),
    lambda: deep(tuple, 5_000),
    lambda: cyclic(1),
    lambda: cyclic(3),
    lambda: bomb(10, 10),
    lambda: EndlessList([1]),
    lambda: float("nan"),
    lambda: float("-inf"),
    lambda: 10**5_000,
    lambda: "\ud800\udfff",
    lambda: LyingText("state: success"),
    lambda: Raises(RuntimeError("\ud800 x")),
    lambda: Raises(SystemExit(3)),
    lambda: b"\xff\xfe state: success",
    lambda: bytearray(b'{"state": "success"}'),
    lambda: (n for n in range(10)),
    lambda: iter(int, 1),
    lambda: {1: 2, None: 3, (1,): 4},
    lambda: {Raises: 1},
    lambda: SimpleNamespace(state="success"),
    lambda: type("Report", (), {"state": "success"}),
    lambda: YAML_BOMB,
    lambda: '{"state": "success", "data": ' + "[" * 20_000,
    lambda: "[" * 20_000,
    lambda: '{"state": "success", "data": {"n": NaN, "i": 1' + "0" * 6_000 + "}}",
    lambda: "❌ x y\n  state: error\n  data: !!python/object/apply:os.system ['true']\n",
    lambda: "state: error\n\tdata: {",
    lambda: "state: error\ndata: {a: 2001-99-99, b: 0o9, c: !!binary x}",
]
TEXTS = st.sampled_from(MADE).map(lambda make: make())
ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.binary(max_size=50)
    | st.text(max_size=200)
    | st.sets(st.integers() | st.text(max_size=3), max_size=4)
    | st.builds(complex, st.floats(), st.floats())
)
RAISING = st.builds(
    RaisingMap,
    st.sampled_from(["getitem", "iter", "len", "get", "items", "keys"]),
    st.sampled_from(
        [ValueError("x"), RecursionError("y"), MemoryError(), SystemExit(1), StopIteration(), KeyError("\ud800")]
    ),
)
INNER = ANYTHING | TEXTS | RAISING
AS_REPORT = st.fixed_dictionaries(
    {"state": st.sampled_from(STATES) | INNER},
    optional={"summary": INNER, "data": INNER, "meta": INNER, "raw": INNER, "effects": INNER, "recoverable": INNER},
)
HOSTILE = INNER | AS_REPORT | st.text(max_size=60).map(lambda text: f"state: success\ndata: {text}")


def json_text(report: dict[str, Any]) -> str:
    return json.dumps(report, ensure_ascii=False)
