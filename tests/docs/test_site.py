"""The site: both languages are built by both programs, every link leads somewhere, and translations keep the commands."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
TRANSLATED = sorted((TOP / "docs/zh/guides").glob("*.md"))


@pytest.fixture
def dead_links(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(str(TOP / "docs"))
    from build_site import dead_links as found

    return found


@pytest.mark.parametrize("page", TRANSLATED, ids=lambda path: path.stem)
def test_a_translated_guide_has_the_fences_of_the_english_one(page: Path) -> None:
    english, chinese = (
        re.findall(r"^```.*?^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for path in (TOP / "docs/guides" / page.name, page)
    )
    assert english == chinese != []


@pytest.mark.parametrize(
    ("address", "is_dead"),
    [
        ("b.html", False),
        ("b.html#there", False),
        ("#here", False),
        ("https://example.org/none", False),
        ("none.html", True),
        ("b.html#none", True),
        ("#none", True),
        ("../a.html", True),
        ("b.md", True),
    ],
)
def test_an_address_that_leads_nowhere_is_found(
    address: str, is_dead: bool, dead_links: object, tmp_path: Path
) -> None:
    (tmp_path / "a.html").write_text(f'<h1 id="here">A</h1><a href="{address}">x</a>', "utf-8")
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1>', "utf-8")
    assert callable(dead_links)
    assert list(dead_links(tmp_path)) == ([f"a.html: {address}"] if is_dead else [])


@pytest.mark.ci
@pytest.mark.timeout(600)
def test_both_programs_build_both_languages_with_search_and_no_dead_link() -> None:
    done = subprocess.run(
        ["make", f"PYTHON={sys.executable}", "site-check"], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for site, index in (("site", "search.json"), ("site-material", "search/search_index.json")):
        for folder, language, word in ((".", "en", "uninstall"), ("zh", "zh", "技能")):
            search = json.loads((TOP / "build" / site / folder / index).read_text("utf-8"))
            assert site == "site-material" or search["config"]["lang"] == [language]
            assert word in json.dumps(search, ensure_ascii=False).replace("\u200b", "")
    library = (TOP / "build/site/reference/library.html").read_text("utf-8")
    assert 'id="navigator_kernel.Kernel.run"' in library
    assert (TOP / "build/site/llms.txt").read_text("utf-8").startswith("# Navigator Kernel\n\n> ")


def test_every_page_of_the_list_for_models_is_there() -> None:
    pages = re.findall(r"\]\(([^)]+)\.html\)", (TOP / "docs/llms.txt").read_text("utf-8"))
    sources = {path.relative_to(TOP / "docs").as_posix() for path in (TOP / "docs").rglob("*.md")}
    assert len(pages) > 30
    assert [page for page in pages if f"{page}.md" not in sources and page != "decisions/index"] == []
