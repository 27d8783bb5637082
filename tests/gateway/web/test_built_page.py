"""The committed page is built from its sources, which pass their own checks."""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path

import pytest

from gateway.web.node import WEB, run_npm

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

PAGE = WEB.parent / "page"
MOST = 200_000  # bytes of compressed JavaScript


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_sources_pass_their_checks_and_build_the_committed_files(web_tools: Path) -> None:
    run_npm("run", "check", folder=web_tools)
    run_npm("run", "build", folder=web_tools)
    assert files(web_tools.parent / "page") == files(PAGE)


def test_the_javascript_of_all_pages_together_is_small() -> None:
    packed = sum(len(gzip.compress(path.read_bytes(), 9)) for path in PAGE.rglob("*.js"))
    assert 0 < packed <= MOST


def test_the_committed_sources_hold_no_packages_and_no_registry() -> None:
    listed = subprocess.run(["git", "ls-files", WEB], cwd=WEB, capture_output=True, text=True, check=True).stdout
    assert "node_modules" not in listed
    assert "registry." not in (WEB / "package-lock.json").read_text()
