"""Skills of other agents and of plugins: what the router finds, every command knows, and nothing of it runs unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, below, place_in, type_a
from skill_repositories import skill_text
from tables import table

PLACES, ALSO = list(table(__file__, "PLACES")), list(table(__file__, "ALSO"))


def put(place: Path, home: Path, files: dict[str, str]) -> Place:
    """A project with these files, whose names begin with `project/` or `home/`."""
    here = place_in(place)
    here.write({name.removeprefix("project/"): text for name, text in files.items() if name.startswith("project/")})
    Place(root=home).write({name.removeprefix("home/"): text for name, text in files.items() if name[0] == "h"})
    return here


@pytest.mark.requirement("REG-1", "LIF-1")
@pytest.mark.parametrize("folder", PLACES)
def test_each_command_knows_the_skill_that_the_router_finds(tmp_path: Path, home: Path, folder: str) -> None:
    text = skill_text("ada-painter", "Paints watercolours of boats at sea")
    here = put(tmp_path, home, {f"{folder}/ada-painter/SKILL.md": text})
    routed = here.json("route", "paint a watercolour of boats at sea")
    assert "ada-painter" in [one["name"] for one in routed["shortlist"]]
    listed = {one["name"]: one for one in here.json("skill", "list")["skills"]}
    assert listed["ada-painter"]["status"] == "unmanaged"
    assert here.json("skill", "info", "ada-painter")["description"] == "Paints watercolours of boats at sea"
    assert here.json("skill", "disable", "ada-painter")["changed"]
    here.run("ask", "paint a watercolour of boats at sea")
    assert here.json("why", "--not", "ada-painter")["why"] == "ada-painter is disabled"
    assert here.json("skill", "enable", "ada-painter")["changed"]
    if not folder.startswith("project/.agents"):
        refused = here.run("skill", "uninstall", "ada-painter")
        assert (refused.code, "was not installed by navigator" in refused.err) == (3, True)


@pytest.mark.requirement("X-43")
@pytest.mark.parametrize("folder", ["project/.github/skills", PLACES[-1]])
def test_a_command_that_a_host_or_a_plugin_brings_waits_for_a_yes(tmp_path: Path, home: Path, folder: str) -> None:
    script = "import json\nprint(json.dumps({'ran': True}))\n"
    here = put(tmp_path, home, below(f"{folder}/ada-counter", type_a("ada-counter", script)))
    assert here.run("ask", "/ada-counter").code == 9
    here.said("skill", "trust", "ada-counter")
    assert "ran: true" in here.said("ask", "/ada-counter")


def test_a_skill_of_a_plugin_has_the_name_that_claude_code_gives_it(tmp_path: Path, home: Path) -> None:
    text = skill_text("ada-painter", "Paints watercolours of boats at sea")
    here = put(tmp_path, home, {f"{PLACES[-1]}/ada-painter/SKILL.md": text})
    assert here.json("skill", "info", "paint:ada-painter")["name"] == "ada-painter"
    assert here.json("skill", "disable", "paint:ada-painter")["name"] == "ada-painter"
    assert here.json("skill", "enable", "Paint:Ada-Painter")["name"] == "ada-painter"
    for message in ("/paint:ada-painter a boat", "paint:ada-painter"):
        assert here.json("route", message)["entity"] == "ada-painter"
    assert here.json("route", "/paint:ada-printer a boat")["kind"] == "clarify"


def test_the_folders_of_all_hosts_are_known(tmp_path: Path, home: Path) -> None:
    files = {f"{folder}/ada-{at}/SKILL.md": skill_text(f"ada-{at}", "Paints boats") for at, folder in enumerate(ALSO)}
    here = put(tmp_path, home, files)
    status = {one["name"]: one["status"] for one in here.json("skill", "list")["skills"]}
    assert [status.get(f"ada-{at}") for at in range(len(ALSO))] == ["unmanaged"] * len(ALSO)


def test_the_environment_names_the_folder_of_a_host(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, name in enumerate(("CODEX_HOME", "COPILOT_HOME", "QWEN_HOME", "KIMI_CODE_HOME", "XDG_CONFIG_HOME")):
        folder = tmp_path / name / ("opencode" if name.startswith("XDG") else "")
        Place(root=folder).write({f"skills/ada-{at}/SKILL.md": skill_text(f"ada-{at}", "Paints boats")})
        monkeypatch.setenv(name, str(tmp_path / name))
    names = [one["name"] for one in place_in(tmp_path).json("skill", "list")["skills"]]
    assert {f"ada-{at}" for at in range(5)} <= set(names)


def test_the_same_skill_in_several_folders_is_listed_once_and_the_projects_own_comes_first(
    tmp_path: Path, home: Path
) -> None:
    text = skill_text("ada-painter", "Paints watercolours of boats at sea")
    folders = ("project/.claude/skills", *PLACES, *ALSO)
    here = put(tmp_path, home, {f"{folder}/ada-painter/SKILL.md": text for folder in folders})
    rows = [one for one in here.json("skill", "list")["skills"] if one["name"] == "ada-painter"]
    assert [one["path"] for one in rows] == [".claude/skills/ada-painter"]


def test_a_plugin_that_is_switched_off_in_codex_is_left_out(tmp_path: Path, home: Path) -> None:
    text = skill_text("ada-painter", "Paints watercolours of boats at sea")
    cache = "home/.codex/plugins/cache/market/paint/1.0.0"
    settings = '[plugins."paint@market"]\nenabled = false\n'
    here = put(tmp_path, home, {f"{cache}/skills/ada-painter/SKILL.md": text, "home/.codex/config.toml": settings})
    assert here.run("skill", "info", "ada-painter").code == 4
