"""The short forms of the skill commands, and the hint for a word that resembles a command, a source or a skill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

from cli.support import Place, environment, place_in
from cli.terminals import terminal
from navigator_kernel.cli.registry import COMMANDS, EVERYDAY, navigator
from person_state import state_of
from skill_repositories import make_repo, skill_text
from tables import cases

pytestmark = pytest.mark.sample(1)

SHORT = {"install": "install", "add": "install", "remove": "uninstall", "uninstall": "uninstall"}
SHORT |= {
    name: name for name in ("update", "list", "search", "info", "outdated", "verify", "rollback", "enable", "disable")
}


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    files = {f"skills/{name}/SKILL.md": skill_text(name, f"does {name}") for name in ("alpha-one", "beta-two")}
    return make_repo(tmp_path, files, name="repository").as_uri()


@pytest.mark.parametrize("word", SHORT)
def test_a_short_form_is_the_skill_command(word: str) -> None:
    context = click.Context(navigator)
    skills = navigator.get_command(context, "skill")
    assert isinstance(skills, click.Group)
    assert navigator.get_command(context, word) is skills.get_command(context, SHORT[word])
    assert {name: own for name, (own, _) in EVERYDAY.items()} == SHORT


@pytest.mark.requirement("LIF-2", "LIF-3", "LIF-4", "LIF-5")
def test_the_short_forms_install_find_update_and_remove(here: Place, source: str) -> None:
    assert here.said("add", source, "--skill", "alpha-one").startswith("installed alpha-one")
    assert here.json("install", source, "--skill", "beta-two")["counts"]["installed"] == 1
    assert {"alpha-one", "beta-two"} <= {one["name"] for one in here.json("list")["skills"]}
    assert "alpha-one" in here.said("search", "alpha")
    assert [one["action"] for one in here.json("update", "alpha-one")["skills"]] == ["kept"]
    assert [one["state"] for one in here.json("outdated")["skills"]] == ["current", "current"]
    assert (here.json("verify")["count"], here.json("info", "alpha-one")["name"]) == (2, "alpha-one")
    assert here.said("rollback", "--dry-run") == "would remove beta-two\nwould keep alpha-one\n"
    assert here.said("remove", "alpha-one") == "uninstalled alpha-one\n"
    assert here.said("uninstall", "beta-two") == "uninstalled beta-two\n"


@pytest.mark.parametrize("columns", [60, 80, 0], ids=["narrow", "usual", "pipe"])
def test_a_disabled_skill_is_listed_and_marked(here: Place, source: str, columns: int) -> None:
    here.said("install", source, "--all")
    here.said("disable", "alpha-one")
    if columns:
        with terminal(here, "list", columns=columns) as screen:
            shown = screen.rest()
    else:
        shown = here.said("list")
    marked = [line.split()[0] for line in shown.splitlines() if "disabled" in line]
    on = {one["name"]: one["enabled"] for one in here.json("list")["skills"]}
    assert (marked, on["alpha-one"], on["beta-two"]) == (["alpha-one"], False, True)
    here.said("enable", "alpha-one")
    assert "disabled" not in here.said("list")


@pytest.mark.parametrize("words", [("install",), ("remove", "nope"), ("list", "--target", "x"), ("update", "nope")])
def test_a_short_form_fails_as_the_long_form_does(here: Place, words: tuple[str, ...]) -> None:
    short, long = here.json(*words), here.json("skill", EVERYDAY[words[0]][0], *words[1:])
    assert short["exit_code"] == long["exit_code"] != 0
    assert short["error"]["msg"] == long["error"]["msg"]


def test_the_help_has_a_heading_for_them_before_all_other_commands(here: Place) -> None:
    everyday, _, others = here.said("--help").partition("Everyday commands:\n")[2].partition("\nCommands:\n")
    assert [line.split()[0] for line in everyday.splitlines() if line] == list(EVERYDAY)
    assert [name for name in COMMANDS if f"  {name} " not in others] == []


def test_the_help_imports_no_command(here: Place) -> None:
    code = "import sys; from navigator_kernel.cli.registry import invoke; invoke(['--help']); print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=here.root, env=environment(), capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith(("navigator_kernel.cli.skill", "navigator_kernel.skills"))] == []
    assert "prompt_toolkit" not in loaded


@pytest.mark.parametrize("verb", ["info", "skill scan"])
@pytest.mark.parametrize(("name", "hint"), [("nosuch", "skill list shows"), ("word-cout", "did you mean word-count?")])
def test_a_plain_name_that_no_skill_has_is_not_found(here: Place, verb: str, name: str, hint: str) -> None:
    done = here.run(*verb.split(), name)
    assert (done.code, done.err.startswith(f"error: no skill called '{name}' is installed\n"), hint in done.err) == (
        4,
        True,
        True,
    )


def test_info_also_knows_the_names_of_skills_that_could_be_installed(here: Place) -> None:
    error = here.json("info", "pptxx")["error"]
    assert (error["exit_code"], "pptx" in error["suggestions"]) == (4, True)
    assert "owner/repo" in error["hint"]


@cases("words, hint")
def test_a_word_that_is_nearly_a_command_gets_a_hint(here: Place, words: tuple[str, ...], hint: str) -> None:
    done = here.run(*words)
    assert done.code == 2
    assert f"hint: {hint}" in done.err


@pytest.mark.requirement("LIF-3")
def test_search_finds_skills_with_the_router(here: Place) -> None:
    texts = {
        "xlsx": "description: Use it when a spreadsheet is the main file\n---\nMake an Excel file with formulas.\n",
        "pptx": "description: Use it when slides or a deck are made\n---\nMake the deck.\n",
        "code-review-excellence": "description: Reviews code\n---\nGive feedback.\n",
    }
    here.write({f".claude/skills/{name}/SKILL.md": f"---\nname: {name}\n{text}" for name, text in texts.items()})
    found = {query: here.json("search", query)["skills"] for query in ("excel", "幻灯片")}
    assert found["幻灯片"][0]["name"] == "pptx"
    reasons = {one["name"]: one["reason"] for one in found["excel"]}
    assert reasons["xlsx"] == "router"
    assert list(reasons).index("xlsx") < list(reasons).index("code-review-excellence")


@pytest.mark.requirement("LIF-3")
def test_a_search_has_its_score_where_the_index_cannot_be_written(here: Place) -> None:
    here.write({".claude/skills/alpha/SKILL.md": skill_text("alpha", "draws charts")})
    (state_of(here.root) / "index").write_text("in the way")
    found = here.json("search", "charts")["skills"]
    assert [(one["name"], one["score"]) for one in found if one["name"] == "alpha"] == [("alpha", 50)]


@pytest.mark.requirement("LIF-3")
def test_a_search_of_one_place_finds_what_is_there(here: Place) -> None:
    text = "---\nname: xlsx\ndescription: Use it for spreadsheets\n---\nMake an Excel file.\n"
    here.write({".agents/skills/xlsx/SKILL.md": text})
    found = {target: here.json("search", "excel", "--target", target)["skills"] for target in ("agents", "claude")}
    assert [one["name"] for one in found["agents"]] == ["xlsx"]
    assert "xlsx" not in [one["name"] for one in found["claude"]]


@pytest.mark.wide
@cases("words, near, code")
def test_a_source_or_skill_that_is_nearly_known_gets_a_hint(
    here: Place, source: str, words: tuple[str, ...], near: str, code: int
) -> None:
    here.said("install", source, "--skill", "alpha-one")
    done = here.run(*words)
    assert (done.code, f"hint: did you mean {near}?" in done.err) == (code, True), done.err
    assert near in here.json(*words)["error"]["suggestions"]


def test_a_word_that_is_near_to_nothing_gets_the_forms_of_a_source(here: Place) -> None:
    assert here.run("install", "zzzzqqqq").err.splitlines()[1].startswith("hint: owner/repo, ")
