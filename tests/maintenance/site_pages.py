"""Makes the pages of the site that come from other pages: both home pages and `llms.txt`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from navigator_kernel.cli.commands.docs import first_sentence

TOP = Path(__file__).resolve().parents[2]
DOCS = TOP / "docs"


def home_page(readme: str, *, at: str) -> str:
    """A README as a page of the folder `at` below `docs/`, `.` or `zh`, without the link to the other README and the
    marks of its generated part."""
    back = "" if at == "." else "../"
    text = (TOP / readme).read_text("utf-8").replace("](docs/decisions)", "](docs/decisions/README.md)")
    text = re.sub(r"^\[\S+\]\(README[^)]*\)\n\n", "", text, flags=re.MULTILINE)
    text = re.sub(r"<!-- \[\[\[(?:cog.*?|end)\]\]\] -->\n", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\(docs/([^)]+)\)", lambda found: f"]({_translated(found[1], at) or back + found[1]})", text)
    head, _, rest = text.partition("\n")
    return f"{head}\n\n<!-- generated from {readme} by tests/maintenance/generate.py; edit that file -->\n{rest}"


def llms_text() -> str:
    """A list of all pages with their first sentences, in the format of llmstxt.org."""
    summary = (TOP / "README.md").read_text("utf-8").split("\n\n")[1].replace("\n", " ")
    lines = ["# Navigator Kernel", "", f"> {summary}"]
    lines += [line for title, pages in sections() for line in ("", f"## {title}", "", *map(_entry, pages))]
    chinese = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.glob("zh/**/*.md"))
    return "\n".join([*lines, "", "## Optional", "", *map(_entry, chinese)]) + "\n"


def sections() -> Iterator[tuple[str, list[str]]]:
    """Title → pages, of the navigation."""
    config: dict[str, Any] = yaml.safe_load((TOP / "mkdocs.yml").read_text("utf-8"))
    for entry in config["nav"]:
        yield from entry.items() if isinstance(entry, dict) else ()


def decision_rows() -> Iterator[str]:
    """One line for each decision record."""
    for path in sorted(DOCS.glob("decisions/0*.md")):
        number, title = re.findall(r"^# (\d+)\.? (.+)$", path.read_text("utf-8"), re.MULTILINE)[0]
        yield f"| {number} | [{title}]({path.name}) |"


def library_blocks() -> Iterator[str]:
    """What mkdocstrings reads for each public name of the library, with its public members."""
    from maintenance.public_surface import library

    for name, members in library():
        if name in {"__version__", "hookimpl"}:
            continue
        shown = [member for member in members if member != "()"]
        yield f"::: navigator_kernel.{name}\n    options:\n      members: [{', '.join(shown)}]\n"


def _translated(page: str, at: str) -> str:
    """`page` where it is there in the language of `at`, else nothing."""
    return page if at != "." and (DOCS / at / page).is_file() else ""


def _entry(page: str) -> str:
    text = (DOCS / page).read_text("utf-8")
    title = re.findall(r"^# (.+)$", text, re.MULTILINE)[0]
    address = re.sub(r"README\.md$", "index.md", page).removesuffix(".md") + ".html"
    return f"- [{title}]({address}): {first_sentence(text)}"
