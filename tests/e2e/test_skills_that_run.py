"""Real skills of public repositories do real work with the built-in tools, driven by a scripted model (marker ci)."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uv

from cli.support import MODULE, Place, environment, place_in
from models.wire_server import Said, WireServer, serving
from scanning.real_corpus import bundles
from skill_repositories import make_repo, skill_text
from specialist.test_model_quirks import results
from specialist.turns import events, of_phase_two, says, settings

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

ANTHROPICS, SUPERPOWERS = "anthropics+skills", "obra+superpowers"
COMPOSIO, SICKN33, K_DENSE = (
    "ComposioHQ+awesome-claude-skills",
    "sickn33+antigravity-awesome-skills",
    "K-Dense-AI+claude-scientific-skills",
)
READERS = ("openpyxl", "pillow", "pypdfium2", "python-docx")  # other libraries, which read what skills made
Reader = Callable[..., str]


@pytest.fixture(scope="module")
def server() -> Iterator[WireServer]:
    with serving() as held:
        yield held


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The address of each repository of the corpus, as a bare clone."""
    folder, found = tmp_path_factory.mktemp("corpus"), {}
    for bundle in bundles():
        bare = folder / f"{bundle.stem}.git"
        subprocess.run(["git", "clone", "-q", "--bare", str(bundle), str(bare)], check=True)
        found[bundle.stem] = f"file://{bare}"
    if not found:
        pytest.skip("the corpus is not here: set NAVIGATOR_CORPUS")
    return found


@pytest.fixture(scope="session")
def seen_by(tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """Returns the output of Python code, with arguments, that reads files with libraries of its own."""
    folder = tmp_path_factory.mktemp("readers")
    python = str(folder / "venv/bin/python")
    for words in (["venv", str(folder / "venv")], ["pip", "install", "--python", python, *READERS]):
        subprocess.run([uv.find_uv_bin(), "--quiet", f"--cache-dir={folder / 'cache'}", *words], check=True)

    def seen(code: str, *words: object) -> str:
        argv = [python, "-c", code, *map(str, words)]
        return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()

    return seen


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer, request: pytest.FixtureRequest) -> Place:
    """An empty project, with a model whose server speaks OpenAI's protocol or the one that a test names."""
    kind = getattr(request, "param", "openai")
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    url = server.url.removesuffix("/v1") if kind == "anthropic" else server.url
    file.write_text(settings(server).replace(f'url = "{server.url}"', f'url = "{url}"\nkind = "{kind}"'))
    server.requests.clear()
    server.scripts.clear()
    return place_in(tmp_path)


def call(tool: str, **arguments: Any) -> Said:
    return Said(calls=[(tool, json.dumps(arguments))])


def answers(server: WireServer) -> list[str]:
    """The answers of the tools, in order."""
    return results(of_phase_two(server)[-1]["messages"])


def conversation(here: Place, message: str, *options: str) -> dict[str, Any]:
    """Sends the message and says yes to every question; returns the last reply, with the questions in `asked`."""
    told, asked = here.json("ask", "--session", "s", *options, message), []
    while told["exit_code"] == 9:
        asked.append(str(told["report"]["summary"]))
        assert len(asked) < 10
        told = here.json("ask", "--session", "s", "yes")
    return {**told, "asked": asked}


def workspace(here: Place) -> Path:
    (folder,) = (here.root / "mybox/workspace").iterdir()
    return folder


WORKBOOK = """
import csv, sys
from openpyxl import Workbook
book = Workbook()
rows = list(csv.reader(open(sys.argv[1])))
for row in rows:
    book.active.append([int(cell) if cell.isdigit() else cell for cell in row])
book.active.append(["total", f"=SUM(B2:B{len(rows)})"])
book.save("sales.xlsx")
"""
DOCX_JS = """
const fs = require("fs");
const { Document, Packer, Paragraph } = require("docx");
const note = new Document({ sections: [{ children: [new Paragraph("Hello from docx-js")] }] });
Packer.toBuffer(note).then((bytes) => fs.writeFileSync("note.docx", bytes));
"""
SHOT = """
const { chromium } = require('playwright');
const { readFileSync } = require('fs');
const page = readFileSync('page.html');
const server = require('http').createServer((_, answer) => answer.end(page)).listen(0, '127.0.0.1');
(async () => {
  const args = ['--no-sandbox', '--single-process', '--no-zygote'];
  const browser = await chromium.launch({ executablePath: '/usr/bin/chromium-headless-shell', args });
  const tab = await browser.newPage({ viewport: { width: 320, height: 200 } });
  await tab.goto(`http://127.0.0.1:${server.address().port}/`);
  console.log('Page loaded:', await tab.title());
  await tab.screenshot({ path: 'shot.png' });
  await browser.close();
  server.close();
})();
"""
LOOK = """
import subprocess
browser = ["chromium-headless-shell", "--no-sandbox", "--single-process", "--no-zygote", "--window-size=320,200"]
page = "http://127.0.0.1:8123/page.html"
print(subprocess.run([*browser, "--dump-dom", page], check=True, capture_output=True, text=True).stdout)
subprocess.run([*browser, "--screenshot=page.png", page], check=True)
"""
PICTURE = """
import sys
from PIL import Image
image = Image.open(sys.argv[1])
print(image.format, image.size, image.convert("RGB").getpixel((9, 9)))
"""
GIF = """
import os, sys
sys.path.insert(0, os.environ["SKILL_ROOT"])
from core.gif_builder import GIFBuilder
from PIL import Image
builder = GIFBuilder(width=128, height=128, fps=10)
for colour in ("red", "green", "blue", "white"):
    builder.add_frame(Image.new("RGB", (128, 128), colour))
builder.save("party.gif", num_colors=48, optimize_for_emoji=True)
"""
COUNT = "import pypdfium2, sys; print(len(pypdfium2.PdfDocument(sys.argv[1])))"
MERGE = """
import sys
from pypdf import PdfReader, PdfWriter
writer = PdfWriter()
for path in sys.argv[2:]:
    for page in PdfReader(path).pages:
        writer.add_page(page)
with open(sys.argv[1], "wb") as out:
    writer.write(out)
print("merged")
"""


def pdf(pages: int, text: str = "") -> bytes:
    """A PDF, written by hand, that has `text` on each of its pages."""
    kids = " ".join(f"{at + 5} 0 R" for at in range(pages))
    words = f"BT /F1 12 Tf 20 100 Td ({text}) Tj ET"
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {pages} /Kids [{kids}] >>"]
    objects += ["<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>"]
    objects += [f"<< /Length {len(words)} >>\nstream\n{words}\nendstream"]
    parts = "/Contents 4 0 R /Resources << /Font << /F1 3 0 R >> >>"
    objects += [f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] {parts} >>"] * pages
    whole, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(whole))
        whole += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{at:010d} 00000 n \n" for at in places)
    count = len(objects) + 1
    end = f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\n"
    return f"{whole}{end}startxref\n{len(whole)}\n%%EOF\n".encode()


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_pdf_merges_two_files_that_the_person_named(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "pdf")
    for name, pages in (("a.pdf", 2), ("b.pdf", 3)):
        (here.root / name).write_bytes(pdf(pages))
    says(
        server,
        call("read", file_path="forms.md"),
        call("run", command="python scripts/check_fillable_fields.py a.pdf", packages=["pypdf"]),
        call("write", file_path="merge.py", content=MERGE),
        call("run", command="python merge.py out.pdf a.pdf b.pdf", packages=["pypdf"]),
        Said(text="Merged into out.pdf."),
    )
    told = conversation(here, "/pdf merge a.pdf and b.pdf")
    assert (told["exit_code"], len(told["asked"])) == (0, 2), told
    assert "let it use packages in an environment of its own (PyPI: pypdf)" in told["asked"][0]
    assert "CRITICAL" in answers(server)[0] and "does not have fillable form fields" in answers(server)[1]
    assert seen_by(COUNT, workspace(here) / "out.pdf") == "5"
    assert [Path(one["path"]).name for one in told["report"]["data"]["written"]] == ["merge.py", "out.pdf"]


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_xlsx_writes_a_workbook_with_formulas(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "xlsx")
    (here.root / "sales.csv").write_text("month,sold\nJan,3\nFeb,4\n")
    says(
        server,
        call("read", file_path="sales.csv"),
        call("write", file_path="make.py", content=WORKBOOK),
        call("run", command="python make.py sales.csv", packages=["openpyxl"]),
        Said(text="The workbook is sales.xlsx."),
    )
    told = conversation(here, "/xlsx make a workbook of sales.csv with a total")
    assert told["exit_code"] == 0, told
    code = "import openpyxl, sys; s = openpyxl.load_workbook(sys.argv[1]).active; print(s['B4'].value, s['B2'].value)"
    assert seen_by(code, workspace(here) / "sales.xlsx") == "=SUM(B2:B3) 3"


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_docx_makes_a_document_with_docx_js_and_unpacks_it(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "docx")
    unpack = "python scripts/office/unpack.py note.docx unpacked"
    says(
        server,
        call("write", file_path="make.js", content=DOCX_JS),
        call("run", command="node make.js && ls -l note.docx", packages=["npm:docx"]),
        call("run", command=unpack, packages=["defusedxml", "lxml"]),
        call("grep", pattern="Hello <?", path="unpacked", glob="document.xml"),
        Said(text="note.docx says hello."),
    )
    told = conversation(here, "/docx write a note that says hello, and look into it")
    assert (told["exit_code"], len(told["asked"])) == (0, 2), told
    assert "(npm: docx)" in told["asked"][0] and "(PyPI: defusedxml, lxml)" in told["asked"][1]
    assert "unpacked/word/document.xml" in answers(server)[3]
    code = "import docx, sys; print(docx.Document(sys.argv[1]).paragraphs[0].text)"
    assert seen_by(code, workspace(here) / "note.docx") == "Hello from docx-js"


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_markitdown_converts_a_pdf_with_the_program_of_its_package(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader, tmp_path: Path
) -> None:
    here.said("install", sources.get(K_DENSE) or markitdown(tmp_path), "--skill", "markitdown")
    (here.root / "boats.pdf").write_bytes(pdf(1, "Boats float on water."))
    says(
        server,
        call("Bash", command="markitdown boats.pdf -o boats.md && head -2 boats.md", packages=["markitdown[pdf]"]),
        Said(text="The text is in boats.md."),
    )
    told = conversation(here, "/markitdown convert boats.pdf to Markdown")
    assert (told["exit_code"], len(told["asked"])) == (0, 1) and "(PyPI: markitdown[pdf])" in told["asked"][0], told
    code = "import pypdfium2, sys; print(pypdfium2.PdfDocument(sys.argv[1])[0].get_textpage().get_text_range())"
    seen = seen_by(code, here.root / "boats.pdf")
    assert seen == "Boats float on water." == (workspace(here) / "boats.md").read_text().strip()


def markitdown(tmp_path: Path) -> str:
    """The address of a skill with the name and head of K-Dense's, whose repository is not in every corpus."""
    head = "allowed-tools: Read Write Edit Bash\nlicense: MIT license\n"
    text = skill_text("markitdown", "Convert files and office documents to Markdown.", head)
    return make_repo(tmp_path, {"scientific-skills/markitdown/SKILL.md": text}).as_uri()


@pytest.mark.requirement("AGT-3", "JIT-5", "JIT-12")
def test_playwright_skill_takes_a_picture_of_a_page_and_delivers_it(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    assert shutil.which("chromium-headless-shell"), "install the package chromium-headless-shell"
    here.said("install", sources[SICKN33], "--skill", "playwright-skill")
    (here.root / "page.html").write_text("<title>Boats</title><body style='background: #0000ff'>")
    detect = "require('./lib/helpers').detectDevServers().then(servers => console.log(JSON.stringify(servers)))"
    says(
        server,
        call("run", command=f'cd $SKILL_DIR && node -e "{detect}" && command -v chromium-headless-shell'),
        call("write", file_path="/tmp/playwright-test-page.js", content=SHOT),
        call("write", file_path="playwright-test-page.js", content=SHOT),
        call("run", command="cd $SKILL_DIR && node run.js playwright-test-page.js && cp shot.png ../page.png"),
        call("deliver", **{"from": ["page.png"], "to": "pictures/"}),
        Said(text="The picture is pictures/page.png."),
    )
    told = conversation(here, "/playwright-skill take a picture of page.html")
    assert (told["exit_code"], len(told["asked"])) == (0, 3), (told, answers(server))
    assert "(npm: playwright@" in told["asked"][0] and "image/png" in told["asked"][2]
    found, refused, _, ran, _ = answers(server)
    assert "[]\n/usr/bin/chromium-headless-shell" in found and "is outside the files" in refused
    assert "Page loaded: Boats" in ran
    assert seen_by(PICTURE, here.root / "pictures/page.png") == "PNG (320, 200) (0, 0, 255)"


@pytest.mark.requirement("AGT-3", "JIT-12")
def test_skill_creator_validates_a_skill_with_its_own_script(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "skill-creator")
    skill = "---\nname: my-skill\ndescription: Does things. Use when asked.\n---\n# Mine\n"
    says(
        server,
        call("write", file_path="my-skill/SKILL.md", content=skill),
        call("run", command="python scripts/quick_validate.py my-skill"),
        call("write", file_path="my-skill/SKILL.md", content=skill.replace("name: my-skill", "name: My Skill")),
        call("run", command="python scripts/quick_validate.py my-skill"),
        Said(text="The second one has a wrong name."),
    )
    told = conversation(here, "/skill-creator make a skill and validate it")
    assert (told["exit_code"], len(told["asked"])) == (0, 2), told  # each run of the script is asked for
    first, second = answers(server)[1], answers(server)[3]
    assert first.startswith("exit code 0") and "Skill is valid" in first
    assert second.startswith("exit code 1") and "My Skill" in second


@pytest.mark.requirement("AGT-3", "JIT-12")
def test_webapp_testing_takes_a_picture_of_a_page_with_its_server_helper(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "webapp-testing")
    says(
        server,
        call("write", file_path="page.html", content="<title>Boats</title><body style='background: #00ff00'>"),
        call("write", file_path="look.py", content=LOOK),
        call("run", command='python scripts/with_server.py --server "python -m http.server 8123 --bind 127.0.0.1" '
             "--port 8123 -- python look.py"),
        Said(text="The page is green: page.png."),
    )  # fmt: skip
    told = conversation(here, "/webapp-testing look at page.html")
    assert told["exit_code"] == 0, (told, answers(server))
    assert "<title>Boats</title>" in answers(server)[2]
    assert seen_by(PICTURE, workspace(here) / "page.png") == "PNG (320, 200) (0, 255, 0)"


@pytest.mark.requirement("JIT-5", "TOL-9")
def test_mcp_builder_reads_its_references_when_they_are_needed(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "mcp-builder")
    says(
        server,
        call("glob", pattern="reference/*.md"),
        call("grep", pattern="^#+ .*[Nn]aming", path="reference"),
        call("read", file_path="reference/python_mcp_server.md", limit=20),
        call("write", file_path="server.py", content="print('a server')\n"),
        Said(text="Written."),
    )
    told = conversation(here, "/mcp-builder write a server in Python")
    assert (told["exit_code"], told["asked"]) == (0, []), told
    assert answers(server)[0].splitlines() == [
        "reference/evaluation.md",
        "reference/mcp_best_practices.md",
        "reference/node_mcp_server.md",
        "reference/python_mcp_server.md",
    ]
    assert "mcp_best_practices.md:" in answers(server)[1] and "go on with offset=21" in answers(server)[2]
    assert (workspace(here) / "server.py").read_text() == "print('a server')\n"


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_slack_gif_creator_makes_a_gif_with_the_packages_that_it_declares(
    here: Place, server: WireServer, sources: dict[str, str], seen_by: Reader
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "slack-gif-creator")
    says(
        server,
        call("write", file_path="make.py", content=GIF),
        call("run", command="python make.py", timeout=300),
        Said(text="party.gif is ready."),
    )
    told = conversation(here, "/slack-gif-creator make a party emoji")
    assert told["exit_code"] == 0, (told, answers(server))
    assert "pillow>=10.0.0" in told["asked"][0]
    code = "import sys; from PIL import Image; i = Image.open(sys.argv[1]); print(i.size, i.n_frames)"
    assert seen_by(code, workspace(here) / "party.gif") == "(128, 128) 4"


@pytest.mark.requirement("JIT-12")
def test_test_driven_development_edits_the_project_and_is_undone(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources[SUPERPOWERS], "--skill", "test-driven-development")
    code = "def add(a, b):\n    return a - b\n"
    (here.root / "sums.py").write_text(code)
    says(
        server,
        call("read", file_path="testing-anti-patterns.md", limit=5),
        call("edit", file_path="sums.py", old_string="a - b", new_string="a + b"),
        Said(text="Fixed."),
    )
    told = conversation(here, "/test-driven-development fix add in sums.py")
    assert told["exit_code"] == 0 and "-    return a - b\n+    return a + b\n" in told["asked"][0]
    assert (here.root / "sums.py").read_text() == code.replace("-", "+")
    assert here.json("undo", told["run"])["files"] == [{"path": "sums.py", "state": "undone"}]
    assert (here.root / "sums.py").read_text() == code


@pytest.mark.requirement("JIT-12")
def test_writing_plans_writes_a_plan_into_the_project_and_is_undone(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources[SUPERPOWERS], "--skill", "writing-plans")
    plan = here.root / "docs/plans/boats.md"
    says(server, call("write", file_path=str(plan), content="# Boats\n- [ ] row\n"), Said(text="Planned."))
    told = conversation(here, "/writing-plans plan the boats")
    assert told["exit_code"] == 0 and "+# Boats" in told["asked"][0] and plan.is_file()
    assert here.run("undo").code == 0 and not plan.exists()


@pytest.mark.requirement("AGT-3", "JIT-12")
def test_copy_editing_scores_a_text_with_its_own_script(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources["alirezarezvani+claude-skills"], "--skill", "copy-editing")
    (here.root / "copy.txt").write_text("Boats float. They really float very well on water.\n")
    says(
        server,
        call("run", command="python3 scripts/readability_scorer.py --file copy.txt --json"),
        Said(text="Scored."),
    )
    told = conversation(here, "/copy-editing score copy.txt")
    assert (told["exit_code"], len(told["asked"])) == (0, 1), told
    assert answers(server)[0].startswith("exit code 0") and "flesch" in answers(server)[0].lower()


@pytest.mark.requirement("AGT-3", "JIT-5", "X-18")
def test_skill_tester_looks_at_a_folder_that_the_person_names(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources["alirezarezvani+claude-skills"], "--skill", "skill-tester")
    text = "---\nname: boat-maker\ndescription: Makes boats.\n---\n# Boats\n"
    here.write(
        {"mine/boats/SKILL.md": text, "mine/boats/scripts/float.py": "print('floats')\n", "mine/boats/.env": "A=b\n"}
    )
    says(
        server,
        call("Bash", command="ls -la mine/boats && cat mine/boats/SKILL.md | head -2; cat mine/boats/.env"),
        call("Glob", pattern="mine/**/*.py"),
        call("Read", file_path="mine/boats/scripts/float.py"),
        call(
            "Bash",
            command="cd ~/.claude/skills/skill-tester && python scripts/skill_validator.py mine/boats --json > out.json",
        ),
        Said(text="The report is out.json."),
    )
    told = conversation(here, "/skill-tester test the skill in mine/boats/", "--allow", "run")
    assert (told["exit_code"], told["asked"]) == (0, []), (told, answers(server))
    listed, found, read, _ = answers(server)
    assert "name: boat-maker" in listed and "A=b" not in listed
    assert "mine/boats/scripts/float.py" in found and "print('floats')" in read
    report = json.loads((workspace(here) / "out.json").read_text())
    assert report["skill_path"].endswith("mine/boats") and report["overall_score"] > 0


@pytest.mark.requirement("AGT-3", "JIT-5", "TOL-9")
@pytest.mark.parametrize("here", ["anthropic"], indirect=True)
def test_algorithmic_art_works_in_the_folders_and_names_of_another_agent(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "algorithmic-art")
    page, outputs = "/home/claude/waves.html", "/mnt/user-data/outputs"
    edit = {"command": "str_replace", "path": page}
    says(
        server,
        call("view", path="/mnt/skills/public/algorithmic-art/templates/viewer.html", view_range=[1, 20]),
        call(
            "bash_tool",
            command=f"cp /mnt/skills/public/algorithmic-art/templates/viewer.html {page}",
            description="copies",
        ),
        call("str_replace_based_edit_tool", **edit, old_str="<div", new_str="<section"),
        call(
            "bash_tool", command=f"sed -i 's|<title>.*</title>|<title>Waves</title>|' {page} && mkdir -p {outputs}/art"
        ),
        call("str_replace_based_edit_tool", **edit, old_str="<title>Waves</title>", new_str="<title>Big waves</title>"),
        call("bash_tool", command=f"cp {page} {outputs}/art/waves.html && ls -la {outputs}/art 2>&1 | tail -1"),
        call("present_files", filepaths=[f"{outputs}/art/waves.html"]),
        Said(text="Here it is."),
    )
    told = conversation(here, "/algorithmic-art make waves", "--allow", "run")
    assert (told["exit_code"], len(told["asked"])) == (0, 1), (told, answers(server))
    assert "occurs 26 times" in answers(server)[2]
    assert "<title>Big waves</title>" in (here.root / "waves.html").read_text()


@pytest.mark.requirement("AGT-3", "JIT-5", "TOL-9")
def test_a11y_audit_works_with_the_names_of_servers_and_of_codex(
    here: Place, server: WireServer, sources: dict[str, str]
) -> None:
    here.said("install", sources["alirezarezvani+claude-skills"], "--skill", "a11y-audit")
    (here.root / "page.html").write_text("<html><body><img src=a.png></body></html>\n")
    scan = "python3 ${CLAUDE_PLUGIN_ROOT}/skills/a11y-audit/scripts/a11y_scanner.py . --json > scan.json; cat Page.html"
    patch = "*** Begin Patch\n*** Update File: page.html\n@@\n-<html><body><img src=a.png></body></html>\n"
    patch += "+<html lang=en><body><img src=a.png alt=boat></body></html>\n*** End Patch\n"
    says(
        server,
        call("mcp__filesystem__read_text_file", path="page.html"),
        call("container.exec", cmd=["bash", "-lc", scan], workdir="/workspace"),
        call("apply_patch", input=patch),
        Said(text="The picture has a text now."),
    )
    told = conversation(here, "/a11y-audit check and repair page.html", "--allow", "run,edit:./")
    assert (told["exit_code"], told["asked"]) == (0, []), (told, answers(server))
    assert "Page.html is here as" in answers(server)[1]
    assert json.loads((workspace(here) / "scan.json").read_text())["summary"]["total_issues"] > 0
    assert "alt=boat" in (here.root / "page.html").read_text()


AUDITED = """python - <<'EOF'
import json, subprocess, sys
told = subprocess.run([sys.executable, "scripts/env_auditor.py", ".", "--json"], capture_output=True, text=True)
print([finding["pattern"] for finding in json.loads(told.stdout)["findings"]])
EOF"""
# Skill, a file that the person names with its text, shell lines as models write them, and a part of each answer
LINES: list[tuple[str, str, str, list[tuple[str, str]]]] = [
    (
        "env-secrets-manager",
        "app.py",
        "KEY='AKIAABCDEFGHIJKLMNOP'\n",
        [
            (AUDITED, "['aws_access_key_id']"),
            ("python3 scripts/env_auditor.py . --json | python3 -m json.tool | head -3", '"total_findings": 1'),
        ],
    ),
    (
        "changelog-generator",
        "commits.txt",
        "feat: a\nfix: b\n",
        [
            ("printf 'feat: x\\nbad msg\\n' | python3 scripts/commit_linter.py --strict; echo rc=$?", "rc=1"),
            (
                "mkdir -p out && python3 scripts/generate_changelog.py --input commits.txt --next-version v1 --write out/C.md",
                "wrote: out/C.md",
            ),
        ],
    ),
    (
        "dependency-auditor",
        "requirements.txt",
        "requests==2.0\nflask\n",
        [
            ("python scripts/dep_scanner.py . --format json -o deps.json; ls", "wrote: deps.json"),
            ("pip install requests", '"packages": ["requests"]'),
            ("npm install lodash", '"packages": ["npm:lodash"]'),
        ],
    ),
]


@pytest.mark.requirement("AGT-3", "JIT-12")
@pytest.mark.parametrize(("skill", "file", "text", "lines"), LINES, ids=[skill for skill, *_ in LINES])
def test_a_skill_runs_shell_lines_as_models_write_them(
    here: Place,
    server: WireServer,
    sources: dict[str, str],
    skill: str,
    file: str,
    text: str,
    lines: list[tuple[str, str]],
) -> None:
    here.said("install", sources["alirezarezvani+claude-skills"], "--skill", skill)
    (here.root / file).write_text(text)
    says(server, *(call("run", command=line) for line, _ in lines), Said(text="Done."))
    assert conversation(here, f"/{skill} work on {file}")["exit_code"] == 0
    for (_, part), answer in zip(lines, answers(server), strict=True):
        assert part in answer


@pytest.mark.requirement("AGT-3", "JIT-12", "SAF-7")
@pytest.mark.parametrize("here", ["anthropic"], indirect=True)
def test_skill_creator_of_another_repository_goes_on_after_its_process_is_killed(
    here: Place, server: WireServer, sources: dict[str, str], tmp_path: Path
) -> None:
    here.said("install", sources[COMPOSIO], "--skill", "skill-creator")
    text = "---\nname: boat-maker\ndescription: Makes boats.\n---\n# Boats\n"
    script = [
        call("run", command="python3 scripts/init_skill.py boat-maker --path made"),
        call("read", file_path="made/boat-maker/SKILL.md", limit=3),
        call("write", file_path="made/boat-maker/SKILL.md", content=text),
        call("run", command="python3 scripts/package_skill.py made/boat-maker && echo again >> packed.txt"),
        Said(text="boat-maker.zip is made."),
    ]
    for dead in (3, 5):  # the request at which the process is killed: what was done before is not done again
        killed(here, server, script, dead)
    told = conversation(here, "continue", "--allow", "run")
    assert (told["exit_code"], told["asked"], told["report"]["raw"]) == (0, [], "boat-maker.zip is made."), told
    assert len(here.runs()) == 1 and "name: boat-maker" in answers(server)[1]
    started = [one["data"]["tool"] for one in events(here, told["run"]) if one["type"] == "ToolCallStarted"]
    assert started == ["run", "read", "write", "run"]
    assert (workspace(here) / "packed.txt").read_text() == "again\n"
    with zipfile.ZipFile(workspace(here) / "boat-maker.zip") as archive:
        assert archive.read("boat-maker/SKILL.md").decode() == text


def killed(here: Place, server: WireServer, script: list[Said], at: int) -> None:
    """Sends a message of the person's in a process of its own, which is killed when it makes request number `at`."""
    begun = bool(server.requests)

    def answer(messages: Any, _number: int) -> Said:
        if len(results(messages)) == at - 1:
            os.killpg(process.pid, signal.SIGKILL)
        return script[len(results(messages))]

    server.scripts["worker"] = answer
    words = ["continue"] if begun else ["/skill-creator start a skill called boat-maker"]
    argv = [*MODULE, "ask", "--session", "s", "--allow", "run", *words]
    with subprocess.Popen(argv, cwd=here.root, env=environment(), start_new_session=True) as process:
        assert process.wait(60) == -signal.SIGKILL
    server.scripts["worker"] = lambda messages, _number: script[len(results(messages))]
