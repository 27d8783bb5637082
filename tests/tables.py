"""Reads the cases of tests from YAML files: those of `test_x.py` stand in `test_x.yaml` beside it, by the test's name."""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
import yaml

if TYPE_CHECKING:
    from collections.abc import Callable

Test = TypeVar("Test", bound="Callable[..., Any]")


def cases(names: str, *, lists: bool = False, **options: Any) -> Callable[[Test], Test]:
    """Parametrizes a test like `pytest.mark.parametrize`. Sequences within a case are tuples, with `lists` lists."""

    def mark(test: Test) -> Test:
        pytest.mark.parametrize(names, table(inspect.getfile(test), test.__name__, lists=lists), **options)(test)
        return test

    return mark


def table(module: str, name: str, *, lists: bool = False) -> Any:
    """What stands by that name in the YAML file beside the module, where a table is a list or a mapping."""
    found = _read(Path(module).with_suffix(".yaml"))[name]
    return found if lists else _tuples(found)


@cache
def _read(path: Path) -> Any:
    return yaml.load(path.read_bytes(), yaml.CSafeLoader)


def _tuples(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_tuples(item) for item in value)
    if isinstance(value, dict):
        return {key: _tuples(item) for key, item in value.items()}
    return value
