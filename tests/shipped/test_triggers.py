"""The promises of each shipped skill's trigger evals, and how much of them depends on the descriptions."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.index.use_encoder import UseEncoder
from navigator_kernel.bootstrap.places import shipped_home
from routing.distractors import write_distractors
from routing.place import Routing, routing_at
from shipped.place import NAMES

pytestmark = pytest.mark.sample(1)

ROWS = [
    (name, row)
    for name in NAMES
    for row in json.loads((shipped_home().skills / name / "evals" / "trigger-eval.json").read_text(encoding="utf-8"))
]
WANTED = [(name, row["query"]) for name, row in ROWS if row["should_trigger"]]
UNWANTED = [(name, row) for name, row in ROWS if not row["should_trigger"]]
DESCRIPTION = re.compile(r"(?m)^description: .*$")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Routing:
    """The shipped skills and no others."""
    return routing_at(copied(tmp_path_factory.mktemp("alone")), encoder)


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory, encoder: UseEncoder) -> Routing:
    """The shipped skills among two hundred others."""
    root = copied(tmp_path_factory.mktemp("crowded"))
    write_distractors(root / ".claude" / "skills")
    return routing_at(root, encoder)


def copied(root: Path) -> Path:
    for name in NAMES:
        shutil.copytree(shipped_home().skills / name, root / ".claude" / "skills" / name)
    return root


def chosen(place: Routing, query: str) -> str | None:
    """The skill that a message is routed to, or None."""
    decision = place.decide(query)
    return decision.entity if decision.kind == "skills" else None


def confidence(place: Routing, query: str, name: str) -> float:
    found = place.router.retrieve(query).candidates
    return next((candidate.confidence for candidate in found if candidate.name == name), 0.0)


@pytest.mark.requirement("RTE-38")
@pytest.mark.parametrize("where", ["alone", "crowded"])
def test_every_message_goes_where_its_eval_says(where: str, request: pytest.FixtureRequest) -> None:
    place = request.getfixturevalue(where)
    found = {query: place.decide(query) for _, query in WANTED}
    missed = [(name, query) for name, query in WANTED if name not in {found[query].entity, *found[query].options}]
    assert len(missed) <= 0.02 * len(WANTED), missed
    taken = [name for name, query in WANTED if found[query].entity == name]
    assert len(taken) >= (0.95 if where == "alone" else 0.8) * len(WANTED)
    strays = [(name, row["query"]) for name, row in UNWANTED if chosen(place, row["query"]) == name]
    assert len(strays) <= 0.04 * len(UNWANTED), strays


@pytest.mark.wide
@pytest.mark.requirement("RTE-38", "RTE-37")
@pytest.mark.parametrize("left", ["", "Skill"])
def test_without_their_descriptions_skills_are_found_less_surely(
    alone: Routing, tmp_path: Path, left: str, encoder: UseEncoder
) -> None:
    root = copied(tmp_path)
    for name in NAMES:
        page = root / ".claude" / "skills" / name / "SKILL.md"
        page.write_text(DESCRIPTION.sub(f"description: {left}", page.read_text(encoding="utf-8")), encoding="utf-8")
    poorer = routing_at(root, encoder)
    before = [confidence(alone, query, name) for name, query in WANTED]
    after = [confidence(poorer, query, name) for name, query in WANTED]
    assert sum(after) < sum(before)
    assert sum(chosen(poorer, query) == name for name, query in WANTED) < sum(
        chosen(alone, query) == name for name, query in WANTED
    )


def description(name: str) -> str:
    """The line with the description in the skill's page."""
    page = (shipped_home().skills / name / "SKILL.md").read_text(encoding="utf-8")
    return next(line for line in page.splitlines() if line.startswith("description: "))


@pytest.mark.wide
@pytest.mark.requirement("RTE-38", "RTE-39")
def test_by_descriptions_alone_half_are_found_and_by_names_alone_fewer(tmp_path: Path, encoder: UseEncoder) -> None:
    found: dict[str, int] = {}
    for how in ("described", "named"):
        for name in NAMES:
            path = tmp_path / how / ".claude" / "skills" / name / "SKILL.md"
            path.parent.mkdir(parents=True)
            told = description(name) if how == "described" else "description: Skill"
            path.write_text(f"---\nname: {name}\n{told}\n---\nGo.\n", encoding="utf-8")
        place = routing_at(tmp_path / how, encoder)
        found[how] = sum(chosen(place, query) == name for name, query in WANTED)
    assert found["described"] >= len(WANTED) * 0.45
    assert found["named"] < found["described"]


ORDINARY: tuple[Any, ...] = (
    "what is the capital of France?", "tell me a joke", "how do I cook rice", "who wrote Hamlet?", "I am bored",
    "remind me to call mom", "how many people live in Berlin", "convert 5 miles to km", "find a restaurant",
    "what is the largest city", "where is my phone", "tell me the latest news", "break a leg", "good night",
    "今天天气怎么样", "帮我写一首诗", "讲个笑话", "明天下午3点开会", "为什么我的电脑这么慢", "帮我把这个文件翻译成英文", "推荐一部电影",
)  # fmt: skip


@pytest.mark.requirement("RTE-19")
@pytest.mark.parametrize("query", ORDINARY)
def test_ordinary_talk_selects_no_skill(alone: Routing, query: str) -> None:
    assert chosen(alone, query) is None
