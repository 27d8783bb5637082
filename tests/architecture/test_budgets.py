"""Folders, scripts and silenced checks stay few enough to read. There is no list of exceptions."""

from __future__ import annotations

import pytest

from architecture.source import has_reason, line_count, python_files, read, suppressions
from tables import cases

EVERYTHING = ("kernel", "agents", "bin", "tests")


def test_no_folder_of_the_package_is_more_than_3_deep() -> None:
    files = python_files("kernel/navigator_kernel")
    assert [str(path) for path in files if len(path.parent.parts) - 2 > 3] == []


@pytest.mark.parametrize("folders", [("kernel", "agents", "bin"), ("tests",)], ids=["product", "tests"])
def test_at_most_2_checks_are_silenced_per_1000_lines(folders: tuple[str, ...]) -> None:
    files = python_files(*folders)
    silenced = [f"{path} {comment}" for path in files for comment in suppressions(read(path))]
    assert len(silenced) <= 2 * sum(map(line_count, files)) / 1000, silenced


def test_every_silenced_check_gives_its_reason() -> None:
    files = python_files(*EVERYTHING)
    silenced = [f"{path} {comment}" for path in files for comment in suppressions(read(path))]
    assert [line for line in silenced if not has_reason(line.partition(" ")[2])] == []


def test_a_script_of_bin_has_at_most_10_lines() -> None:
    """Except the one module that they share, which finds the environment and has to stay small too."""
    scripts = {path.name: line_count(path) for path in python_files("bin")}
    assert scripts.pop("_environment.py") <= 85
    assert {name: size for name, size in scripts.items() if size > 10} == {}


@cases("comment, reasoned")
def test_a_reason_is_more_than_the_code_of_the_check(comment: str, *, reasoned: bool) -> None:
    assert [has_reason(found) for found in suppressions(f"x = 1  # {comment}\n")] == [reasoned]
