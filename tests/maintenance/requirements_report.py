"""Prints the requirements that no passing test proves: `python -m maintenance.requirements_report FILE`, with the file
that `pytest --requirements-out` wrote. Ends with 1 if there is one."""

from __future__ import annotations

import sys
from pathlib import Path

from requirement_marks import known

SETTLED = "X-"  # rules about requirements, which tests cite in comments


def main(results: Path) -> int:
    """The exit code."""
    proved = {line.split("\t")[0] for line in results.read_text("utf-8").splitlines()}
    ids = [id_ for id_ in known() if not id_.startswith(SETTLED)]
    missing = [id_ for id_ in ids if id_ not in proved]
    for id_ in missing:
        print(f"{id_}: {known()[id_]}")
    print(f"{len(ids) - len(missing)} of {len(ids)} requirements have a passing test")
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
