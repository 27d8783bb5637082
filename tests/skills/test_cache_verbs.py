"""The cache of repositories, and the mapping of known skills."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.adapters.sources.repo_cache import RepoCache
from navigator_kernel.cli.main import run
from navigator_kernel.errors import UsageProblem
from skill_repositories import make_repo, skill_text, snapshot

pytestmark = pytest.mark.sample(2)

PAGE = """\
# Skills mapping

| name | description | upstream_repo | subpath |
|---|---|---|---|
| `pdf` | reads 表格 files | [anthropics/skills](https://github.com/anthropics/skills) | document-skills/pdf |
| `pdf-tools` | splits and joins | owner/tools | |

## Kitchen (owner/kitchen)

| sub-skill | description |
|---|---|
| `toast` | burns bread |

<!-- observed: begin -->
| name | description | upstream_repo | subpath |
|---|---|---|---|
| `seen` | was seen | file:///tmp/a $(id)/repo | skills/seen |
<!-- observed: end -->
"""


class At:
    """A clock fixed at one time."""

    def __init__(self, now: str) -> None:
        self._now = now

    def now(self) -> str:
        return self._now

    def monotonic(self) -> float:
        return 0.0


@pytest.fixture
def kept(project: Any, tmp_path: Path) -> Any:
    """A project with two repositories in its cache: `old` used on the 1st of January, `new` on the 30th."""
    folder = tmp_path / "repos"
    plain = project.lifecycle.deps
    for name, day in (("old", "01"), ("new", "30")):
        repo = make_repo(tmp_path, {f"{name}/SKILL.md": skill_text(name)}, name=name)
        cache = RepoCache(folder, clock=At(f"2026-01-{day}T09:30:00.000Z"))
        plain.repositories = cache
        project.run("install", source=f"file://{repo}")
    cache = RepoCache(folder, clock=plain.clock)
    plain.repositories = cache
    return project


def urls(answer: Any) -> list[str]:
    return [one["url"].rpartition("/")[2] for one in answer["repositories"]]


def test_cache_lists_the_cached_repositories(kept: Any, tmp_path: Path) -> None:
    answer = kept.run("cache")
    new, old = answer["repositories"]
    assert (old["url"], old["used"]) == (f"file://{tmp_path / 'old'}", "2026-01-01T09:30:00.000Z")
    assert answer["count"] == 2 and answer["bytes"] == new["bytes"] + old["bytes"] > 0
    assert len(old["refs"]) == 1


def test_cache_of_a_person_who_fetched_nothing_is_empty(project: Any, tmp_path: Path) -> None:
    cache = RepoCache(tmp_path / "nothing")
    project.lifecycle.deps.repositories = cache
    assert project.run("cache") == {"count": 0, "bytes": 0, "repositories": []}
    assert list(project.root.iterdir()) == []


def test_listing_the_cache_changes_nothing(kept: Any) -> None:
    before = snapshot(kept.root)
    kept.run("cache")
    assert snapshot(kept.root) == before


def test_clear_removes_all_that_is_kept(kept: Any) -> None:
    answer = kept.run("cache", clear=True)
    assert (answer["cleared"], answer["changed"], urls(answer)) == (2, True, ["new", "old"])
    assert kept.run("cache")["count"] == 0


def test_clear_leaves_what_was_used_since(kept: Any) -> None:
    assert urls(kept.run("cache", clear=True, older_than=7)) == ["old"]
    assert urls(kept.run("cache")) == ["new"]


@pytest.mark.parametrize("days", [None, 0, 7, 400])
def test_a_dry_run_of_clear_names_what_would_go(kept: Any, days: float | None) -> None:
    before = snapshot(kept.root)
    planned = kept.run("cache", clear=True, older_than=days, dry_run=True)
    assert snapshot(kept.root) == before
    done = kept.run("cache", clear=True, older_than=days)
    assert {**planned, "dry_run": False, "cleared": planned["count"]} == done


def test_an_age_without_clear_is_a_usage_problem(kept: Any) -> None:
    with pytest.raises(UsageProblem):
        kept.run("cache", older_than=7)


@pytest.fixture
def known(project: Any) -> Any:
    """A project with rows of every kind in its mapping."""
    project.mapping.path.parent.mkdir(parents=True, exist_ok=True)
    project.mapping.path.write_text(PAGE)
    return project


def names(answer: Any) -> list[str]:
    return [row["name"] for row in answer["rows"]]


#
def test_every_row_of_the_mapping_is_listed(known: Any) -> None:
    answer = known.run("mapping")
    assert (names(answer), answer["count"]) == (["pdf", "pdf-tools", "toast", "seen"], 4)


@pytest.mark.parametrize(
    ("word", "found"),
    [("PDF", ["pdf", "pdf-tools"]), ("bread", ["toast"]), ("表格", ["pdf"]), ("kitchen", ["toast"]), ("zzz", [])],
)
def test_a_word_is_searched_in_name_description_and_repository(known: Any, word: str, found: list[str]) -> None:
    assert names(known.run("mapping", word=word)) == found


#
def test_a_mapping_row_has_its_page_and_its_install_command(known: Any) -> None:
    (toast,) = known.run("mapping", word="toast")["rows"]
    assert toast == {
        "name": "toast",
        "description": "burns bread",
        "repo": "owner/kitchen",
        "subpath": "",
        "page": str(known.mapping.path),
        "observed": False,
        "install": "navigator skill install owner/kitchen --skill toast",
    }


def test_a_skill_is_installed_by_its_path_where_that_is_known(known: Any) -> None:
    install = known.run("mapping", word="anthropics")["rows"][0]["install"]
    assert install == "navigator skill install anthropics/skills --skill document-skills/pdf"


def test_an_install_command_is_safe_to_paste(known: Any) -> None:
    (seen,) = known.run("mapping", word="seen")["rows"]
    words = shlex.split(seen["install"])
    assert words == ["navigator", "skill", "install", "file:///tmp/a $(id)/repo", "--skill", "skills/seen"]
    assert seen["observed"] is True


def test_a_row_that_could_not_be_installed_has_no_command(known: Any) -> None:
    known.mapping.path.write_text("| name | upstream_repo |\n|---|---|\n| `bad` | ext::sh -c id |\n")
    assert known.run("mapping")["rows"][0]["install"] == ""


def test_an_observed_skill_is_in_the_mapping_and_can_be_installed(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a"), "b/SKILL.md": skill_text("b", "draws")})
    project.run("info", source=f"file://{repo}")
    (row,) = project.run("mapping", word="draws")["rows"]
    assert (row["name"], row["repo"], row["observed"]) == ("b", f"file://{repo}", True)
    assert project.run("install", source=row["repo"], skill=shlex.split(row["install"])[-1])["changed"] is True


def test_the_command_line_lists_and_clears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "here"
    (root / "docs").mkdir(parents=True)
    (root / "docs" / "skills-mapping.md").write_text(PAGE)
    monkeypatch.chdir(root)
    assert run(["skill", "mapping", "toast", "--json"]) == 0
    assert names(json.loads(capsys.readouterr().out)) == ["toast"]
    assert run(["skill", "mapping", "toast"]) == 0
    assert "navigator skill install owner/kitchen --skill toast" in capsys.readouterr().out
    assert run(["skill", "cache"]) == 0
    assert capsys.readouterr().err == "0 repositories, 0 bytes\n"
    assert run(["skill", "cache", "--clear", "--older-than", "3", "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cleared"] == 0
    assert run(["skill", "cache", "--older-than", "3"]) == 2
