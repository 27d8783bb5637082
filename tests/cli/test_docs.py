"""`navigator docs`: the pages of this release in a terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.support import Place, place_in
from cli.terminals import terminal

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


def test_every_page_is_listed_with_a_first_sentence(here: Place) -> None:
    pages = {one["page"]: one["summary"] for one in here.run("docs", "--json").document["pages"]}
    assert set(pages) >= {path.stem for path in [*DOCS.glob("guides/*.md"), *DOCS.glob("concepts/*.md")]}
    assert all(pages.values())
    assert pages["manage-skills"] == "Install, lock, update and roll back skills."


def test_a_page_in_a_pipe_is_markdown_without_comments_pictures_and_links_to_other_pages(here: Place) -> None:
    done = here.run("docs", "settings")
    assert done.out.startswith("# Settings\n")
    assert "<!--" not in done.out and "](" not in done.out


def test_a_page_that_is_not_there_is_not_found_and_the_nearest_is_named(here: Place) -> None:
    done = here.run("docs", "manage-skill")
    assert (done.code, done.out) == (4, "")
    assert "did you mean manage-skills" in done.err


def test_a_page_is_chinese_where_it_is_translated_and_the_language_is_set_so(here: Place) -> None:
    assert here.run("--language", "zh", "docs", "manage-skills").out.startswith("# 管理技能\n")
    assert here.run("--language", "zh", "docs", "settings").out.startswith("# Settings\n")


def test_the_shell_completes_names_of_pages(here: Place) -> None:
    done = here.run(
        env={"_NAVIGATOR_COMPLETE": "bash_complete", "COMP_WORDS": "navigator docs mana", "COMP_CWORD": "2"}
    )
    assert done.out == "plain,manage-skills\n"


def test_a_terminal_shows_a_page_without_marks_of_markdown(here: Place) -> None:
    with terminal(here, "docs", "states", env={"PAGER": "cat"}) as screen:
        said = screen.rest()
    assert "States and exit codes" in said and "# States" not in said and "|---|" not in said
