"""`skill mapping`: where its rows come from, and the project's own page (X-42)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cli.support import SOURCE, Place, place_in
from skill_repositories import make_repo, skill_text

pytestmark = pytest.mark.requirement("X-42", "LIF-14")

PAGE = "docs/skills-mapping.md"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    """A project that has inspected a source with two skills."""
    place = place_in(tmp_path)
    files = {f"skills/{name}/SKILL.md": skill_text(name, f"does {name}") for name in ("alpha-one", "beta-two")}
    place.said("skill", "info", make_repo(tmp_path, files, name="repository").as_uri())
    return place


def test_seen_skills_are_listed_and_no_page_is_written_to_the_project(here: Place) -> None:
    assert [row["name"] for row in here.json("skill", "mapping", "alpha-one")["rows"]][:1] == ["alpha-one"]
    assert not (here.root / "docs").exists()


@pytest.mark.parametrize("words", [(), ("--workstation",)], ids=["plain", "workstation"])
def test_each_row_is_printed_once(here: Place, words: tuple[str, ...]) -> None:
    here.said("init", *words)
    rows = [(row["name"], row["repo"], row["subpath"]) for row in here.json("skill", "mapping")["rows"]]
    assert len(rows) > 800 and len(rows) == len(set(rows))


def test_the_page_is_written_to_where_the_person_has_one(here: Place) -> None:
    done = here.run("skill", "mapping", "--write")
    assert (done.code, "init --workstation" in done.err) == (4, True)
    here.write({PAGE: "# mine\n\nkept\n"})
    assert here.json("skill", "mapping", "--write")["added"] == 2
    text = (here.root / PAGE).read_text("utf-8")
    assert text.startswith("# mine\n\nkept\n") and "| `beta-two` | does beta-two |" in text
    assert here.json("skill", "mapping", "--write") == {
        "exit_code": 0, "path": str(here.root / PAGE), "added": 0, "changed": False
    }  # fmt: skip


def test_a_word_and_write_do_not_go_together(here: Place) -> None:
    assert here.run("skill", "mapping", "pdf", "--write").code == 2


@pytest.mark.wide
def test_a_clone_of_this_project_keeps_its_page(here: Place, tmp_path: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--depth", "1", SOURCE.as_uri(), str(tmp_path / "clone")], check=True)
    clone = Place(root=tmp_path / "clone")
    clone.said("skill", "install", (tmp_path / "repository").as_uri(), "--skill", "alpha-one")
    changed = subprocess.run(["git", "status", "--porcelain", "docs"], cwd=clone.root, capture_output=True, text=True)
    assert changed.stdout == ""
