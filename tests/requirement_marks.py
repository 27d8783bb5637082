"""A pytest plugin that records which requirement each passing test proves.

A test names its requirements, `@pytest.mark.requirement("RTE-11", "RTE-12")`; `--requirements-out FILE` gets one line
`id<TAB>test` for each id of each test that passed. The ids travel in `report.user_properties`, so they reach the
controller from xdist's workers too. A test fails if it names an id
that is not in `docs/reference/requirements.md`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

PROPERTY = "requirement"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--requirements-out", metavar="FILE", help="write `id<TAB>test` of every passing test to FILE")


def pytest_configure(config: pytest.Config) -> None:
    out = config.getoption("--requirements-out")
    if out and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(Path(out)))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    ids = [id_ for mark in item.iter_markers("requirement") for id_ in mark.args]
    unknown = [id_ for id_ in ids if id_ not in known()]
    if unknown:
        pytest.fail(f"unknown requirement {', '.join(map(repr, unknown))}", pytrace=False)
    item.user_properties.extend((PROPERTY, id_) for id_ in ids)


class Recorder:
    """Collects the ids of tests that passed in every phase, and writes them at the end."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.passed: dict[str, list[str]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.passed.pop(report.nodeid, None)
        elif report.when == "call" and report.passed:
            self.passed[report.nodeid] = [str(value) for name, value in report.user_properties if name == PROPERTY]

    def pytest_sessionfinish(self) -> None:
        lines = sorted(f"{id_}\t{test}\n" for test, ids in self.passed.items() for id_ in ids)
        self.out.write_text("".join(lines), encoding="utf-8")


@cache
def known() -> dict[str, str]:
    """The text of each requirement by its id, in the order of the page."""
    page = Path(__file__).resolve().parents[1] / "docs" / "reference" / "requirements.md"
    return dict(re.findall(r"^\| ([A-Z]+-\d+) \| (.+) \|$", page.read_text("utf-8"), re.MULTILINE))
