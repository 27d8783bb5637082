from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.clock import SystemClock
from navigator_kernel.adapters.files.writer import FolderWriter
from navigator_kernel.errors import IntegrityMismatch, Refused, SkillNotFound, UsageProblem
from navigator_kernel.skills.catalog.receipts import folder_digest
from navigator_kernel.skills.catalog.switches import read_switches
from navigator_kernel.skills.install.deps import InstallDeps
from navigator_kernel.skills.lifecycle import Lifecycle
from skill_repositories import git, make_repo, skill_text, snapshot

FILES = {
    "skills/alpha/SKILL.md": skill_text("alpha", "reads \u202etables", "license: MIT\nallowed-tools: Read, Bash\n"),
    "skills/alpha/scripts/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "draws charts", "command: python {skill_root}/draw.py\n"),
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, FILES)


@pytest.mark.requirement("LIF-1")
@pytest.mark.parametrize("partial", [True, False])
def test_info_describes_the_skills_of_a_repository_without_installing_them(
    project: Any, tmp_path: Path, partial: bool
) -> None:
    repo = make_repo(tmp_path, FILES, name="seen", partial=partial)
    answer = project.run("info", source=f"file://{repo}")
    assert (answer["count"], answer["commit"]) == (2, git(repo, "rev-parse", "HEAD").strip())
    alpha, beta = answer["skills"]
    assert (alpha["name"], alpha["description"], alpha["kind"]) == ("alpha", "reads tables", "B")
    assert (alpha["license"], alpha["tools"], alpha["scripts"]) == ("MIT", ["Read", "Bash"], ["scripts/run.py"])
    assert alpha["files"] == ["SKILL.md", "scripts/run.py"]
    assert beta["kind"] == "A"
    assert not (project.skills / "alpha").exists()


def test_info_of_a_named_skill_shows_its_size(project: Any, repo: Path) -> None:
    (alpha,) = project.run("info", source=f"file://{repo}", skill="alpha")["skills"]
    assert alpha["size"] == sum(len(FILES[f"skills/alpha/{name}"].encode()) for name in ("SKILL.md", "scripts/run.py"))


@pytest.mark.requirement("LIF-1")
def test_info_of_an_installed_skill_shows_its_receipt(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    answer = project.run("info", source="alpha")
    assert answer["receipt"]["source"] == f"file://{repo}"
    assert (answer["status"], answer["license"]) == ("managed", "MIT")
    assert answer["files"] == ["SKILL.md", "scripts/run.py"]


def test_info_says_why_a_manifest_cannot_be_used(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": "---\nname: b\n---\n"}, name="half")
    broken = project.run("info", source=f"file://{repo}")["skills"][1]
    assert broken["name"] == "b"
    assert "no description" in broken["problems"][0]


@pytest.mark.requirement("LIF-4")
def test_list_marks_managed_and_unmanaged_skills(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="beta")
    (project.skills / "mine").mkdir()
    (project.skills / "mine" / "SKILL.md").write_text(skill_text("mine"))
    answer = project.run("list")
    told = [(one["name"], one["status"], one["kind"], one["level"]) for one in answer["skills"]]
    assert told == [("beta", "managed", "A", "project"), ("mine", "unmanaged", "B", "project")]


def test_list_marks_shipped_skills(project: Any, tmp_path: Path) -> None:
    shipped = tmp_path / "shipped"
    (shipped / "given").mkdir(parents=True)
    (shipped / "given" / "SKILL.md").write_text(skill_text("given"))
    digests = {"given": folder_digest(shipped / "given")}
    deps = InstallDeps(writer=FolderWriter([]), clock=SystemClock(), mapping=project.mapping)
    made = partial(
        Lifecycle,
        root=project.root,
        levels={"shipped": shipped},
        deps=deps,
        state=project.lifecycle.state,
        state_writer=FolderWriter([]),
    )
    assert made(shipped=digests).installed().skills[0].status == "shipped"
    (shipped / "given" / "more.md").write_text("one byte of another is not what was shipped")
    assert made(shipped=digests).installed().skills[0].status == "unmanaged"


def test_list_goes_by_folders_and_not_by_the_database(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    (project.skills / "skills.db").write_text("broken")
    assert project.run("list")["count"] == 2


def test_a_damaged_receipt_is_named_and_its_skill_still_listed(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="beta")
    (project.inner / "beta.json").write_text("{")
    answer = project.run("list")
    assert [(one["name"], one["status"]) for one in answer["skills"]] == [("beta", "unmanaged")]
    assert answer["problems"][0]["code"] == "receipt-damaged"


LISTING = """
import sys
from pathlib import Path
sys.path[:0] = [sys.argv[1], sys.argv[2]]
from conftest import make_project
make_project(Path(sys.argv[3]), Path(sys.argv[4])).run("list")
print(*sys.modules)
"""


def test_list_imports_neither_git_nor_tinydb(project: Any, repo: Path, home: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    kernel = Path(sys.modules["navigator_kernel"].__file__ or "").parents[1]
    words = [sys.executable, "-c", LISTING, str(kernel), str(Path(__file__).parent), str(project.root), str(home)]
    loaded = set(subprocess.run(words, capture_output=True, check=True, text=True).stdout.split())
    assert loaded & {"git", "tinydb", "numpy", "tantivy", "asyncio"} == set()


@pytest.mark.requirement("LIF-5")
def test_uninstall_removes_folder_receipt_lock_entry_and_row(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    assert [one["name"] for one in project.run("uninstall", name="Alpha")["skills"]] == ["alpha"]
    assert sorted(path.name for path in project.skills.iterdir()) == [
        ".gitattributes",
        ".gitignore",
        ".navigator",
        "beta",
        "skills.db",
    ]
    assert sorted(path.name for path in project.inner.iterdir()) == ["beta.json", "lock", "locks"]
    assert list(json.loads((project.root / "skills.lock.json").read_text())["skills"]) == ["beta"]
    rows = json.loads((project.skills / "skills.db").read_text())["_default"].values()
    assert [row["name"] for row in rows] == ["beta"]


@pytest.mark.requirement("X-42")
@pytest.mark.parametrize("own", [None, "* -text\n*.md diff=markdown\n"])
def test_the_last_uninstall_takes_the_attributes_away_that_an_install_made(
    project: Any, repo: Path, own: str | None
) -> None:
    path = project.skills / ".gitattributes"
    project.run("install", source=f"file://{repo}", all=True)
    made = path.read_text()
    if own is not None:
        path.write_text(own)
    project.run("uninstall", name="alpha")
    assert path.read_text() == (own or made)
    project.run("uninstall", name="beta")
    assert (path.read_text() if path.exists() else None) == own


#
def test_uninstall_leaves_the_mapping_alone(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    before = project.mapping.path.read_bytes()
    project.run("uninstall", name="alpha")
    assert project.mapping.path.read_bytes() == before


#
def test_uninstall_refuses_a_folder_that_it_does_not_own(project: Any) -> None:
    (project.skills / "mine").mkdir(parents=True)
    with pytest.raises(Refused, match="not installed by navigator"):
        project.run("uninstall", name="mine")
    assert (project.skills / "mine").is_dir()


def test_uninstall_of_an_unknown_name_suggests(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    with pytest.raises(SkillNotFound) as caught:
        project.run("uninstall", name="alfa")
    assert caught.value.data["suggestions"] == ["alpha"]


def test_uninstall_if_nothing_is_installed_writes_nothing(project: Any) -> None:
    with pytest.raises(SkillNotFound):
        project.run("uninstall", name="alpha")
    assert list(project.root.iterdir()) == []


#
@pytest.mark.parametrize("operation", ["info", "install"])
def test_every_sibling_seen_is_added_to_the_mapping(project: Any, repo: Path, operation: str) -> None:
    project.run(operation, source=f"file://{repo}", skill="alpha")
    assert project.mapping.find("beta") == (f"file://{repo}", "beta")


#
def test_a_local_folder_is_not_recorded_in_the_mapping(project: Any) -> None:
    (project.root / "mine").mkdir()
    (project.root / "mine" / "SKILL.md").write_text(skill_text("mine"))
    project.run("install", source="./mine")
    assert not project.mapping.path.exists()


@pytest.mark.requirement("LIF-8", "SEN-6")
def test_a_bare_name_is_installed_from_the_repository_that_the_mapping_knows(project: Any, repo: Path) -> None:
    project.mapping.path.parent.mkdir(parents=True, exist_ok=True)
    table = f"| name | description | upstream_repo | subpath |\n|---|---|---|---|\n| `beta` | x | file://{repo} | |\n"
    project.mapping.path.write_text(table)
    assert project.run("install", source="Beta")["skills"][0]["name"] == "beta"


def test_info_says_so_when_the_mapping_cannot_grow(project: Any, repo: Path) -> None:
    project.mapping.path.parent.mkdir(parents=True, exist_ok=True)
    project.mapping.path.write_text("<!-- observed: begin -->\nno end\n")
    answer = project.run("info", source=f"file://{repo}")
    assert "mapping was not updated" in answer["notes"][0]
    assert project.mapping.path.read_text() == "<!-- observed: begin -->\nno end\n"


def test_disable_and_enable_are_remembered_beside_the_skill(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    before = snapshot(project.skills)
    assert project.run("disable", name="Alpha") == {"name": "alpha", "enabled": False, "changed": True}
    assert read_switches(project.lifecycle.state).disabled == {"alpha"}
    assert project.run("list")["skills"][0]["enabled"] is False
    assert project.run("disable", name="alpha")["changed"] is False
    assert project.run("enable", name="alpha")["changed"] is True
    assert project.run("list")["skills"][0]["enabled"] is True
    assert snapshot(project.skills) == before


def test_a_skill_that_is_not_installed_cannot_be_disabled(project: Any) -> None:
    with pytest.raises(SkillNotFound):
        project.run("disable", name="nothing")


def test_verify_of_untouched_skills_is_content(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    assert [one["ok"] for one in project.run("verify")["skills"]] == [True, True]


def test_verify_names_each_modified_missing_extra_and_mode_changed_file(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    alpha = project.skills / "alpha"
    (alpha / "SKILL.md").write_text("changed")
    (alpha / "extra.txt").write_text("x")
    (alpha / "scripts" / "run.py").chmod(0o755)
    with pytest.raises(IntegrityMismatch) as caught:
        project.run("verify")
    (one,) = caught.value.data["skills"]
    assert (one["modified"], one["extra"], one["mode"]) == (["SKILL.md"], ["extra.txt"], ["scripts/run.py"])
    (alpha / "scripts" / "run.py").unlink()
    with pytest.raises(IntegrityMismatch) as caught:
        project.run("verify", name="alpha")
    assert caught.value.data["skills"][0]["missing"] == ["scripts/run.py"]


def test_verify_notices_a_file_that_became_a_link(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", skill="alpha")
    (project.skills / "alpha" / "SKILL.md").unlink()
    (project.skills / "alpha" / "SKILL.md").symlink_to("/etc/hostname")
    with pytest.raises(IntegrityMismatch):
        project.run("verify")


@pytest.mark.requirement("LIF-3")
def test_search_finds_installed_skills_and_says_why(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    answer = project.run("search", query="charts")
    assert [(one["name"], one["score"], one["reason"]) for one in answer["skills"]] == [("beta", 50, "description")]


@pytest.mark.requirement("LIF-16")
def test_search_counts_uses_from_the_state(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    project.lifecycle.state.mkdir(parents=True)
    (project.lifecycle.state / "usage.json").write_text('{"uses": {"beta": 2}}')
    assert project.run("search", query="beta")["skills"][0]["score"] == 106


@pytest.mark.requirement("LIF-6")
def test_every_command_works_on_its_own_if_nothing_is_installed(project: Any, repo: Path) -> None:
    assert project.run("list")["count"] == 0
    assert project.run("search", query="x")["count"] == 0
    assert project.run("verify")["count"] == 0
    assert project.run("repair")["levels"][0]["skills"] == 0
    assert project.run("info", source=f"file://{repo}")["count"] == 2


def test_a_missing_word_is_a_usage_problem(project: Any) -> None:
    with pytest.raises(UsageProblem):
        project.run("install")


def test_every_answer_is_json(project: Any, repo: Path) -> None:
    project.run("install", source=f"file://{repo}", all=True)
    for operation, params in [("list", {}), ("info", {"source": "alpha"}), ("search", {"query": "a"}), ("verify", {})]:
        assert json.loads(json.dumps(project.run(operation, **params)))
