"""Skills that the npm package `skills` locked are installed and locked by the kernel."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import Damaged, NotFound
from navigator_kernel.skills.install.import_lock import foreign_hash
from skill_repositories import commit, git, make_repo, skill_text, snapshot
from tables import cases

pytestmark = pytest.mark.sample(1)

# Version 1.5.18 of the package wrote HASHES for a repository with these files.
LOCKED = {
    "skills/alpha/SKILL.md": skill_text("alpha"),
    "skills/alpha/scripts/Run-it.py": "print(1)\n",
    "skills/alpha/scripts/run_it.sh": "echo\n",
    "skills/alpha/LICENSE": "MIT\n",
    "skills/alpha/a.b/x": "1",
    "skills/alpha/a-b/x": "2",
    "skills/alpha/A/x": "3",
    "beta/SKILL.md": skill_text("beta"),
}
HASHES = {
    "alpha": "5bba91ac1544984593f9a7dc8593cb44297c694af1d6d911918f4d15f14561aa",
    "beta": "f7a456e42b14004ed05c11fe4c0c86350e9d0bad15b658ded13cc45671937a13",
}
PATHS = {"alpha": "skills/alpha/SKILL.md", "beta": "beta/SKILL.md"}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, LOCKED)


def entry(repo: Path, name: str, **more: Any) -> dict[str, Any]:
    url = f"file://{repo}"
    base = {"source": url, "sourceUrl": url, "sourceType": "git", "skillPath": PATHS.get(name, "")}
    return {**base, **more}


def write_lock(project: Any, skills: dict[str, Any], version: object = 1) -> Path:
    path: Path = project.root / "skills-lock.json"
    path.write_text(json.dumps({"version": version, "skills": skills}))
    return path


def both(repo: Path) -> dict[str, Any]:
    return {name: entry(repo, name) for name in ("alpha", "beta")}


@pytest.mark.parametrize(("name", "folder"), [("alpha", "skills/alpha/"), ("beta", "beta/")])
def test_the_hash_is_the_one_that_the_package_computes(name: str, folder: str) -> None:
    held = {path.removeprefix(folder): text.encode() for path, text in LOCKED.items() if path.startswith(folder)}
    assert foreign_hash(held) == HASHES[name]


def test_files_that_the_package_leaves_out_are_not_hashed() -> None:
    held = {"SKILL.md": b"x"}
    assert foreign_hash({**held, ".git/config": b"", "a/node_modules/b.js": b""}) == foreign_hash(held)


def test_names_whose_order_we_do_not_know_are_not_hashed() -> None:
    assert foreign_hash({"SKILL.md": b"x", "名.md": b"y"}) is None


def test_every_entry_is_installed_and_locked_with_its_commit(project: Any, repo: Path) -> None:
    file = write_lock(project, both(repo))
    answer = project.run("import-lock")
    assert [one["name"] for one in answer["imported"]] == ["alpha", "beta"]
    assert (answer["skipped"], answer["changed"], answer["exit_code"]) == ([], True, 0)
    lock = json.loads((project.root / "skills.lock.json").read_text())["skills"]
    head = git(repo, "rev-parse", "HEAD").strip()
    assert {name: one["commit"] for name, one in lock.items()} == {"alpha": head, "beta": head}
    assert answer["file"] == str(file)


def test_the_file_of_the_other_tool_is_never_written(project: Any, repo: Path) -> None:
    file = write_lock(project, both(repo))
    before = (file.stat().st_mtime_ns, file.read_bytes())
    project.run("import-lock")
    assert (file.stat().st_mtime_ns, file.read_bytes()) == before


def test_a_second_import_changes_nothing(project: Any, repo: Path) -> None:
    write_lock(project, both(repo))
    project.run("import-lock")
    before = snapshot(project.root)
    assert project.run("import-lock")["changed"] is False
    assert snapshot(project.root) == before


@pytest.mark.wide
def test_a_dry_run_of_import_lock_gives_the_answer_of_the_import_and_writes_nothing(project: Any, repo: Path) -> None:
    lost = {"source": "x", "sourceType": "node_modules"}
    write_lock(project, {**both(repo), "gone": entry(repo, "gone", skillPath="gone/SKILL.md"), "lost": lost})
    before = snapshot(project.root)
    planned = project.run("import-lock", dry_run=True)
    assert snapshot(project.root) == before
    assert {**planned, "dry_run": False} == project.run("import-lock")


def test_a_skill_that_is_not_there_leaves_the_others(project: Any, repo: Path) -> None:
    write_lock(project, {**both(repo), "gone": entry(repo, "gone", skillPath="gone/SKILL.md")})
    answer = project.run("import-lock")
    assert [one["name"] for one in answer["imported"]] == ["alpha", "beta"]
    assert [(one["name"], one["code"]) for one in answer["skipped"]] == [("gone", "skill_not_found")]
    assert answer["exit_code"] == 1


def test_the_lock_of_a_person_is_read_too(project: Any, repo: Path, tmp_path: Path) -> None:
    more = {"skillFolderHash": "0" * 40, "installedAt": "2026-01-01T00:00:00Z", "pluginName": "tools"}
    whole = {"version": 3, "skills": {"alpha": entry(repo, "alpha", **more)}, "lastSelectedAgents": ["codex"]}
    (tmp_path / ".skill-lock.json").write_text(json.dumps(whole))
    answer = project.run("import-lock", file=str(tmp_path / ".skill-lock.json"))
    assert [(one["name"], one["notes"]) for one in answer["imported"]] == [("alpha", [])]


def test_the_skills_of_an_apm_lock_are_installed_at_its_commits(project: Any, repo: Path, tmp_path: Path) -> None:
    first = git(repo, "rev-parse", "HEAD").strip()
    commit(repo, {"beta/SKILL.md": skill_text("beta", "is newer")})
    rows = [
        {
            "repo_url": f"file://{repo}",
            "resolved_commit": first,
            "virtual_path": "beta",
            "package_type": "claude_skill",
        },
        {
            "repo_url": f"file://{repo}",
            "resolved_commit": first,
            "virtual_path": "p/x.prompt.md",
            "package_type": "file",
        },
    ]
    lock = tmp_path / "apm.lock.yaml"
    lock.write_text(json.dumps({"lockfile_version": "1", "dependencies": rows}))  # JSON is YAML
    answer = project.run("import-lock", file=str(lock))
    assert [(one["name"], one["commit"]) for one in answer["imported"]] == [("beta", first)]
    assert "file of APM" in answer["skipped"][0]["why"]


@pytest.mark.parametrize(
    "text", ["", "- 1", "lockfile_version: '9'", "a: [", "lockfile_version: '1'\ndependencies: [1, {}]"]
)
def test_an_apm_lock_that_cannot_be_used_installs_nothing(project: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "apm.lock.yaml").write_text(text)
    with suppress(Damaged):
        assert project.run("import-lock", file=str(tmp_path / "apm.lock.yaml"))["imported"] == []
    assert not project.skills.exists()


@pytest.mark.parametrize(
    ("kind", "why"),
    [("node_modules", "./node_modules/thing"), ("carrier-pigeon", "carrier-pigeon")],
)
def test_a_kind_of_source_that_is_not_read_is_skipped_with_the_reason(project: Any, kind: str, why: str) -> None:
    write_lock(project, {"one": {"source": "thing", "sourceType": kind, "computedHash": "0"}})
    answer = project.run("import-lock")
    assert why in answer["skipped"][0]["why"]
    assert (answer["changed"], answer["exit_code"]) == (False, 0)


@cases("source, code, exit_code")
def test_a_source_that_cannot_be_used_is_a_failure(
    project: Any, source: dict[str, Any], code: str, exit_code: int
) -> None:
    write_lock(project, {"one": source})
    answer = project.run("import-lock")
    assert (answer["skipped"][0]["code"], answer["exit_code"]) == (code, exit_code)


def test_files_that_are_those_that_were_locked_are_not_noted(project: Any, repo: Path) -> None:
    write_lock(project, {name: entry(repo, name, computedHash=digest) for name, digest in HASHES.items()})
    assert [one["notes"] for one in project.run("import-lock")["imported"]] == [[], []]


@pytest.mark.parametrize("dry_run", [True, False])
def test_files_that_are_not_those_that_were_locked_are_noted(project: Any, repo: Path, dry_run: bool) -> None:
    commit(repo, {"beta/more.md": "more\n"})
    write_lock(project, {name: entry(repo, name, computedHash=digest) for name, digest in HASHES.items()})
    answer = project.run("import-lock", dry_run=dry_run)
    assert [one["notes"] for one in answer["imported"]] == [[], ["changed since it was locked"]]


@pytest.mark.parametrize("whole", [True, False])
def test_a_skill_at_the_top_may_be_locked_by_its_manifest_alone(project: Any, tmp_path: Path, whole: bool) -> None:
    top = make_repo(tmp_path, {"SKILL.md": skill_text("top"), "README.md": "read\n"}, name="top")
    held = {"SKILL.md": (top / "SKILL.md").read_bytes()}
    digest = foreign_hash({**held, "README.md": b"read\n"} if whole else held)
    write_lock(project, {"top": entry(top, "top", skillPath="SKILL.md", computedHash=digest)})
    (one,) = project.run("import-lock")["imported"]
    assert (one["name"], one["notes"]) == ("top", [])


def test_the_ref_that_was_locked_is_the_one_that_is_installed(project: Any, repo: Path) -> None:
    git(repo, "tag", "v1")
    first = git(repo, "rev-parse", "HEAD").strip()
    commit(repo, {"beta/SKILL.md": skill_text("beta", "newer")})
    write_lock(project, {"beta": entry(repo, "beta", ref="v1")})
    (one,) = project.run("import-lock")["imported"]
    assert (one["ref"], one["commit"]) == ("v1", first)


def test_a_path_of_one_word_is_not_another_skills_name(project: Any, tmp_path: Path) -> None:
    twins = {"beta/SKILL.md": skill_text("beta", "right"), "old/beta/SKILL.md": skill_text("beta", "wrong")}
    write_lock(project, {"beta": entry(make_repo(tmp_path, twins, name="twins"), "beta")})
    assert project.run("import-lock")["exit_code"] == 0
    assert "right" in (project.skills / "beta" / "SKILL.md").read_text()


def test_a_local_folder_without_a_path_is_searched_by_name(project: Any, repo: Path) -> None:
    write_lock(project, {name: {"source": str(repo), "sourceType": "local"} for name in HASHES})
    answer = project.run("import-lock")
    assert [(one["name"], one["commit"]) for one in answer["imported"]] == [("alpha", ""), ("beta", "")]


def test_two_entries_of_one_skill_are_one_skill(project: Any, repo: Path) -> None:
    write_lock(project, {"beta": entry(repo, "beta"), "beta-again": entry(repo, "beta")})
    answer = project.run("import-lock")
    told = [(one["entry"], one["name"], one["notes"]) for one in answer["imported"]]
    assert told == [("beta", "beta", []), ("beta-again", "beta", ["it is called 'beta' now"])]


@pytest.mark.parametrize("dry_run", [True, False])
def test_the_second_of_two_skills_with_the_same_name_is_refused(
    project: Any, repo: Path, tmp_path: Path, dry_run: bool
) -> None:
    other = make_repo(tmp_path, {"beta/SKILL.md": skill_text("beta", "other")}, name="other")
    write_lock(project, {"beta": entry(repo, "beta"), "beta-too": entry(other, "beta")})
    answer = project.run("import-lock", dry_run=dry_run)
    assert [one["entry"] for one in answer["imported"]] == ["beta"]
    assert [(one["name"], one["code"]) for one in answer["skipped"]] == [("beta-too", "refused")]


def test_a_folder_that_the_other_tool_wrote_is_not_replaced(project: Any, repo: Path) -> None:
    (project.skills / "beta").mkdir(parents=True)
    (project.skills / "beta" / "SKILL.md").write_text(skill_text("beta", "theirs"))
    write_lock(project, both(repo))
    answer = project.run("import-lock")
    assert "not installed by navigator" in answer["skipped"][0]["why"]
    assert "theirs" in (project.skills / "beta" / "SKILL.md").read_text()
    assert [one["name"] for one in answer["imported"]] == ["alpha"]


def test_a_file_that_is_named_is_read_from_there(project: Any, repo: Path, tmp_path: Path) -> None:
    write_lock(project, both(repo)).rename(tmp_path / "their.json")
    assert len(project.run("import-lock", file=str(tmp_path / "their.json"))["imported"]) == 2


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"version": 1}', '{"version": 1, "skills": []}', '{"version": 1, "skills": {"a": 1}}',
             '{"version": 2, "skills": {}}', "[" * 100_000]
)  # fmt: skip
def test_an_invalid_lock_file_is_reported_as_damaged_and_nothing_is_installed(project: Any, text: str) -> None:
    (project.root / "skills-lock.json").write_text(text)
    with pytest.raises(Damaged):
        project.run("import-lock")
    assert [path.name for path in project.root.iterdir()] == ["skills-lock.json"]


def test_without_the_file_there_is_nothing_to_import(project: Any) -> None:
    with pytest.raises(NotFound):
        project.run("import-lock")
