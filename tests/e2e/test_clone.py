"""A stranger's first two commands: git clone, make demo."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_THIS_RUN = {"MAKEFLAGS", "MAKELEVEL", "MFLAGS", "VIRTUAL_ENV", "PYTHONPATH"}


@pytest.mark.ci
@pytest.mark.timeout(900)
def test_the_demo_of_a_fresh_clone_ends_with_a_success(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", ROOT.as_uri(), str(clone)], check=True, capture_output=True)
    env = {name: value for name, value in os.environ.items() if name not in OF_THIS_RUN}
    done = subprocess.run(["make", "-C", str(clone), "demo"], env=env, capture_output=True, text=True)
    print(done.stdout[-2000:])  # .ci/run shows it
    assert done.returncode == 0, done.stderr
    assert "✅" in done.stdout
