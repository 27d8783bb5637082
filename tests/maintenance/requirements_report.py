"""Prints the requirements that no passing test proves, grouped by the milestone in which they fall due."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from requirement_marks import known


def main(argv: list[str]) -> int:
    """Returns 1 if an id of a milestone that is due has no passing test, else 0."""
    options = parse(argv)
    proved = {line.split("\t")[0] for line in options.results.read_text(encoding="utf-8").splitlines()}
    missing = group_missing(proved)
    for milestone, ids in missing.items():
        mark = " (due)" if milestone in options.due else ""
        print(f"{milestone}{mark}, {len(ids)} without a passing test: {' '.join(ids)}")
    print(f"{len(known().keys() & proved)} of {len(known())} requirements have a passing test")
    return int(any(milestone in missing for milestone in options.due))


def parse(argv: list[str]) -> argparse.Namespace:
    names = sorted(set(known().values()))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path, help="the file that pytest --requirements-out wrote")
    parser.add_argument("--due", nargs="*", choices=names, default=[], help="milestones that must be complete")
    return parser.parse_args(argv)


def group_missing(proved: set[str]) -> dict[str, list[str]]:
    missing: dict[str, list[str]] = {}
    for id_, milestone in known().items():
        if id_ not in proved:
            missing.setdefault(milestone, []).append(id_)
    return missing


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
