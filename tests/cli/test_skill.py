"""`bin/skill_manager.py` and `navigator skill`, over a real git repository."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from skill_repositories import snapshot
from tables import cases

pytestmark = pytest.mark.sample(1)

MANAGER = "skill_manager.py"


@pytest.fixture
def installed(run: Any, repo: Path) -> Path:
    done = run("install", f"file://{repo}", "--skill", "alpha-one", script=MANAGER)
    assert done.code == 0, done.err
    return repo


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize("script", [MANAGER, ""])
def test_a_skill_of_a_repository_is_installed(run: Any, root: Path, repo: Path, script: str) -> None:
    done = run(*(() if script else ("skill",)), "install", f"file://{repo}", "--skill", "alpha-one", script=script)
    assert done.code == 0, done.err
    assert "alpha-one" in done.out
    assert (root / ".claude" / "skills" / "alpha-one" / "notes.md").read_text() == "notes\n"
    assert not (root / ".claude" / "skills" / "beta-two").exists()


@pytest.mark.requirement("LIF-2")
def test_an_install_reports_its_result_as_json(run: Any, repo: Path) -> None:
    told = run("install", f"file://{repo}", "--skill", "alpha-one", "--json", script=MANAGER).document()
    assert (told["changed"], [one["name"] for one in told["skills"]]) == (True, ["alpha-one"])
    assert len(told["commit"]) == 40


@pytest.mark.requirement("LIF-2")
def test_several_skills_are_installed_at_once(run: Any, root: Path, repo: Path) -> None:
    done = run("install", f"file://{repo}", "--skill", "alpha-one", "--skill", "beta-two", script=MANAGER)
    assert done.code == 0
    assert {"alpha-one", "beta-two"} <= {path.name for path in (root / ".claude" / "skills").iterdir()}


@pytest.mark.requirement("LIF-4")
def test_an_installed_skill_is_listed(run: Any, installed: Path) -> None:
    done = run("list", script=MANAGER)
    assert done.code == 0
    assert any(line.split()[0] == "alpha-one" for line in done.out.splitlines())


@pytest.mark.requirement("LIF-4")
def test_a_list_is_one_json_document(run: Any, installed: Path) -> None:
    told = run("list", "--json", script=MANAGER).document()
    mine = next(one for one in told["skills"] if one["name"] == "alpha-one")
    assert (mine["description"], mine["level"]) == ("first of the two", "project")
    assert told["count"] == len(told["skills"])


@pytest.mark.requirement("LIF-3")
@pytest.mark.parametrize("words", [("alpha",), ("first", "two"), ("ALPHA-ONE",)])
def test_an_installed_skill_is_found_by_search(run: Any, installed: Path, words: tuple[str, ...]) -> None:
    done = run("search", *words, script=MANAGER)
    assert (done.code, "alpha-one" in done.out) == (0, True)


@pytest.mark.wide
@pytest.mark.requirement("LIF-3", "LIF-16")
def test_a_search_as_json_reports_score_and_reason(run: Any, installed: Path) -> None:
    told = run("search", "alpha-one", "--json", script=MANAGER).document()
    assert [(one["name"], one["score"], one["reason"]) for one in told["skills"]] == [("alpha-one", 100, "exact")]


@pytest.mark.requirement("LIF-3")
def test_a_search_that_finds_nothing_succeeds_with_nothing(run: Any, installed: Path) -> None:
    done = run("search", "zzzzqq", "--json", script=MANAGER)
    assert (done.code, done.document()["skills"]) == (0, [])


@pytest.mark.requirement("LIF-1")
def test_info_shows_the_skills_of_a_repository_without_an_install(run: Any, root: Path, repo: Path) -> None:
    done = run("info", f"file://{repo}", script=MANAGER)
    assert (done.code, "alpha-one" in done.out, "beta-two" in done.out) == (0, True, True)
    assert not (root / ".claude" / "skills" / "alpha-one").exists()


@pytest.mark.requirement("LIF-1")
def test_the_hint_of_info_quotes_a_source_for_a_shell(run: Any, repo: Path) -> None:
    line = f"git clone file://{repo} ; rm -rf x"
    assert f"navigator skill install '{line}' --skill NAME" in run("info", line).err


def test_info_of_a_repository_is_one_json_document(run: Any, repo: Path) -> None:
    told = run("info", f"file://{repo}", "--json", script=MANAGER).document()
    assert (told["count"], [one["name"] for one in told["skills"]]) == (2, ["alpha-one", "beta-two"])


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_info_shows_an_installed_skill_by_its_name(run: Any, installed: Path, form: tuple[str, ...]) -> None:
    done = run("info", "alpha-one", *form, script=MANAGER)
    assert (done.code, "first of the two" in done.out) == (0, True)


@pytest.mark.requirement("LIF-5")
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_an_installed_skill_is_uninstalled(run: Any, root: Path, installed: Path, form: tuple[str, ...]) -> None:
    done = run("uninstall", "alpha-one", *form, script=MANAGER)
    assert done.code == 0, done.err
    assert not (root / ".claude" / "skills" / "alpha-one").exists()
    assert "alpha-one" not in json.dumps(run("list", "--json", script=MANAGER).document())
    if form:
        assert done.document()["skills"][0]["name"] == "alpha-one"


@pytest.mark.parametrize("operation", ["disable", "enable"])
def test_a_skill_is_switched(run: Any, installed: Path, operation: str) -> None:
    told = run("skill", operation, "alpha-one", "--json").document()
    assert (told["name"], told["enabled"]) == ("alpha-one", operation == "enable")


@pytest.mark.requirement("REG-4")
def test_a_disabled_skill_cannot_be_called(run: Any, installed: Path) -> None:
    run("skill", "disable", "alpha-one")
    assert run("ask", "/alpha-one now").code == 4


def test_an_install_into_the_persons_own_level_leaves_the_project_alone(
    run: Any, root: Path, repo: Path, home: Path
) -> None:
    assert run("skill", "install", f"file://{repo}", "--skill", "alpha-one", "--user").code == 0
    assert (home / ".claude" / "skills" / "alpha-one").is_dir()
    assert not (root / ".claude").exists()


# Mistakes


@pytest.mark.parametrize("form", [(), ("--json",)])
@cases("words, code")
def test_a_mistake_has_its_exit_code_and_says_what_to_do(
    run: Any, repo: Path, words: tuple[str, ...], code: int, form: tuple[str, ...]
) -> None:
    done = run(*(word.format(repo=f"file://{repo}") for word in words), *form, script=MANAGER)
    assert done.code == code
    if form:
        told = done.document()
        assert (told["exit_code"], told["error"]["exit_code"]) == (code, code)
        assert told["error"]["msg"] and told["error"]["hint"]
        assert done.err == ""
    else:
        assert done.out == ""
        assert done.err.startswith("error: ") and "hint: " in done.err


@pytest.mark.requirement("LIF-2")
def test_a_wrong_name_comes_with_suggestions(run: Any, repo: Path) -> None:
    told = run("install", f"file://{repo}", "--skill", "alpha-on", "--json", script=MANAGER).document()
    assert told["error"]["suggestions"][0] == "alpha-one"


def test_a_repository_without_skills_says_so(run: Any, tmp_path: Path) -> None:
    from skill_repositories import make_repo

    bare = make_repo(tmp_path, {"README.md": "nothing\n"}, name="bare")
    assert run("skill", "install", f"file://{bare}").code == 4


# A damaged database


@pytest.mark.requirement("LIF-13")
@pytest.mark.parametrize("form", [(), ("--json",)])
@pytest.mark.parametrize(
    "words",
    [("skill", "install", "{repo}", "--skill", "beta-two"), ("skill", "uninstall", "alpha-one")],
    ids=["install", "uninstall"],
)
def test_a_damaged_database_is_reported_and_left_untouched(
    run: Any, root: Path, installed: Path, words: tuple[str, ...], form: tuple[str, ...]
) -> None:
    database = root / ".claude" / "skills" / "skills.db"
    database.write_text('{"_default": {"1": {"name": "alp')
    before = snapshot(root / ".claude")
    done = run(*(word.format(repo=f"file://{installed}") for word in words), *form)
    assert done.code == 6
    assert "skills.db" in done.out + done.err and "repair" in done.out + done.err
    assert snapshot(root / ".claude") == before


@pytest.mark.wide
@pytest.mark.requirement("LIF-13")
def test_doctor_finds_a_damaged_database_and_repair_rebuilds_it(run: Any, root: Path, installed: Path) -> None:
    database = root / ".claude" / "skills" / "skills.db"
    good = json.loads(database.read_text())
    database.write_text("{")
    found = run("doctor", "--json")
    assert (found.code, "damaged" in {one["state"] for one in found.document()["findings"]}) == (1, True)
    assert database.read_text() == "{"
    fixed = run("doctor", "--repair", "--json")
    assert fixed.code == 0
    assert any("skills.db" in name for name in fixed.document()["repaired"])
    names = [row["name"] for row in json.loads(database.read_text())["_default"].values()]
    assert names == [row["name"] for row in good["_default"].values()] == ["alpha-one"]
    assert run("doctor").code == 0


@pytest.mark.requirement("LIF-13")
def test_a_deleted_database_is_rebuilt(run: Any, root: Path, installed: Path) -> None:
    (root / ".claude" / "skills" / "skills.db").unlink()
    assert run("doctor", "--repair").code == 0
    assert json.loads((root / ".claude" / "skills" / "skills.db").read_text())["_default"]


def test_a_changed_file_is_named_by_verify(run: Any, root: Path, installed: Path) -> None:
    assert run("skill", "verify").code == 0
    (root / ".claude" / "skills" / "alpha-one" / "notes.md").write_text("changed\n")
    done = run("skill", "verify", "--json")
    assert (done.code, "notes.md" in done.out) == (6, True)


def test_a_skill_that_was_removed_by_hand_causes_no_failure(run: Any, root: Path, installed: Path) -> None:
    shutil.rmtree(root / ".claude" / "skills" / "alpha-one")
    assert run("skill", "list").code == 0
