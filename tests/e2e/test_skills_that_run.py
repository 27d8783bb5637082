"""Real skills of public repositories do real work with the built-in tools, driven by a scripted model (marker ci)."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uv

from cli.support import Place, place_in
from models.wire_server import Said, WireServer, serving
from scanning.real_corpus import bundles
from specialist.turns import of_phase_two, says, settings

pytestmark = [pytest.mark.ci, pytest.mark.timeout(600)]

ANTHROPICS = "anthropics+skills"


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


@pytest.fixture
def here(tmp_path: Path, home: Path, server: WireServer) -> Place:
    file = home / ".config" / "navigator" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(settings(server))
    server.requests.clear()
    server.scripts.clear()
    return place_in(tmp_path)


def call(tool: str, **arguments: Any) -> Said:
    return Said(calls=[(tool, json.dumps(arguments))])


def answers(server: WireServer) -> list[str]:
    """What the tools answered, in order."""
    return [str(one["content"]) for one in of_phase_two(server)[-1]["messages"] if one["role"] == "tool"]


def conversation(here: Place, message: str) -> dict[str, Any]:
    """The message, and a yes to everything that is asked; the last reply with `asked`, the questions."""
    told, asked = here.json("ask", "--session", "s", message), []
    while told["exit_code"] == 9:
        asked.append(str(told["report"]["summary"]))
        assert len(asked) < 10
        told = here.json("ask", "--session", "s", "yes")
    return {**told, "asked": asked}


def workspace(here: Place) -> Path:
    (folder,) = (here.root / "mybox/workspace").iterdir()
    return folder


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


def pdf(pages: int) -> bytes:
    """A PDF of blank pages, written by hand."""
    kids = " ".join(f"{at + 3} 0 R" for at in range(pages))
    objects = ["<< /Type /Catalog /Pages 2 0 R >>", f"<< /Type /Pages /Count {pages} /Kids [{kids}] >>"]
    objects += ["<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"] * pages
    text, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(text))
        text += f"{number} 0 obj\n{body}\nendobj\n"
    table = "".join(f"{at:010d} 00000 n \n" for at in places)
    count = len(objects) + 1
    end = f"xref\n0 {count}\n0000000000 65535 f \n{table}trailer\n<< /Size {count} /Root 1 0 R >>\n"
    return f"{text}{end}startxref\n{len(text)}\n%%EOF\n".encode()


def seen_by(package: str, code: str, *words: object) -> str:
    """What Python code with another library prints of a file."""
    argv = [
        uv.find_uv_bin(),
        "run",
        "--quiet",
        "--no-project",
        "--with",
        package,
        "python",
        "-c",
        code,
        *map(str, words),
    ]
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.requirement("AGT-3", "JIT-5")
def test_pdf_merges_two_files_that_the_person_named(here: Place, server: WireServer, sources: dict[str, str]) -> None:
    here.said("install", sources[ANTHROPICS], "--skill", "pdf")
    for name, pages in (("a.pdf", 2), ("b.pdf", 3)):
        (here.root / name).write_bytes(pdf(pages))
    says(
        server,
        call("read", file_path="forms.md"),
        call("write", file_path="merge.py", content=MERGE),
        call("run", command="python merge.py out.pdf a.pdf b.pdf", packages=["pypdf"]),
        Said(text="Merged into out.pdf."),
    )
    told = conversation(here, "/pdf merge a.pdf and b.pdf")
    print(told["asked"], answers(server))
    assert (told["exit_code"], len(told["asked"])) == (0, 1), told
    assert seen_by("pypdfium2", COUNT, workspace(here) / "out.pdf") == "5"
