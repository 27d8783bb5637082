"""The catalogue of skills that are not installed: how it is read and extended, and the shipped page."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.cli.main import run
from navigator_kernel.errors import Damaged
from navigator_kernel.skills.source.mapping import BEGIN, END, Row, SkillMapping
from navigator_kernel.text import fold
from tables import cases

TABLE = """# Skills mapping

| name | description | upstream_repo | subpath |
|---|---|---|---|
| `pdf-tools` | reads PDF | [acme/docs](https://github.com/acme/docs) | skills/pdf-tools |
| `web` | browses \\| clicks | [here](https://git.example.org/a/b) | |
"""
OLD = """# 映射

## Document skills (acme/docs)

| sub-skill | description |
|-----------|-------------|
| xlsx      | spreadsheets |
| `docx`    | letters |

## Others

| sub-skill | description |
|---|---|
| lost | belongs nowhere |
"""

PAGE = Path(__file__).parents[2] / "docs" / "skills-mapping.md"
KNOWN = Path(__file__).parents[3] / "shared" / "skill-repositories.tsv"  # beside the project, if someone put it there
PAGE_ROW = re.compile(r"\| `(.+)` \| (.*) \| \[(.+)\]\(https://github\.com/(.+)\) \| `(.+)` \|")
ORDINARY = """access board browser build chat clean clear commit configure connect coverage dask data debug deploy design
diagnose diff docker email evaluate exit explain export extract fetch find fix format generate git go graphql help image
init java jira kubernetes linear lint list login loop matplotlib memory merge migrate modal networkx new node notes numpy
open pandas performance plan planning playground playwright polars postgresql prd python quit react read receipts refactor
release remember report resume review run rust save scan scrape search seo server session setup ship skill skills sql
status stop summary sympy test tests todo transformers translate update verify video weather worker write""".split()


def mapping(tmp_path: Path, *texts: str) -> SkillMapping:
    paths = [tmp_path / f"mapping{number}.md" for number in range(len(texts) or 1)]
    for path, text in zip(paths, texts, strict=False):
        path.write_text(text, encoding="utf-8")
    return SkillMapping(paths)


def grow(held: SkillMapping, *rows: Row) -> str:
    text = held.grown(rows)
    assert text is not None
    held.path.write_bytes(text)
    return text.decode()


@pytest.mark.requirement("LIF-14")
def test_both_layouts_are_read(tmp_path: Path) -> None:
    held = mapping(tmp_path, TABLE + OLD)
    assert held.find("pdf-tools") == ("acme/docs", "pdf-tools")
    assert held.find("web") == ("https://git.example.org/a/b", "web")
    assert held.find("xlsx") == ("acme/docs", "xlsx")
    assert held.find("docx") == ("acme/docs", "docx")
    assert held.find("lost") is None
    assert held.find("name") is None


@pytest.mark.requirement("LIF-14", "SEN-6")
def test_names_are_found_in_their_folded_form(tmp_path: Path) -> None:
    assert mapping(tmp_path, TABLE).find("PDF_Tools") == ("acme/docs", "pdf-tools")


def test_a_later_file_is_read_where_the_first_knows_nothing(tmp_path: Path) -> None:
    held = mapping(tmp_path, "# mine\n", TABLE)
    assert held.find("web") is not None


def test_a_missing_file_knows_nothing(tmp_path: Path) -> None:
    assert mapping(tmp_path).find("web") is None


def test_a_change_of_the_file_is_seen(tmp_path: Path) -> None:
    held = mapping(tmp_path, "# empty\n")
    assert held.find("web") is None
    held.path.write_text(TABLE)
    assert held.find("web") is not None


@pytest.mark.requirement("LIF-14")
def test_growing_rewrites_the_observed_region_and_nothing_else(tmp_path: Path) -> None:
    before = f"# mine\n\nkept above\n\n{BEGIN}\nold\n{END}\n\nkept below\n"
    held = mapping(tmp_path, before)
    text = grow(held, Row("beta", "second", "o/r", "skills/beta"), Row("alpha", "first", "o/r", "skills/alpha"))
    assert text.startswith(f"# mine\n\nkept above\n\n{BEGIN}\n")
    assert text.endswith(f"{END}\n\nkept below\n")
    assert text.index("`alpha`") < text.index("`beta`")
    assert "| `beta` | second | [o/r](https://github.com/o/r) | skills/beta |" in text
    assert held.find("beta") == ("o/r", "beta")


def test_growing_twice_changes_nothing(tmp_path: Path) -> None:
    held = mapping(tmp_path)
    row = Row("a", "x | y <b> & `c` [d](e) \\ z", "file:///tmp/a|b", "p/q")
    grow(held, row)
    assert held.grown([row]) is None
    assert held.find("a") == ("file:///tmp/a|b", "a")


def test_rows_kept_by_hand_win_over_observed_ones(tmp_path: Path) -> None:
    held = mapping(tmp_path, TABLE)
    grow(held, Row("web", "another", "evil/web", ""))
    assert held.find("web") == ("https://git.example.org/a/b", "web")


def test_a_known_description_is_not_lost_to_an_unread_one(tmp_path: Path) -> None:
    held = mapping(tmp_path)
    grow(held, Row("a", "told", "o/r", "a"))
    assert held.grown([Row("a", "", "o/r", "a")]) is None


def test_foreign_text_can_close_neither_the_table_nor_the_region(tmp_path: Path) -> None:
    held = mapping(tmp_path)
    told = f"x | {END}\n| `evil` | y | evil/repo | |\x1b[31m"
    text = grow(held, Row("a", told, "o/r", "a"), Row("b|c", "", "o/r", ""))
    assert text.count(END) == 1
    assert "\x1b" not in text
    assert held.find("evil") is None
    assert held.find("b|c") is None


@pytest.mark.parametrize("text", [f"{BEGIN}\n", f"{END}\n", f"{BEGIN}\n{BEGIN}\n{END}\n", f"{END}\n{BEGIN}\n"])
def test_unclear_marks_are_damage_and_nothing_is_lost(tmp_path: Path, text: str) -> None:
    with pytest.raises(Damaged, match="observed region"):
        mapping(tmp_path, text).grown([Row("a", "", "o/r", "a")])


@pytest.mark.requirement("LIF-14")
def test_the_last_of_three_thousand_rows_is_found(tmp_path: Path) -> None:
    held = mapping(tmp_path)
    rows = [Row(f"skill-{n}", "does a thing " * 5, f"owner/repo-{n % 90}", f"skills/skill-{n}") for n in range(3000)]
    grow(held, *rows)
    assert held.find("skill-2999") == (f"owner/repo-{2999 % 90}", "skill-2999")


def test_a_hostile_file_is_read_in_time(tmp_path: Path) -> None:
    many = 300_000
    held = mapping(tmp_path, f"|{'-' * many}x|\n## {'(' * many}\n| `a` | b | {'[' * many} |\n")
    start = time.process_time()
    held.find("a")
    assert time.process_time() - start < 2


@pytest.mark.requirement("X-42")
def test_a_row_that_several_pages_have_is_listed_once(tmp_path: Path) -> None:
    own = tmp_path / "own.md"
    own.write_text(TABLE)
    held = mapping(tmp_path, TABLE, TABLE + OLD)
    listed = [known.row.name for known in SkillMapping(held._paths, named=own).rows()]
    assert listed == ["pdf-tools", "web", "xlsx", "docx"]


# The shipped page


def page_rows() -> list[Row]:
    """The rows kept by hand; the observed region belongs to whoever works in the source tree."""
    hits = PAGE_ROW.findall(PAGE.read_text("utf-8").partition(BEGIN)[0])
    assert all(repo == linked for _, _, repo, linked, _ in hits)
    return [Row(name, description, repo, subpath) for name, description, repo, _, subpath in hits]


@pytest.mark.requirement("LIF-14")
def test_the_page_names_at_least_ten_repositories_with_their_sub_skills() -> None:
    rows = page_rows()
    assert len({row.repo for row in rows}) >= 10
    assert len(rows) == PAGE.read_text("utf-8").partition(BEGIN)[0].count("\n| `")
    assert [row for row in rows if not row.subpath.endswith(f"/{row.name}") and row.subpath != row.name] == []


@pytest.mark.requirement("LIF-8", "LIF-14")
def test_every_name_of_the_page_leads_to_the_repository_of_its_row() -> None:
    held = SkillMapping([PAGE])
    assert [row for row in page_rows() if held.find(row.name) != (row.repo, row.name)] == []


@pytest.mark.requirement("LIF-14")
@pytest.mark.skipif(not KNOWN.exists(), reason="the list of what the repositories hold is not here")
def test_every_row_of_the_page_is_the_one_skill_of_that_name_in_its_repository() -> None:
    known = [line.split("\t") for line in KNOWN.read_text("utf-8").splitlines()]
    places: dict[tuple[str, str], list[str]] = {}
    for repo, subpath, name in known:
        places.setdefault((repo, fold(name)), []).append(subpath)
    assert [row for row in page_rows() if places.get((row.repo, fold(row.name))) != [row.subpath]] == []


@pytest.mark.requirement("SEN-6")
def test_no_ordinary_word_is_the_name_of_a_sub_skill() -> None:
    held = SkillMapping([PAGE])
    assert [word for word in ORDINARY if held.find(word)] == []


@pytest.mark.requirement("LIF-8", "SEN-6")
@cases("text, wanted")
def test_a_sub_skills_name_offers_its_most_official_repository_and_asks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, wanted: str
) -> None:
    (tmp_path / "mybox").mkdir()
    code = run(["--root", str(tmp_path), "ask", text, "--json"])
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (code, told["report"]["state"]) == (9, "pending")
    assert told["report"]["data"]["subject"] == f"skill.install {wanted}"
    assert not (tmp_path / ".claude").exists()
