"""The best-known repository of skills, from its preview in the page to an installed skill."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import expect

from e2e.test_corpus_install import CORPUS
from gateway.served import Person, Served
from gateway.web.conftest import LIMIT, Opener

pytestmark = [pytest.mark.ci, pytest.mark.timeout(300)]

NAME = "anthropics+skills"
SLOW = 6 * LIMIT  # milliseconds; 18 skills are scanned


def test_a_well_known_repository_is_previewed_and_two_of_its_skills_installed(
    open_page: Opener, served: Served, person: Person, tmp_path: Path
) -> None:
    bundle = CORPUS / f"{NAME}.bundle"
    if not bundle.is_file():
        pytest.skip(f"the corpus has no {bundle.name}")
    repository = tmp_path / f"{NAME}.git"
    subprocess.run(["git", "clone", "--quiet", "--bare", bundle, repository], check=True, capture_output=True)
    page = open_page("/install")
    page.get_by_label("Repository, folder or archive").fill(str(repository))
    page.get_by_role("button", name="Show its skills").click()
    listed = page.get_by_role("list", name="Skills of the source")
    listed.get_by_role("listitem").first.wait_for(timeout=SLOW)
    assert not (person.here.root / "skills.lock.json").exists()
    page.get_by_role("button", name="Choose none shown").click()
    for name in ("pdf", "xlsx"):
        page.get_by_label("Filter by name or description").fill(name)
        page.get_by_role("checkbox", name=f"Install {name}", exact=True).check()
    page.get_by_role("button", name="Install 2 skills").click()
    expect(page.get_by_role("heading", name="2 skills are installed")).to_be_visible(timeout=SLOW)
    for name in ("pdf", "xlsx"):
        assert (person.here.root / ".claude" / "skills" / name / "SKILL.md").is_file()
    page.goto(f"{served.url}/#/skills?name=pdf")
    expect(page.get_by_role("dialog", name="pdf", exact=True)).to_contain_text("Source")
