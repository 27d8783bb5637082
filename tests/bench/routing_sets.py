"""The routing sets of a folder with `dev/`, `catalog/` and maybe `train/`, as the router's own kind of entries."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from navigator_kernel.routing.entries import BODY_LIMIT, Entry

SHOTS = 10  # examples of each entry in a few-shot row
SKILL_LIKE = ("azure", "fastskills_zh", "realskills", "idaibin", "toole_single", "smp2017_zh")


@dataclass(frozen=True, slots=True)
class Question:
    """`labels` are ids of the catalogue, none where no skill is meant."""

    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutingSet:
    name: str
    questions: tuple[Question, ...]
    entries: tuple[Entry, ...]


def read_sets(folder: Path) -> Iterator[RoutingSet]:
    """Each set by name, zero-shot: examples are hidden. Those with bodies come a second time as `<name>+body`."""
    for path in sorted((folder / "dev").glob("*.jsonl")):
        rows = list(_lines(path))
        entries = read_catalogue(folder / rows[0]["catalog"])
        questions = tuple(Question(row["query"], tuple(row["labels"])) for row in rows)
        yield RoutingSet(path.stem, questions, tuple(replace(entry, body="") for entry in entries))
        if any(entry.body for entry in entries):
            yield RoutingSet(f"{path.stem}+body", questions, entries)


def with_shots(found: RoutingSet, folder: Path) -> RoutingSet | None:
    """The same set with ten examples of each entry, where it has as many to learn from."""
    path = folder / "train" / f"{found.name}.jsonl"
    if not path.is_file():
        return None
    shots: dict[str, list[str]] = {}
    for row in _lines(path):
        held = shots.setdefault(row["label"], [])
        if len(held) < SHOTS and row["query"] not in held:
            held.append(row["query"])
    entries = tuple(replace(entry, examples=tuple(shots.get(entry.id, ()))) for entry in found.entries)
    return RoutingSet(f"{found.name}, {SHOTS} shots", found.questions, entries)


def read_catalogue(path: Path) -> tuple[Entry, ...]:
    """With bodies, without examples."""
    return tuple(_entry(row) for row in _lines(path))


def _entry(row: Mapping[str, Any]) -> Entry:
    return Entry(
        id=row["id"],
        name=row["name"],
        description=row["description"] or "",
        tags=tuple(row.get("tags") or ()),
        body=(row.get("body") or "")[:BODY_LIMIT],
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    path = path if path.exists() else path.with_name(f"{path.name}.gz")
    data = path.read_bytes()
    for line in (gzip.decompress(data) if path.suffix == ".gz" else data).decode().split("\n"):
        if line:
            yield json.loads(line)


def scale(folder: Path, count: int) -> Sequence[Entry]:
    """`count` entries for tests of size: the public skills, again under other names where there are too few."""
    paths = [folder / "catalog" / f"{name}.jsonl" for name in ("skills_27k", "registry_22k")]
    found = list(islice((_entry(row) for path in paths for row in _lines(path)), count))
    held = [replace(entry, id=f"{at}") for at, entry in enumerate(found)]
    while len(held) < count:
        more = [
            replace(entry, id=f"{len(held) + at}", name=f"{entry.name}-{len(held)}") for at, entry in enumerate(found)
        ]
        held += more
    return held[:count]
