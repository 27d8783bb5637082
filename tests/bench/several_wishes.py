"""Long messages with several wishes: whether every wish is answered, in the order in which the work must be done."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from bench.routing_catalogues import shipped_entries
from bench.routing_sets import everyday
from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.config.settings import Settings
from navigator_kernel.turn.message import preprocess
from navigator_kernel.turn.steps import ListedSteps, PlanningContext, list_steps
from navigator_kernel.values.context import TurnContext
from navigator_kernel.values.request import Message
from routing.place import routing_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from navigator_kernel.model_ports import Encoder


def several(folder: Path, encoder: Encoder) -> dict[str, float]:
    """Shares of the messages of `long/`: of those with several wishes the ones whose wishes are all answered, by a skill
    that is taken or among those offered, and of these the ones in order; of all others the ones that are taken apart."""
    found, _ = list(everyday(folder))[-1]
    lines = (folder / "long" / "dev.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    own = {entry.name for entry in shipped_entries()}
    with TemporaryDirectory() as scratch:
        root = Path(scratch)
        for entry in (*shipped_entries(), *(entry for entry in found.entries if entry.name not in own)):
            write_entry(root, entry.name, entry.description, entry.body)
        place = routing_at(root, encoder)
        context = TurnContext(run="bench", timeout=60.0, language="en", format="detail")
        files = ProjectFiles(root, root)
        ground = PlanningContext(
            catalogue=place.catalogue,
            router=place.router,
            files=files,
            root=root,
            limit=Settings().steps,
            context=context,
        )
        answered, ordered, apart = [], [], []
        for row in rows:
            listed = list_steps(preprocess(Message(text=row["query"]), files), row["query"], ground)
            steps = (
                [{step.skill} if step.skill else set(step.offered) for step in listed.steps]
                if isinstance(listed, ListedSteps)
                else []
            )
            if row["kind"] == "long_several":
                places = [_places(labels, steps) for labels in row["labels"]]
                answered.append(all(places))
                if all(places):
                    ordered.append(_in_order(places))
            else:
                apart.append(bool(steps))
    return {
        "answered": sum(answered) / len(answered),
        "in order": sum(ordered) / max(len(ordered), 1),
        "one task taken apart": sum(apart) / len(apart),
    }


def write_entry(root: Path, name: str, description: str, body: str) -> None:
    folder = root / ".claude" / "skills" / name
    folder.mkdir(parents=True)
    head = json.dumps({"name": name, "description": description}, ensure_ascii=False)
    (folder / "SKILL.md").write_text(f"---\n{head}\n---\n{body}\n", encoding="utf-8")


def _places(labels: Sequence[str], steps: Sequence[set[str]]) -> list[int]:
    return [at for at, names in enumerate(steps) if names & set(labels)]


def _in_order(places: Sequence[Sequence[int]]) -> bool:
    """Whether a later wish can be answered by a later step each."""
    last = -1
    for held in places:
        later = [at for at in held if at > last]
        if not later:
            return False
        last = later[0]
    return True
