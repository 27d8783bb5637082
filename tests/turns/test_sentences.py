"""An ordinary sentence limits no answer of a shipped skill and none is refused; what it does limit stays."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from navigator_kernel.adapters.files.project_files import ProjectFiles
from navigator_kernel.bootstrap.places import shipped_home
from navigator_kernel.language.parameters import parameters
from navigator_kernel.skills.catalog.catalogue import ResourceCatalogue
from navigator_kernel.skills.catalog.listing import Root
from navigator_kernel.turn.message import preprocess
from navigator_kernel.values.request import Message
from turns.test_stated import cases

FILES = {
    "orders.csv": "region,port,amount,status\nnorth,Oslo,100,paid\nsouth,Kiel,50,open\n",
    "订单.csv": "地区,港口,金额,状态\n北区,上海,100,已付\n南区,宁波,50,未付\n",
    "people.json": json.dumps([{"name": "Anna", "city": "Lyon", "age": 31}, {"name": "Bo", "city": "Kiel", "age": 20}]),
    "relay.log": "2026-11-28 10:00:00 ERROR mail refused\n",
    "handbook.md": "some words\n",
    "手册.md": "几个字\n",
    "docs/guide.md": "[gone](gone.md)\n",
    "src/app.py": "# TODO: round\n",
}
LIMITING = {"columns", "group", "where", "sort", "person"}
pytestmark = [pytest.mark.requirement("SEN-2"), pytest.mark.sample(12)]


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose commits are by Zoe Park and 林晓."""
    root = tmp_path_factory.mktemp("sentences")
    for name, text in FILES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    for who in ("Zoe Park", "林晓"):
        person = ["-c", f"user.name={who}", "-c", "user.email=a@b.invalid"]
        subprocess.run(["git", *person, "commit", "-q", "--allow-empty", "-m", "x"], cwd=root, check=True)
    return root


def limited(office: Path, name: str, message: str) -> str:
    """What the message limits the skill's answer to; `refused` if the skill does not take a limit."""
    skill = ResourceCatalogue(roots=(Root(path=shipped_home().skills, level="shipped"),)).find(name)
    assert skill is not None
    request = preprocess(Message(text=message), ProjectFiles(office, office), "2026-11-28T12:00:00.000Z")
    ready = parameters(skill.required_params, (), request, named=False)
    if ready.problem:
        return "refused"
    names = [spec.name for spec in skill.required_params if spec.validation in LIMITING and spec.name in ready.values]
    return " ".join(f"{name}={ready.values[name]}" for name in names)


@pytest.mark.parametrize(("skill", "message", "expected"), cases("sentences"))
def test_what_a_sentence_limits_the_answer_of_a_skill_to(office: Path, skill: str, message: str, expected: str) -> None:
    assert limited(office, skill, message) == expected
