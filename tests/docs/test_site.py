"""The site: both programs build both languages, every link has a target, and translations keep the commands."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import expect, sync_playwright

from maintenance.build_site import dead_links
from tables import cases

TOP = Path(__file__).resolve().parents[2]
TRANSLATED = sorted((TOP / "docs/zh/guides").glob("*.md"))


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of both sites, built by both programs; a dead link is a failure."""
    argv = ["make", f"PYTHON={sys.executable}", "site-check"]
    done = subprocess.run(argv, cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return TOP / "build/site"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a local server for `folder`."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Logs nothing."""


RECORDED = "first-session"  # what is typed there is Chinese


@pytest.mark.parametrize("page", [one for one in TRANSLATED if one.stem != RECORDED], ids=lambda path: path.stem)
def test_a_translated_guide_has_the_fences_of_the_english_one(page: Path) -> None:
    english, chinese = (
        re.findall(r"^```.*?^```$", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
        for path in (TOP / "docs/guides" / page.name, page)
    )
    assert english == chinese != []


@cases("address, is_dead")
def test_an_address_that_leads_nowhere_is_found(address: str, is_dead: bool, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(f'<h1 id="here">A</h1><a href="{address}">x</a>', "utf-8")
    (tmp_path / "b.html").write_text('<h1 id="there">B</h1>', "utf-8")
    assert list(dead_links(tmp_path)) == ([f"a.html: {address}"] if is_dead else [])


@pytest.mark.ci
@pytest.mark.timeout(600)
def test_both_programs_build_both_languages_and_no_link_is_dead(site: Path) -> None:
    for built in (site, site.with_name("site-material")):
        library = (built / "reference/library.html").read_text("utf-8")
        assert 'id="navigator_kernel.Kernel.run"' in library
        assert (built / "llms.txt").read_text("utf-8").startswith("# Navigator Kernel\n\n> ")
        assert [path for path in built.rglob("*.html") if "<p>```" in path.read_text("utf-8")] == []


@pytest.mark.ci
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("home", "word", "found"), [("index.html", "rollback", "4. Back"), ("zh/index.html", "锁文件", "2. 锁文件")]
)
def test_a_reader_finds_a_word_in_either_language(site: Path, home: str, word: str, found: str) -> None:
    program = shutil.which("chromium")
    assert program, "install the package chromium"
    with served(site) as address, sync_playwright() as held:
        browser = held.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{address}/{home}")
        page.wait_for_load_state("networkidle")
        page.keyboard.press("/")
        page.get_by_role("combobox").fill(word)
        expect(page.get_by_role("option").first).to_contain_text(found, timeout=20_000)
        browser.close()


def test_every_page_of_the_list_for_models_is_there() -> None:
    pages = re.findall(r"\]\(([^)]+)\.html\)", (TOP / "docs/llms.txt").read_text("utf-8"))
    sources = {path.relative_to(TOP / "docs").as_posix() for path in (TOP / "docs").rglob("*.md")}
    assert len(pages) > 30
    assert [page for page in pages if f"{page}.md" not in sources and page != "decisions/index"] == []
