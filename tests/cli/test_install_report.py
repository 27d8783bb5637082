"""The report of an install of many skills: one summary, grouped reasons and warnings, and all details on request."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cli.support import Place, place_in
from skill_repositories import make_repo, skill_text

COUNT = 14


@pytest.fixture
def here(tmp_path: Path) -> Place:
    return place_in(tmp_path)


@pytest.fixture
def source(tmp_path: Path) -> str:
    """Fourteen skills that each draw a warning, six copies, one placeholder and one that cannot be read."""
    files = {f"skills/s{at:02}/SKILL.md": skill_text(f"s{at:02}", extra="metadata: 1\n") for at in range(COUNT)}
    files |= {f".codex/skills/s{at:02}/SKILL.md": files[f"skills/s{at:02}/SKILL.md"] for at in range(6)}
    files["skills/README/SKILL.md"] = skill_text("README")
    files["skills/-odd/SKILL.md"] = skill_text("-odd")
    return f"file://{make_repo(tmp_path, files)}"


@pytest.mark.wide
def test_many_skills_have_one_summary_and_groups_with_counts_and_five_names(here: Place, source: str) -> None:
    done = here.run("skill", "install", source, "--all")
    assert re.fullmatch(r"14 installed, 8 skipped in \d+\.\d s\n", done.out)
    assert done.code == 1
    assert done.err.splitlines() == [
        "skipped 6 (a copy of another one): s00, s01, s02, s03, s04, …",
        "skipped 1 (a placeholder): README",
        "skipped skills/-odd: 'skills/-odd/SKILL.md' has no usable name",
        "warning: 14 × metadata-not-a-map: s00, s01, s02, s03, s04, …",
    ]


def test_the_hidden_folder_is_named_with_the_words_that_install_what_is_in_it(here: Place, tmp_path: Path) -> None:
    names = ("skills/a", "skills/.experimental/b", "skills/.experimental/c")
    files = {f"{path}/SKILL.md": skill_text(path[-1]) for path in names}
    source = f"file://{make_repo(tmp_path, files)}"
    done = here.run("install", source, "--all")
    hint = re.search(
        r"skipped 2 \(in the hidden folder skills/.experimental; --skill '(.*)' installs them\): b, c", done.err
    )
    assert done.code == 0 and hint is not None, done.err
    assert here.json("install", source, "--skill", hint[1])["counts"]["installed"] == 2


@pytest.mark.parametrize(
    ("path", "text", "code"),
    [
        ("skills/.hidden/b", skill_text("b"), 0),
        ("examples/b", skill_text("b"), 0),
        ("tests/b", skill_text("b"), 0),
        ("copies/a", skill_text("a"), 0),
        ("skills/template", skill_text("template"), 0),
        ("skills/b", "---\nname: b\ndescription: does b\n---\n", 0),
        ("skills/-b", skill_text("-b"), 1),
        ("skills/word-count", skill_text("word-count"), 1),
    ],
    ids=["hidden", "example", "test", "copy", "placeholder", "no text", "manifest", "name taken"],
)
def test_what_all_leaves_out_by_a_rule_of_layout_does_not_fail_it_and_all_else_does(
    here: Place, tmp_path: Path, path: str, text: str, code: int
) -> None:
    here.write({".claude/skills/word-count/SKILL.md": skill_text("word-count")})
    files = {"skills/a/SKILL.md": skill_text("a"), f"{path}/SKILL.md": text}
    source = f"file://{make_repo(tmp_path, files)}"
    told = here.json("install", source, "--all")
    assert (told["exit_code"], told["counts"]["installed"], len(told["left_out"])) == (code, 1, 1)
    assert here.run("install", source, "--all", "--exclude", path).code == 0


@pytest.mark.wide
def test_verbose_has_a_line_for_everything(here: Place, source: str) -> None:
    done = here.run("skill", "install", source, "--all", "-v")
    assert [line.split(" ")[1] for line in done.out.splitlines()[:-1]] == [f"s{at:02}" for at in range(COUNT)]
    assert done.err.count("skipped .codex/skills/") == 6
    assert done.err.count("metadata-not-a-map") == COUNT


@pytest.mark.wide
def test_quiet_says_nothing_of_a_success_and_names_a_failure(here: Place, source: str) -> None:
    failing = here.run("skill", "install", source, "--all", "-q")
    assert (failing.code, failing.out) == (1, "")
    assert failing.err == "skipped skills/-odd: 'skills/-odd/SKILL.md' has no usable name\n"
    done = here.run("skill", "install", source, "--all", "-q", "--exclude", "skills/-odd")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_json_has_every_detail_in_one_document(here: Place, source: str) -> None:
    told = here.json("skill", "install", source, "--all", "--exclude", "s13")
    assert told["counts"] == {"found": 22, "installed": 13, "there": 0, "skipped": 9, "blocked": 0}
    assert {one["reason"] for one in told["left_out"]} == {"copy", "excluded", "manifest", "placeholder"}
    assert (told["exit_code"], told["seconds"] >= 0) == (1, True)


def test_a_dry_run_of_all_says_what_would_be_installed(here: Place, source: str) -> None:
    done = here.run("skill", "install", source, "--all", "--dry-run")
    assert done.out.startswith("14 would be installed, 8 skipped in ")
    assert not (here.root / ".claude").exists()
