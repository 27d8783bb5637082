"""bin/skill_manager.py: from a real git repository into a project, and the message for every outcome."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cli.support import SKILL_MANAGER, Place, below, place_in, type_a
from navigator_kernel.config.settings import user_state
from skill_repositories import git, make_repo, skill_text
from tables import cases

pytestmark = pytest.mark.sample(1)

STEERING = "reads red\u200b tables \u202egnp"  # with an escape sequence, the whole skill would be refused


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def manager(here: Place) -> Place:
    """The same project, with commands given to bin/skill_manager.py."""
    return replace(here, program=SKILL_MANAGER)


def ran(place: Place) -> bool:
    """Whether the skill called tool has made its file since the last call."""
    found = list(place.root.glob("mybox/workspace/*/ran"))
    for path in found:
        path.unlink()
    return bool(found)


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    script = "import pathlib; pathlib.Path('ran').write_text('x'); print('ran')\n"
    files = {
        "skills/alpha/SKILL.md": skill_text("alpha", "reads red tables"),
        "skills/beta/SKILL.md": skill_text("beta", "draws charts"),
        **below("skills/tool", type_a("tool", script)),
    }
    return make_repo(tmp_path, files)


@pytest.fixture
def source(repo: Path) -> str:
    return f"file://{repo}"


def names(document: Any) -> set[str]:
    """The installed skills that did not come with the release."""
    return {one["name"] for one in document["skills"] if one["status"] != "shipped"}


def install(manager: Place, source: str, *skills: str, more: Sequence[str] = ()) -> None:
    manager.said("install", source, *(word for name in skills for word in ("--skill", name)), *more)


@pytest.mark.wide
@pytest.mark.requirement("LIF-1")
def test_info_lists_the_skills_of_a_repository(manager: Place, source: str) -> None:
    assert all(name in manager.said("info", source) for name in ("alpha", "beta", "tool"))
    assert {one["name"] for one in manager.json("info", source)["skills"]} == {"alpha", "beta", "tool"}


@pytest.mark.requirement("LIF-2")
def test_install_brings_the_named_skill_and_no_other(manager: Place, source: str, repo: Path) -> None:
    assert manager.said("install", source, "--skill", "alpha").startswith("installed alpha (")
    assert (manager.root / ".claude/skills/alpha/SKILL.md").read_bytes() == (
        repo / "skills/alpha/SKILL.md"
    ).read_bytes()
    assert names(manager.json("list")) == {"alpha"}


@pytest.mark.requirement("LIF-1")
def test_the_hint_of_info_quotes_a_source_for_a_shell(here: Place, source: str) -> None:
    line = f"git clone {source} ; rm -rf x"
    assert f"navigator skill install '{line}' --skill NAME" in here.run("info", line).err


def test_a_repository_without_skills_says_so(manager: Place, tmp_path: Path) -> None:
    bare = make_repo(tmp_path, {"README.md": "nothing\n"}, name="bare")
    assert manager.run("install", f"file://{bare}").code == 4


def test_install_as_json_names_commit_and_digest(manager: Place, source: str, repo: Path) -> None:
    told = manager.json("install", source, "--skill", "alpha")
    assert told["commit"] == git(repo, "rev-parse", "HEAD").strip()
    assert (told["changed"], told["skills"][0]["name"]) == (True, "alpha")
    assert told["skills"][0]["digest"].startswith("sha256:")


@pytest.mark.requirement("LIF-2")
def test_several_skills_are_installed_by_one_command(manager: Place, source: str) -> None:
    out = manager.said("install", source, "--skill", "alpha", "--skill", "beta")
    *each, summary = out.splitlines()
    assert [line.split("(")[0] for line in each] == ["installed alpha ", "installed beta "]
    assert summary.startswith("2 installed in ")
    assert names(manager.json("list")) == {"alpha", "beta"}


def test_all_installs_every_skill(manager: Place, source: str) -> None:
    install(manager, source, more=["--all"])
    assert names(manager.json("list")) == {"alpha", "beta", "tool"}


@pytest.mark.wide
def test_a_second_install_says_that_it_is_there_already(manager: Place, source: str) -> None:
    install(manager, source, "alpha")
    before = manager.files()
    assert manager.said("install", source, "--skill", "alpha").startswith("already there alpha")
    assert manager.json("install", source, "--skill", "alpha")["changed"] is False
    assert manager.files() == before


@pytest.mark.requirement("LIF-13")
def test_install_writes_the_database(manager: Place, source: str) -> None:
    install(manager, source, "alpha")
    held = json.loads((manager.root / ".claude/skills/skills.db").read_text("utf-8"))
    rows = [row for table in held.values() for row in table.values()]
    assert [row["name"] for row in rows] == ["alpha"]


@pytest.mark.requirement("LIF-14")
def test_info_adds_what_it_saw_to_the_mapping(manager: Place, source: str) -> None:
    manager.said("info", source)
    page = (user_state() / "skills-mapping.md").read_text("utf-8")
    assert not (manager.root / "docs").exists()
    assert all(f"`{name}`" in page for name in ("alpha", "beta", "tool"))
    assert source in page


@pytest.mark.requirement("LIF-4")
def test_list_shows_installed_and_shipped_skills(manager: Place, source: str) -> None:
    install(manager, source, "beta")
    out = manager.said("list")
    assert all(word in out for word in ("beta", "draws charts", "managed", "word-count", "shipped"))
    assert {"beta", "word-count"} <= {one["name"] for one in manager.json("list")["skills"]}


@pytest.mark.wide
@pytest.mark.requirement("LIF-3")
def test_search_finds_an_installed_skill_by_a_word_of_its_description(manager: Place, source: str) -> None:
    install(manager, source, more=["--all"])
    assert "beta" in manager.said("search", "charts").splitlines()[1]
    assert [one["name"] for one in manager.json("search", "charts")["skills"]] == ["beta"]


@pytest.mark.requirement("LIF-3")
def test_a_search_without_results_points_to_the_mapping_page(manager: Place) -> None:
    done = manager.run("search", "no-such-word-anywhere")
    assert (done.code, "docs/skills-mapping.md" in done.err) == (0, True)


@pytest.mark.wide
def test_search_shows_as_many_as_asked_for(manager: Place, source: str) -> None:
    install(manager, source, more=["--all"])
    found = manager.json("search", "a", "--limit", "1")
    assert len(found["skills"]) == 1
    assert found["count"] > 1


def test_info_of_an_installed_skill_shows_its_source(manager: Place, source: str) -> None:
    install(manager, source, "beta")
    assert manager.json("info", "beta")["receipt"]["source"] == source
    assert source in manager.said("info", "beta")


@pytest.mark.requirement("LIF-5")
def test_uninstall_removes_the_folder_and_its_records(manager: Place, source: str) -> None:
    install(manager, source, "alpha", "beta")
    assert manager.said("uninstall", "alpha") == "uninstalled alpha\n"
    assert names(manager.json("list")) == {"beta"}
    assert not (manager.root / ".claude/skills/alpha").exists()
    assert "alpha" not in (manager.root / ".claude/skills/skills.db").read_text("utf-8")


def test_uninstall_takes_several_names_and_json(manager: Place, source: str) -> None:
    install(manager, source, "alpha", "beta")
    assert len(manager.json("uninstall", "alpha", "beta")["skills"]) == 2
    assert names(manager.json("list")) == set()


@pytest.mark.wide
@pytest.mark.requirement("LIF-6")
def test_no_command_needs_another_one_before_it(manager: Place, source: str) -> None:
    done = [manager.run(*words).code for words in (["list"], ["search", "x"], ["install", source, "--skill", "beta"])]
    assert done == [0, 0, 0]


def test_a_skill_of_the_user_level_is_the_persons_and_not_the_projects(
    manager: Place, source: str, home: Path, tmp_path: Path
) -> None:
    install(manager, source, "beta", more=["--user"])
    assert (home / ".claude/skills/beta/SKILL.md").is_file()
    assert not (manager.root / ".claude").exists()
    assert names(place_in(tmp_path / "other", program=SKILL_MANAGER).json("list")) == {"beta"}
    manager.said("uninstall", "beta", "--user")
    assert names(manager.json("list", "--user")) == set()


@cases("words, code", lists=True, ids=lambda value: " ".join(value) if isinstance(value, list) else str(value))
def test_a_failed_command_has_its_exit_code_and_a_hint(manager: Place, words: list[str], code: int) -> None:
    done = manager.run(*words)
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("error: ") and "\nhint: " in done.err
    assert manager.json(*words)["exit_code"] == code


@pytest.mark.wide
def test_a_wrong_skill_name_is_answered_with_the_nearest_ones(manager: Place, source: str) -> None:
    done = manager.run("install", source, "--skill", "alpa")
    assert (done.code, "alpha" in done.err) == (4, True)
    assert "alpha" in manager.json("install", source, "--skill", "alpa")["error"]["suggestions"]
    assert not (manager.root / ".claude/skills/alpha").exists()


def test_one_wrong_name_among_several_is_named_and_the_others_are_installed(manager: Place, source: str) -> None:
    done = manager.run("install", source, "--skill", "alpha", "--skill", "gamma")
    assert (done.code, done.err) == (1, "skipped gamma: no skill here is called 'gamma'\n")
    assert names(manager.json("list")) == {"alpha"}


@pytest.mark.requirement("LIF-13")
@pytest.mark.parametrize("words", [["install", "SOURCE", "--skill", "beta"], ["uninstall", "alpha"]], ids=str)
@pytest.mark.parametrize("damage", [b"{ not json", b"\x00\xff", b"[]", b""], ids=["text", "bytes", "list", "empty"])
def test_a_damaged_database_is_reported_and_not_touched(
    manager: Place, source: str, words: list[str], damage: bytes
) -> None:
    install(manager, source, "alpha")
    (manager.root / ".claude/skills/skills.db").write_bytes(damage)
    before = manager.files()
    done = manager.run(*(source if word == "SOURCE" else word for word in words))
    assert (done.code, "skills.db" in done.err, "doctor --repair" in done.err) == (6, True, True)
    assert manager.files() == before


@pytest.mark.requirement("LIF-13")
def test_doctor_names_a_damaged_or_missing_database_and_repairs_it_when_asked(
    here: Place, manager: Place, source: str
) -> None:
    install(manager, source, "alpha")
    database = here.root / ".claude/skills/skills.db"
    sound = database.read_bytes()
    database.write_text("{ not json")
    done = here.run("doctor")
    assert (done.code, "skills.db" in done.out, "doctor --repair" in done.out) == (1, True, True)
    assert database.read_text() == "{ not json"
    assert "skills.db" in here.said("doctor", "--repair")
    assert database.read_bytes() == sound
    database.unlink()
    here.said("doctor", "--repair")
    assert database.read_bytes() == sound
    shutil.rmtree(here.root / ".claude/skills/alpha")
    assert names(manager.json("list")) == set()


@pytest.mark.wide
@pytest.mark.requirement("REG-4")
def test_a_disabled_skill_is_not_offered_until_it_is_enabled(here: Place, manager: Place) -> None:
    message = "word count of this: hello world"
    assert here.json("route", message)["entity"] == "word-count"
    assert manager.said("disable", "word-count") == "disabled word-count\n"
    told = here.json("route", message)
    assert "word-count" not in {told["entity"], *(one["name"] for one in told["shortlist"])}
    assert here.run("ask", "/word-count hello").code == 4
    assert manager.said("enable", "word-count") == "enabled word-count\n"
    assert here.json("route", message)["entity"] == "word-count"


def test_a_disabled_skill_is_still_listed_as_disabled(manager: Place) -> None:
    manager.said("disable", "word-count")
    (found,) = [one for one in manager.json("list")["skills"] if one["name"] == "word-count"]
    assert found["enabled"] is False


@pytest.mark.wide
@pytest.mark.requirement("SAF-1")
def test_a_skill_installed_by_the_person_runs_while_it_is_unchanged_and_trusted(
    here: Place, manager: Place, source: str
) -> None:
    install(manager, source, "tool")
    installed = [here.run("ask", "/tool x").code, ran(here)]
    script = here.root / ".claude/skills/tool/run.py"
    kept = script.read_bytes()
    script.write_bytes(kept + b"#")
    changed = [here.run("ask", "/tool x").code, ran(here)]
    script.write_bytes(kept)
    restored = [here.run("ask", "/tool x").code, ran(here)]
    manager.said("distrust", "tool")
    distrusted = [here.run("ask", "/tool x").code, ran(here)]
    assert (installed, changed, restored, distrusted) == ([0, True], [6, False], [0, True], [9, False])


def test_trust_is_taken_back_even_where_the_skill_is_gone(manager: Place, source: str) -> None:
    install(manager, source, "tool")
    manager.said("trust", "tool")
    manager.said("uninstall", "tool")
    kinds = [subject.partition(":")[0] for subject in manager.json("distrust", "tool")["distrusted"]]
    assert kinds == ["installed", "skill", "type_a"]
    assert manager.json("distrust", "tool")["distrusted"] == []


@pytest.mark.wide
def test_trust_in_a_skill_does_not_apply_to_its_namesake_in_another_project(
    manager: Place, source: str, tmp_path: Path
) -> None:
    install(manager, source, "tool")
    manager.said("trust", "tool")
    other = place_in(tmp_path / "other")
    other.write(below(".claude/skills/tool", type_a("tool", "print('another')\n")))
    assert other.run("ask", "/tool x").code == 9


def test_verify_names_a_changed_file(manager: Place, source: str) -> None:
    install(manager, source, "tool")
    manager.said("verify")
    (manager.root / ".claude/skills/tool/run.py").write_text("print('other')\n")
    done = manager.run("verify")
    assert (done.code, "tool" in done.err) == (6, True)
    assert manager.json("verify", "tool")["error"]["skills"][0]["modified"] == ["run.py"]


@pytest.mark.parametrize("words", [["list"], ["search", "tables"], ["info", "alpha"]], ids=lambda words: words[0])
def test_foreign_text_cannot_steer_the_terminal(manager: Place, words: list[str]) -> None:
    manager.write({".claude/skills/alpha/SKILL.md": skill_text("alpha", STEERING)})
    done = manager.run(*words)
    assert "reads red tables" in done.out
    assert not set(done.out + done.err) & {"\x1b", "\x07", "\u200b", "\u202e"}


@pytest.mark.wide
def test_a_repository_cannot_steer_the_terminal_before_it_is_installed(manager: Place, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"skills/alpha/SKILL.md": skill_text("alpha", STEERING)}, name="steering")
    source = f"file://{repo}"
    done = manager.run("info", source)
    assert not set(done.out + done.err + manager.run("info", source, "--json").out) & {
        "\x1b",
        "\x07",
        "\u200b",
        "\u202e",
    }
