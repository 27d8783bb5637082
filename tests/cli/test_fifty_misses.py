"""Fifty messages that miss a skill, each at a stage that the message and the catalogue leave in no doubt."""

from __future__ import annotations

import pytest

from cli.support import below, place_in, type_a
from navigator_kernel.cli.chat.ask import take_turn
from navigator_kernel.cli.project import App
from navigator_kernel.values.request import Message, Session
from navigator_kernel.why import missed
from skill_repositories import skill_text

pytestmark = pytest.mark.sample(1)

PAINT, SEA = (
    "Paints watercolours of boats at sea. Use when the user wants a watercolour of boats",
    "paint a watercolour of boats at sea",
)
OFF = ("off-one", "off-two")
HIDDEN = ("for-people", "for-hands")

MISSES: list[tuple[str, str, str]] = [
    # No skill has this name, or the skill is not for routing: it was never offered
    *((message, "no-such-skill", "offered") for message in ("hello", SEA, "/word-count a", "帮我审查一下代码", "skill list")),
    *((f"/{name} x", name, "offered") for name in ("ada-paintor", "wordcount2", "画图")),
    *((message, name, "offered") for name in OFF for message in ("sell me some coffee", "/word-count a", "卖咖啡")),
    *((message, name, "offered") for name in HIDDEN for message in ("please sell me some tea", "hello", "我想买茶")),
    # The message names another skill or needs none: the router did not look for others
    *((message, "ada-painter", "shortlisted") for message in (
        "/word-count boats at sea", "@@word-count boats at sea", "/bob-painter a boat", "/rust-dev boats", "use word-count on boats",
        "word-count boats", "run word-count", "执行 word-count 海上的船", "列出技能", "what can you do", "#nothing-like-it",
        "info bob-painter", "mcp list", "/nothing-like-it boats",
    )),
    # Words of the command line that are not commands here: the person is asked first
    *((message, "ada-painter", "chosen") for message in ("skill list", "disable nothing-like-it")),
    # Two skills are alike: the person is asked first
    *((SEA, name, "chosen") for name in ("ada-painter", "bob-painter")),
    ("paint me a watercolour of two boats at sea please", "bob-painter", "chosen"),
    ("I would like a watercolour of boats at sea", "ada-painter", "chosen"),
    # Another skill is clearly meant, and the text that it is to work on is not searched for
    *((f"word count of this: {words}", "ada-painter", "shortlisted") for words in (
        "watercolours of boats at sea", "he paints boats at sea", "a watercolour, boats, the sea", "boats at sea in watercolours",
    )),
    # The step before failed, so the skill's own step never started
    *((f"use fail-hard, {name} about the sea", name, "loaded") for name in ("ada-painter", "bob-painter", "word-count", "rust-dev")),
    *((f"用 fail-hard、{name} 处理", name, "loaded") for name in ("ada-painter", "bob-painter")),
]  # fmt: skip


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> App:
    place = place_in(tmp_path_factory.mktemp("misses"))
    skills = {"ada-painter": (PAINT, ""), "bob-painter": (PAINT, "")}
    skills |= dict.fromkeys(OFF, ("Sells coffee, 卖咖啡. Use when the user wants coffee", ""))
    skills |= dict.fromkeys(HIDDEN, ("Sells tea. Use when the user wants tea", "disable-model-invocation: true\n"))
    place.write({f".claude/skills/{name}/SKILL.md": skill_text(name, *told) for name, told in skills.items()})
    place.write(
        below(".claude/skills/fail-hard", type_a("fail-hard", "import sys\nsys.exit(3)\n", description="Fails"))
    )
    for name in OFF:
        place.said("skill", "disable", name, env={"XDG_STATE_HOME": str(place.root.parent / "state")})
    return App(root_flag=str(place.root))


def test_there_are_fifty() -> None:
    assert len(set(MISSES)) >= 50


@pytest.mark.wide
@pytest.mark.parametrize(("message", "skill", "stage"), MISSES)
def test_a_miss_is_attributed_to_its_stage(
    app: App, message: str, skill: str, stage: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(app.root.parent / "state"))
    monkeypatch.chdir(app.root)
    reply = take_turn(app, Message(text=message, consent=True), Session(id=app.project.ids.new()), (), keep=False)
    held = next((one for one in app.project.catalogue.list_resources(enabled_only=False) if one.name == skill), None)
    told = missed(app.project.run_log.read(reply.run), held, skill)
    assert told.fell_out == stage, told
    assert told.why
