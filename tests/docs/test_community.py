"""The pages, hooks and templates for contributors name only things that exist."""

from __future__ import annotations

import re

import pytest
import yaml

from docs.page_claims import TOP, problems

HOOKS = yaml.safe_load((TOP / ".pre-commit-config.yaml").read_text("utf-8"))["repos"]
TEMPLATES = sorted([*TOP.glob(".github/ISSUE_TEMPLATE/*.md"), *TOP.glob(".github/*.md")])
PAGES = sorted([*TOP.glob("docs/[A-Z]*.md"), *TOP.glob("docs/contributing/*.md")])


def test_the_hooks_fetch_nothing_and_run_what_lint_runs() -> None:
    makefile = (TOP / "Makefile").read_text("utf-8")
    lint = makefile.split("\nlint:")[1].split("\n\n")[0].replace("$(BIN)", ".venv/bin").replace("$(MAKE)", "make")
    assert [repository["repo"] for repository in HOOKS] == ["local"]
    for hook in HOOKS[0]["hooks"]:
        assert hook["language"] == "system"
        assert hook["entry"] in lint, hook["id"]


@pytest.mark.parametrize("page", [*TEMPLATES, *PAGES], ids=lambda path: path.relative_to(TOP).as_posix())
def test_every_command_and_file_that_a_page_for_contributors_names_is_there(page: object) -> None:
    assert problems((TOP / str(page)).read_text("utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(TOP).as_posix())
def test_every_link_of_a_page_for_contributors_leads_to_a_file(page: object) -> None:
    path = TOP / str(page)
    links = re.findall(r"\]\((?!https?:|#)([^)#\s]+)", path.read_text("utf-8"))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_there_are_at_most_15_decisions() -> None:
    assert len(list(TOP.glob("docs/decisions/0*.md"))) <= 15


@pytest.mark.parametrize("template", TEMPLATES[:-1], ids=lambda path: path.stem)
def test_a_template_for_issues_has_the_head_that_hosts_read(template: object) -> None:
    head = yaml.safe_load((TOP / str(template)).read_text("utf-8").split("---\n")[1])
    assert set(head) == {"name", "about"}
