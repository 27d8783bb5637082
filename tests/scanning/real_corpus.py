"""Scans widely used repositories of skills; `python tests/scanning/real_corpus.py` writes the page of results."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.bootstrap.scanning.scanners import Scanners
from navigator_kernel.skills.install.plans import drafts, verdict_of
from navigator_kernel.skills.scan.commands import findings as command_findings
from navigator_kernel.skills.scan.finding import told
from navigator_kernel.skills.source.address import parse_source
from navigator_kernel.skills.source.reading import SourceReader, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from navigator_kernel.values.resource import Diagnostic

TOP = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("NAVIGATOR_CORPUS") or TOP.parent / "shared" / "corpus")
PAGE = TOP / "docs/reference/scanned-repositories.md"
HEAD = """# Scanned repositories

What the scanner says of five public repositories of skills, at the commits that the test `tests/scanning/test_real_corpus.py`
has of them (marker `ci`; `python tests/scanning/real_corpus.py` writes this page). "Found" counts every `SKILL.md`; what cannot
be read or written as a skill is not a subject of the scanner and is listed as left out.
"""


class Judged(NamedTuple):
    """One repository: its number of skills, and the findings of those that were scanned."""

    name: str
    found: int
    skills: dict[str, Sequence[Diagnostic]]

    def of(self, verdict: str) -> list[str]:
        return [folder for folder, findings in self.skills.items() if verdict_of(findings) == verdict]

    @property
    def warnings(self) -> int:
        return sum(one.level == "warning" for findings in self.skills.values() for one in findings)


def bundles() -> list[Path]:
    return sorted(CORPUS.glob("*.bundle"))


def judged(bundle: Path, work: Path) -> Judged:
    bare = work / f"{bundle.stem}.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(bundle), str(bare)], check=True)
    source, scan = parse_source(f"file://{bare}", base=work), Scanners()
    skills: dict[str, Sequence[Diagnostic]] = {}
    with open_source(source) as tree:
        reader = SourceReader(source, tree)
        found = reader.find()
        for plan in drafts(found, reader, SystemClock())[0]:
            seen = (*scan(plan.skill, plan.contents), *command_findings(plan.skill, plan.contents))
            skills[plan.receipt.subpath or "."] = seen
    scan.close()
    return Judged(bundle.stem.replace("+", "/"), len(found), skills)


def page(repositories: Sequence[Judged]) -> str:
    return "\n".join([HEAD, *_table(repositories), "", *_blocks(repositories)]) + "\n"


def _table(repositories: Sequence[Judged]) -> Iterator[str]:
    yield "| repository | found | scanned | ok | with warnings | blocked | left out | warnings a skill |"
    yield "|---|---|---|---|---|---|---|---|"
    for one in repositories:
        counts = [one.found, len(one.skills), *(len(one.of(verdict)) for verdict in ("ok", "warn", "block"))]
        share = one.warnings / max(len(one.skills), 1)
        yield f"| {one.name} | {' | '.join(map(str, counts))} | {one.found - len(one.skills)} | {share:.2f} |"


def _blocks(repositories: Sequence[Judged]) -> Iterator[str]:
    yield "## Blocked"
    yield ""
    lines = [
        f"- {one.name}, `{folder}`: {told(found.to_dict())}"
        for one in repositories
        for folder in one.of("block")
        for found in one.skills[folder]
        if found.level == "error"
    ]
    yield from lines or ["None."]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        PAGE.write_text(page([judged(bundle, Path(folder)) for bundle in bundles()]), "utf-8")
    sys.stdout.write(f"written: {PAGE.name}\n")
