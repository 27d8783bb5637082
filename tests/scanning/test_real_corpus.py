"""Of the skills that people install, the scanner blocks hardly any, and each finding says what it found and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from scanning.real_corpus import CORPUS, PAGE, Judged, bundles, judged, page

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

MOST_BLOCKS, MOST_WARNINGS = 4, 0.3  # blocked skills in all; warnings per skill


@pytest.fixture(scope="module")
def repositories(tmp_path_factory: pytest.TempPathFactory) -> list[Judged]:
    if not bundles():
        pytest.skip(f"there are no repositories in {CORPUS.name!r}")
    folder: Path = tmp_path_factory.mktemp("corpus")
    return [judged(bundle, folder) for bundle in bundles()]


@pytest.mark.requirement("SAF-1")
def test_hardly_a_skill_that_people_install_is_blocked(repositories: list[Judged]) -> None:
    blocked = [(one.name, folder) for one in repositories for folder in one.of("block")]
    assert len(blocked) <= MOST_BLOCKS, blocked


def test_there_are_few_warnings(repositories: list[Judged]) -> None:
    count = sum(len(one.skills) for one in repositories)
    assert sum(one.warnings for one in repositories) <= MOST_WARNINGS * count


def test_every_finding_names_its_file_its_line_and_its_text(repositories: list[Judged]) -> None:
    findings = [found for one in repositories for held in one.skills.values() for found in held]
    assert [one for one in findings if not (one.code and one.path and one.message and one.text)] == []
    without_line = {one.code for one in findings if one.line is None}
    assert without_line <= {"unreadable-program", "pickled-model", "shipped-instructions"}


def test_the_page_says_what_was_found(repositories: list[Judged]) -> None:
    assert PAGE.read_text("utf-8") == page(repositories)
