"""All sample skills: skills that harm a host that trusts them, and honest skills that look harmful."""

from __future__ import annotations

from pathlib import Path

import yaml

from scanning.samples import Sample, as_bytes


def read(name: str) -> tuple[Sample, ...]:
    rows = yaml.load(Path(__file__).with_name(name).read_bytes(), yaml.CSafeLoader)
    return tuple(
        Sample(
            name=row["name"],
            category=row["category"],
            files={path: as_bytes(content) for path, content in row["files"].items()},
            how=row["how"],
            harm=frozenset(row.get("harm", "").split()),
            needs=tuple(row.get("needs", ())),
        )
        for row in rows
    )


MALICIOUS, BENIGN = read("malicious.yaml"), read("benign.yaml")
