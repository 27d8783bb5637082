"""Every pattern of the kernel reads a text of any length in linear time (CWE-1333)."""

from __future__ import annotations

import ast
import gc
import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import pytest

import navigator_kernel
from hostile_input.pumps import METHODS, Use, methods_of, slow
from navigator_kernel import text

FEW, MANY = 8, 40  # texts for each pattern, in `make test` and in the gate
UNKNOWN = frozenset({"finditer", "fullmatch"})  # of a pattern that has no name: each way to read a text


def modules() -> list[ModuleType]:
    every = pkgutil.walk_packages(navigator_kernel.__path__, "navigator_kernel.")
    return [importlib.import_module(one.name) for one in every if not one.name.endswith("__main__")]


def patterns() -> list[Use]:
    """All patterns that exist when every module of the kernel is loaded, in the order of their names."""
    names: dict[int, str] = {}
    methods: dict[int, set[str]] = {}
    for module in modules():
        called = methods_of(ast.parse(inspect.getsource(module))) if module.__file__ else {}
        for name, value in vars(module).items():
            if isinstance(value, text.LatePattern):
                names.setdefault(id(value), f"{module.__name__}.{name}")
                methods.setdefault(id(value), set()).update(called.get(name, ()))
    gc.unfreeze()  # conftest.py takes what is loaded early out of the reach of get_objects
    made = [one for one in gc.get_objects() if isinstance(one, text.LatePattern)]
    uses = [Use(names.get(id(one), repr(one.pattern)), one, frozenset(methods.get(id(one)) or UNKNOWN)) for one in made]
    return sorted(uses, key=lambda use: use.place)


@pytest.mark.parametrize(
    ("source", "method"),
    [
        (r"(?:a+)+b", "match"),
        (r"\s+$", "search"),
        (r"[ \t]+\n", "sub"),
        (r"^\s*(?:y|yes)\s*[.!]?\s*$", "match"),
        (r"x.*y.*z", "search"),
        (r"<!--.*?-->", "finditer"),
        (rb"\w+=", "search"),
    ],
)
def test_a_pattern_that_takes_more_than_linear_time_is_noticed(source: str | bytes, method: str) -> None:
    assert slow(Use("bad", re.compile(source), frozenset({method}))).startswith("bad: ")


@pytest.mark.parametrize(
    ("source", "method"),
    [(r"(?<!\s)\s++$", "search"), (r"^\s*+(?:y|yes)\s*+[.!]?\s*+$", "match"), (r"[^x]{0,300}y", "search")],
)
def test_a_pattern_that_takes_linear_time_is_not_reported(source: str, method: str) -> None:
    assert slow(Use("good", re.compile(source), frozenset({method}))) == ""


def test_every_pattern_of_the_kernel_takes_linear_time() -> None:
    uses = patterns()
    assert len(uses) > 400
    assert [found for use in uses if (found := slow(use, FEW))] == []


@pytest.mark.wide
@pytest.mark.timeout(300)
def test_every_pattern_of_the_kernel_takes_linear_time_on_many_texts() -> None:
    assert [found for use in patterns() if (found := slow(use, MANY))] == []


def test_the_methods_that_read_a_text_are_known() -> None:
    readers = {name for name in dir(re.Pattern) if callable(getattr(re.Pattern, name)) and not name.startswith("_")}
    assert readers - {"scanner"} == set(METHODS)
