from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import Refused, SkillNotFound
from navigator_kernel.skills.catalog.switches import read_switches
from skill_repositories import make_repo, skill_text, snapshot

FILES = {
    "skills/alpha/SKILL.md": skill_text("alpha", "reads \u202etables", "license: MIT\nallowed-tools: Read, Bash\n"),
    "skills/alpha/scripts/run.py": "print(1)\n",
    "skills/beta/SKILL.md": skill_text("beta", "draws charts", "command: python {skill_root}/draw.py\n"),
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, FILES)


def test_info_says_why_a_manifest_cannot_be_used(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": "---\nname: b\n---\n"}, name="half")
    broken = project.run("info", source=f"file://{repo}")["skills"][1]
    assert broken["name"] == "b"
    assert "no description" in broken["problems"][0]


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
