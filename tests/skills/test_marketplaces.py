"""Plugins that a marketplace lists are installed, those of other repositories from there."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace as with_fields

from navigator_kernel.bootstrap.roots import marketplace
from navigator_kernel.errors import KernelError, Refused, SkillNotFound, UsageProblem
from skill_repositories import git, make_repo, skill_text
from tables import cases

OTHERS = {
    "tools": {"source": "url", "url": "file://{tools}", "ref": "v1"},
    "deep": {"source": "git-subdir", "url": "file://{mono}", "path": "plugins/deep"},
    "pip": {"source": "pip", "package": "x"},
    "climbs": {"source": "git-subdir", "url": "file://{mono}", "path": "../x"},
}


def market_in(tmp_path: Path, plugins: Mapping[str, Any], **files: str) -> str:
    rows = [{"name": name, "source": source} for name, source in plugins.items()]
    manifest = json.dumps({"name": "acme", "owner": {"name": "a"}, "plugins": rows})
    return f"file://{make_repo(tmp_path, {'.claude-plugin/marketplace.json': manifest, **files}, name='market')}"


@pytest.fixture
def market(tmp_path: Path) -> str:
    """A marketplace with one plugin of its own and others elsewhere."""
    tools = make_repo(
        tmp_path, {f"skills/{name}/SKILL.md": skill_text(name) for name in ("fold", "pack")}, name="tools"
    )
    git(tools, "tag", "v1")
    inner = {"plugins/deep/skills/dig/SKILL.md": skill_text("dig"), "other/SKILL.md": skill_text("other")}
    mono = make_repo(tmp_path, inner, name="mono")
    places = json.loads(json.dumps(OTHERS).replace("{tools}", str(tools)).replace("{mono}", str(mono)))
    own = {f"plugins/own/skills/{name}/SKILL.md": skill_text(name) for name in ("greet", "wave")}
    return market_in(tmp_path, {"own": "./plugins/own", **places}, **own)


def names_of(result: Mapping[str, Any]) -> list[str]:
    return sorted(one["name"] for one in result["skills"])


@cases("word, installed, source")
def test_a_plugin_is_installed_from_where_it_lies(
    project: Any, market: str, word: str, installed: list[str], source: str
) -> None:
    result = project.run("install", source=market, skill=word)
    assert names_of(result) == list(installed)
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    assert {Path(entry["source"]).name for entry in lock.values()} == {source}
    project.run("update")  # from there, too


def test_all_skills_of_a_marketplace_are_those_in_it_and_the_other_plugins_are_named(project: Any, market: str) -> None:
    result = project.run("install", source=market, all=True)
    assert (names_of(result), result["exit_code"]) == (["greet", "wave"], 0)
    assert {(one["name"], one["reason"]) for one in result["left_out"]} == {
        ("tools", "elsewhere"),
        ("deep", "elsewhere"),
    }
    problems = {one["code"]: one["message"] for one in project.run("info", source=market)["problems"]}
    assert "tools, deep" in problems["plugin-elsewhere"]
    assert "climbs" in problems["plugin-source"]


@cases("word, there, source")
def test_info_and_scan_look_at_a_plugin_where_it_lies(
    project: Any, market: str, word: str, there: list[str], source: str
) -> None:
    info = project.run("info", source=market, skill=word)
    assert (names_of(info), Path(info["source"]).name) == (list(there), source)
    (note,) = [one for one in info["problems"] if one["code"] == "plugin-elsewhere"]
    assert (market in note["message"], note["level"]) == (True, "note")
    assert names_of(project.run("scan", source=market, skill=word)) == list(there)


def test_a_marketplace_may_hold_no_skills_itself(project: Any, tmp_path: Path) -> None:
    tools = make_repo(tmp_path, {"SKILL.md": skill_text("pack")}, name="tools")
    market = market_in(tmp_path, {"tools": {"source": "url", "url": f"file://{tools}"}})
    assert names_of(project.run("install", source=market, skill="tools")) == ["pack"]
    assert project.run("info", source=market)["count"] == 0


def test_a_skill_in_the_marketplace_comes_before_a_plugin_of_its_name(project: Any, tmp_path: Path) -> None:
    market = market_in(
        tmp_path, {"greet": {"source": "github", "repo": "acme/none"}}, **{"skills/greet/SKILL.md": skill_text("greet")}
    )
    assert names_of(project.run("install", source=market, skill="greet")) == ["greet"]


def test_an_unknown_skill_of_a_plugin_elsewhere_is_not_found(project: Any, market: str) -> None:
    with pytest.raises(SkillNotFound):
        project.run("install", source=market, skill="tools:other")


def test_a_marketplace_that_leads_to_a_marketplace_is_followed_once(project: Any, tmp_path: Path) -> None:
    inner = market_in(tmp_path, {"x": {"source": "url", "url": "file:///nowhere"}})
    rows = [{"name": "x", "source": {"source": "url", "url": inner}}]
    manifest = {".claude-plugin/marketplace.json": json.dumps({"plugins": rows})}
    outer = make_repo(tmp_path, manifest, name="outer")
    with pytest.raises(KernelError) as raised:
        project.run("install", source=f"file://{outer}", skill="x")
    assert raised.value.exit_code in {4, 7}
    assert not project.skills.exists() or not [*project.skills.glob("*/SKILL.md")]


@pytest.mark.parametrize(
    "address", ["/etc", "./x", "file:///etc", "https://example.org/x.zip", "--upload-pack=x", "ext::sh"]
)
def test_a_marketplace_of_another_host_names_no_place_on_this_machine(address: str) -> None:
    from navigator_kernel.skills.formats.plugin_manifests import Elsewhere
    from navigator_kernel.skills.source.address import parse_source
    from navigator_kernel.skills.source.reading import SourceReader

    for market in ("acme/market", "https://example.org/market.zip", "npm:market"):
        far = parse_source(market, base=Path("/"))
        reader = SourceReader(source=far, tree=None, elsewhere={"x": Elsewhere(address)})  # type: ignore[arg-type]  # it reads no tree
        with pytest.raises((Refused, UsageProblem)):
            reader.place_of("x")


def test_a_plugin_of_a_marketplace_of_claude_code_is_named_like_there(
    project: Any, market: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    known = home / ".claude" / "plugins" / "known_marketplaces.json"
    known.parent.mkdir(parents=True)
    known.write_text(json.dumps({"acme": {"source": {"source": "git", "url": market}}, "odd": {"source": 1}}))
    monkeypatch.setenv("HOME", str(home))
    assert [marketplace(name) for name in ("acme", "odd", "none")] == [market, "", ""]
    there = replace(project, lifecycle=with_fields(project.lifecycle, marketplace=marketplace))
    assert names_of(there.run("install", source="tools@acme")) == ["fold", "pack"]
    assert names_of(there.run("install", source="own@acme", skill="greet")) == ["greet"]
    with pytest.raises(UsageProblem, match="none"):
        there.run("install", source="own@none")
