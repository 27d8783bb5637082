"""All sample skills: skills that harm a host that trusts them, and honest skills that look harmful.

Each malicious sample was seen to do its harm, and no honest one to do any, by a host that obeys every file and every
word of a skill, in a box with stand-ins for the network: commit 61d61898 has that host and its box.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One skill. `harm` has the kinds of harm that it does to a host that trusts it, none for an honest one."""

    name: str
    category: str
    files: Mapping[str, bytes] = field(repr=False)
    harm: frozenset[str] = frozenset()

    def lay(self, folder: Path) -> Path:
        """Writes the skill's files below `folder` and returns the skill's own folder."""
        top = folder / self.name
        for path, data in self.files.items():
            target = top / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        return top


def read(name: str) -> tuple[Sample, ...]:
    rows = yaml.load(Path(__file__).with_name(name).read_bytes(), yaml.CSafeLoader)
    return tuple(
        Sample(
            name=row["name"],
            category=row["category"],
            files={
                path: content if isinstance(content, bytes) else content.encode()
                for path, content in row["files"].items()
            },
            harm=frozenset(row.get("harm", "").split()),
        )
        for row in rows
    )


MALICIOUS, BENIGN = read("malicious.yaml"), read("benign.yaml")
