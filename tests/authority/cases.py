"""Which test shows each case of the threat model on real files and processes (cases.yaml).

A test without the mark `ci` runs as root and as another user, a test that also has `wide` only as another user; of the
others, `AS_ANOTHER` names the files that `.ci/run` also runs as another user, and `BOTH` those whose tests, run by
root, give up root's rights themselves. `rungs` says whether a sandbox is involved: then the test runs with bubblewrap
and with Landlock. `IN_PROCESS` are cases that call the kernel's functions in the test's own process, on real files.
"""

from __future__ import annotations

from typing import NamedTuple

from tables import table

BOTH = ("sandbox/test_escapes.py",)
AS_ANOTHER = (
    "sandbox/test_fresh_folders.py",
    "sandbox/test_server_questions.py",
    "cli/test_mcp_tools.py",
)


class Case(NamedTuple):
    """`tests` are names in `file`, below `tests/`, without the prefix `test_`."""

    item: int
    what: str
    file: str
    tests: tuple[str, ...]
    rungs: bool = False


CASES = tuple(Case(**one) for one in table(__file__, "CASES"))

IN_PROCESS = tuple(Case(**one) for one in table(__file__, "IN_PROCESS"))
