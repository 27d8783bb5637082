from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.scratch import SHARED, make_scratch, new_scratch, remove_scratch

MAKE = """
import os, sys
from navigator_kernel.adapters.files.scratch import make_scratch, new_scratch, remove_scratch
os.environ["TMPDIR"] = sys.argv[1]
if not os.geteuid():
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
made = new_scratch()
remove_scratch(made, make_scratch(made))
print(made.parent)
"""


@pytest.mark.requirement("SAF-8")
def test_it_is_in_the_named_temporary_folder_and_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    made = new_scratch()
    handle = make_scratch(made)
    assert made.parent == tmp_path.resolve() and stat.S_IMODE(made.stat().st_mode) == 0o700
    remove_scratch(made, handle)
    assert not made.exists()


@pytest.mark.requirement("SAF-8")
def test_a_temporary_folder_that_is_missing_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "missing"))
    assert str(new_scratch().parent) in {os.path.realpath(place) for place in SHARED}


@pytest.mark.requirement("SAF-8")
def test_a_user_who_may_not_write_to_a_temporary_folder_gets_the_next_one() -> None:
    """A process without root's rights, with TMPDIR in a folder of root or of this user that is not writable."""
    ran = subprocess.run([sys.executable, "-c", MAKE, "/"], check=True, capture_output=True, text=True)
    assert ran.stdout.strip() in {os.path.realpath(place) for place in SHARED}
