"""The routing sets of a folder with `dev/`, `catalog/` and maybe `train/`, as the router's own kind of entries."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from navigator_kernel.routing.entries import BODY_LIMIT, Entry

SHOTS = 10  # examples of each entry in a few-shot row
_FRONT = re.compile(r"\A---[ \t]*\n.*?\n---[ \t]*\n", re.DOTALL)
SKILL_LIKE = ("azure", "fastskills_zh", "realskills", "idaibin", "toole_single", "smp2017_zh")


@dataclass(frozen=True, slots=True)
class Question:
    """`labels` are ids of the catalogue, none where no skill is meant."""

    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A message of `everyday/`; `kind` is clear, vague, none, near_miss or several."""

    text: str
    lang: str
    kind: str
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


def everyday(folder: Path) -> Iterator[tuple[RoutingSet, tuple[Asked, ...]]]:
    """The messages of `everyday/`, as people type them, without the skills' bodies and with them (`+body`). Bodies come
    from the bundles of `../corpus`, by the catalogue's sources and paths; nothing where there is no such set."""
    place = folder / "everyday"
    if not (place / "dev.jsonl").is_file():
        return
    asked = tuple(
        Asked(row["query"], row["lang"], row["kind"], tuple(row["labels"])) for row in _lines(place / "dev.jsonl")
    )
    questions = tuple(Question(one.text, one.labels) for one in asked)
    rows = list(_lines(place / "catalog.jsonl"))
    entries = tuple(_entry({"id": row["name"], **row}) for row in rows)
    yield RoutingSet("everyday", questions, entries), asked
    bodies = _bodies(rows, folder.parent / "corpus")
    if any(bodies):
        held = tuple(replace(entry, body=body) for entry, body in zip(entries, bodies, strict=True))
        yield RoutingSet("everyday+body", questions, held), asked


def _bodies(rows: Sequence[Mapping[str, Any]], corpus: Path) -> list[str]:
    """What follows the front matter of each row's SKILL.md; empty where its source has no bundle."""
    held: dict[str, str] = {}
    for owner in {row["source"].split("/")[0] for row in rows}:
        for bundle in corpus.glob(f"{owner}+*.bundle"):
            with TemporaryDirectory() as scratch:
                subprocess.run(["git", "clone", "-q", "--bare", str(bundle), scratch], check=True)
                for path in {row["path"] for row in rows if row["source"].split("/")[0] == owner}:
                    words = ["git", "-C", scratch, "show", f"HEAD:{path}"]
                    done = subprocess.run(words, capture_output=True, check=False)
                    held[f"{owner}/{path}"] = _FRONT.sub("", done.stdout.decode("utf-8", "replace"))
    return [held.get(f"{row['source'].split('/')[0]}/{row['path']}", "")[:BODY_LIMIT] for row in rows]


def written_messages() -> Iterator[tuple[str, str, str]]:
    """The lines of `messages.tsv`: kind (want, vague, none, near), language and text."""
    for line in Path(__file__).with_name("messages.tsv").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            kind, lang, text = line.split("\t")
            yield kind, lang, text.replace("\\n", "\n")


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
