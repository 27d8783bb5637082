"""link-check: it finds the links that were made to lead nowhere, and no others."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from shipped.place import ESCAPES, Place
from skill_repositories import git
from tables import cases, table

pytestmark = pytest.mark.sample(1)

FORMS = table(__file__, "FORMS")
PLACES = ("README.md", "docs/a.md", "docs/deep/b.md", "docs/中文.md", "img/x (1).png", "src/code.py")


def planted(place: Place, seed: int) -> tuple[list[tuple[str, int, str]], int]:
    """File, line and reason of the links that lead nowhere, and the number of all links."""
    dice = random.Random(seed)
    broken: list[tuple[str, int, str]] = []
    total = 0
    place.write("img/x (1).png", b"\x89PNG")
    place.write("src/code.py", "")
    for source in PLACES[:4]:
        lines = ["# Top", "## Second part", "## Second part"]
        for _ in range(30):
            target, reason = a_link(dice, source)
            form = dice.choice([form for form in FORMS if "<{}>" not in form or "%" not in target])
            lines += ["", form.format(target)]
            broken += [(source, len(lines), reason)] if reason else []
            total += 1
        place.write(source, "\n".join(lines))
    return broken, total


def a_link(dice: random.Random, source: str) -> tuple[str, str]:
    """A relative link from `source`, and the reason why it leads nowhere, empty if it is valid."""
    target = dice.choice(PLACES)
    up = "../" * source.count("/")
    written = up + quote(target) if dice.random() < 0.8 else f"/{quote(target)}"
    match dice.randrange(6):
        case 0:
            return f"{up}docs/gone-{dice.randint(0, 9)}.md", "no such file"
        case 1:
            return f"{up}../elsewhere.md", "outside"
        case 2 if target.endswith(".md"):
            return f"{written}#nothing-of-the-kind", "no such heading"
        case 3 if target.endswith(".md"):
            return f"{written}#{dice.choice(('top', 'second-part', 'second-part-1'))}", ""
        case 4:
            return "#second-part", ""
        case _:
            return written, ""


def told(data: Any) -> list[tuple[str, int, str]]:
    return [(link["file"], link["line"], link["reason"]) for link in data["broken"]]


@pytest.mark.parametrize("seed", range(6))
def test_the_broken_links_are_those_that_were_planted(place: Place, seed: int) -> None:
    broken, total = planted(place, seed)
    data = place.data("/link-check")
    assert sorted(told(data)) == sorted(broken)
    assert (data["links"], data["total"], data["files"]) == (total, len(broken), 4)
    assert data["reasons"] == {reason: sum(link[2] == reason for link in broken) for reason in data["reasons"]}


@cases("heading, anchor")
def test_an_anchor_is_made_as_github_makes_it(place: Place, heading: str, anchor: str) -> None:
    place.write("a.md", f"{heading}\n\n[there](#{quote(anchor)}) and [not](#{quote(anchor)}x)\n")
    data = place.data("/link-check")
    assert [link["link"] for link in data["broken"]] == [f"#{quote(anchor)}x"]


@cases("text")
def test_text_that_is_not_a_link_is_not_counted_as_a_link(place: Place, text: str) -> None:
    place.write("a.md", f"{text}\n")
    assert place.data("/link-check")["links"] == 0


def test_links_after_a_code_block_a_comment_or_inline_code_are_checked(place: Place) -> None:
    place.write(
        "a.md",
        "```\ncode\n```\n[a](x.md)\n<!-- b --> [c](y.md) <!--\n--> [d](z.md)\n`e` [f](w.md) `g`\n```py` no block\n[h](v.md)\n",
    )
    assert [link["link"] for link in place.data("/link-check")["broken"]] == ["x.md", "y.md", "z.md", "w.md", "v.md"]


def test_external_links_are_counted_and_nothing_more(place: Place) -> None:
    place.write(
        "a.md",
        "[a](https://no.such.host.invalid/x) [b](mailto:a@b.c) [c](//host/x) <https://d.invalid>\n[e]: ftp://f/\n",
    )
    data = place.data("/link-check")
    assert (data["external"], data["links"], data["total"]) == (5, 0, 0)


@cases("link")
def test_a_link_that_leads_somewhere_is_not_broken(place: Place, link: str) -> None:
    for name in ("sub/b.md", "b c.md", "b(1).md", "b&d.md"):
        place.write(name, "# B\n")
    place.write("code.py", "")
    place.write("a.md", f"# A\n[x]({link})\n")
    data = place.data("/link-check")
    assert (data["broken"], data["links"]) == ([], 1)


@cases("text, links")
def test_a_folder_a_file_or_the_project_is_looked_at(place: Place, text: str, links: int) -> None:
    place.write("README.md", "[a](docs/a.md)")
    place.write("docs/a.md", "[a](../README.md) [b](b.md)")
    place.write("docs/b.md", "")
    data = place.data(text)
    assert (data["links"], data["total"]) == (links, 0)


def test_nothing_outside_the_project_is_looked_at(place: Place) -> None:
    secret = place.root.parent / "secret.md"
    secret.write_text("# There")
    (place.root / "out.md").symlink_to(secret)
    (place.root / "etc").symlink_to("/etc")
    place.write(
        "a.md", "[a](../secret.md)\n[b](out.md#gone)\n[c](etc/passwd)\n[d](/../secret.md)\n[e](../nowhere.md)\n"
    )
    data = place.data("/link-check")
    assert (data["reasons"], data["files"]) == ({"outside": 5}, 1)


@pytest.mark.parametrize("link", ["x" * 300, "x/" * 3_000, "\x1b[31mx", "%00", "%ff%fe", "~", "*", "a.md/b", "😀.md"])
def test_an_odd_broken_link_is_shown_in_at_most_300_printable_characters(place: Place, link: str) -> None:
    place.write("a.md", f"[x]({link})\n")
    (found,) = place.data("/link-check")["broken"] or [{"link": ""}]
    assert len(found["link"]) <= 300 and found["link"].isprintable()


@pytest.mark.parametrize(
    ("content", "unreadable"), [(b"", 0), (b"[a](x\xff.md)", 0), (b"\0[a](x.md)", 1), (b"x" * (5 * 2**20), 1)]
)
def test_a_file_that_cannot_be_read_is_counted(place: Place, content: bytes, unreadable: int) -> None:
    place.write("a.md", content)
    place.write("b.md", "")
    data = place.data("/link-check")
    assert (data["files"], data["skipped"].get("unreadable", 0)) == (2 - unreadable, unreadable)


def test_more_links_than_are_listed_are_counted(place: Place) -> None:
    place.write(f"a{ESCAPES}.md", "[a](gone.md)\n" * 500)
    data = place.script("link-check").data
    assert (data["total"], data["listed"], data["broken"][0]["file"]) == (500, 200, "ared .md")
    assert data["text"].splitlines()[-1] == "and 300 more"


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "line",
    [
        "[" * 19_000,
        "](" * 9_000,
        "](<" * 6_000,
        "<a " * 6_000,
        "`" * 19_000,
        "`a``b" * 4_000,
        "<!--" * 4_000,
        "# " + " #" * 9_000,
        "{#" * 9_000,
        "](a(" * 4_000,
    ],
)
def test_no_line_takes_long(place: Place, line: str) -> None:
    place.write("a.md", f"{line}\n" * 50 + "[x](#none)")
    assert place.script("link-check").data["files"] == 1


@pytest.mark.parametrize("name", ["nowhere", "../elsewhere"])
def test_a_path_that_is_missing_or_outside_the_project_is_named_in_one_line(place: Place, name: str) -> None:
    assert repr(name) in place.script("link-check", name).complaint


def test_the_documentation_of_this_project_has_no_broken_links() -> None:
    top = Path(__file__).parents[2]
    place = Place(root=top)
    broken = [link for folder in ("docs", ".claude/skills") for link in check(place, top / folder)["broken"]]
    assert broken == []


def check(place: Place, folder: Path) -> Any:
    return place.script("link-check", "--path", folder).data


TREE: dict[str, bytes] = {
    "README.md": b"# Shop\n[a](docs/guide.md) [b](LICENSE) ![c](img/logo.png)\n[d](docs/guide.md#orders) [e](#shop)\n",
    "docs/guide.md": "## Orders\n[a](setup.md)\n[b](#none)\n[c](../README.md)\n[d](部署.md)\n".encode(),
    "docs/setup.md": b"# Setup\n[site](https://example.invalid/x) [a](guide.md#orders)\n",
    "docs/部署.md": "# 部署\n[常见问题](问题.md)\n[旧](旧版/部署.md)\n[节](#部署)\n[无](#没有)\n".encode(),
    "docs/问题.md": "# 问题\n[部署](部署.md#部署)\n![图](../img/图.png)\n".encode("gb18030"),
    "docs/宽字符.md": "# 宽\n[a](没有.md)\n[b](问题.md#问题)\n".encode("utf-16"),
    "手册/第 1 章.md": "# 一\n[下一章](第%202%20章.md)\n[图](../img/图.png)\n[目录](目录.md#目录)\n".encode(),
    "手册/第 2 章.md": "# 二\n[上一章](第%201%20章.md#一)\n[缺](第%203%20章.md)\n".encode(),
    "手册/目录.md": "# 目录\n[一](第%201%20章.md)\n[二](第%202%20章.md#三)\n".encode(),
    "img/logo.png": b"x",
    "img/图.png": b"x",
    "notes.md": b"no link\n",
    "all good/a.md": b"# A\n[b](b.md#b)\n",
    "all good/b.md": b"# B\n[a](a.md#a)\n",
    ".gitignore": b"build/\n",
    "build/out.md": b"[a](gone.md)\n",
    "vendor/lib/README.md": b"[a](gone.md) [b](also-gone.md)\n",
    "vendor/库/说明.md": "[a](没有.md)\n".encode(),
    ".claude/skills/a/SKILL.md": b"[a](gone.md)\n",
    "node_modules/p/README.md": b"[a](gone.md)\n",
}
NOT_OURS = ("build/", "vendor/", ".claude/", "node_modules/")
EVERYDAY = (  # language, what is named
    *(("en", name) for name in (".", "docs", "README.md", "docs/guide.md", "docs/setup.md", "notes.md", "all good")),
    *(("en", name) for name in ("vendor", "build", "node_modules/p")),
    *(("zh", name) for name in (".", "手册", "手册/第 1 章.md", "手册/第 2 章.md", "手册/目录.md", "docs/部署.md")),
    *(("zh", name) for name in ("docs/问题.md", "docs/宽字符.md", "vendor/库", "docs")),
)


@pytest.fixture
def project(place: Place) -> Place:
    for name, content in TREE.items():
        place.write(name, content)
    git(place.root, "init", "--quiet")
    return place


def text_of(content: bytes) -> str:
    if content[:2] == b"\xff\xfe":
        return content.decode("utf-16")
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content.decode("gb18030")


def leads_nowhere(root: Path, source: str, target: str) -> bool:
    """Computed again, for the plain headings of `TREE`."""
    written, _, anchor = target.replace("%20", " ").partition("#")
    path = (root / source).parent / written if written else root / source
    headings = re.findall(r"(?m)^#+ (.*)$", text_of(path.read_bytes())) if path.is_file() and anchor else []
    return not path.exists() or (bool(anchor) and anchor not in [heading.lower() for heading in headings])


@pytest.mark.parametrize(("language", "named"), EVERYDAY)
def test_the_broken_links_of_what_is_named_are_found(project: Place, language: str, named: str) -> None:
    inside = [name for name in TREE if name.endswith(".md") and (named in {".", name} or name.startswith(f"{named}/"))]
    inside = [name for name in inside if not name.startswith(NOT_OURS) or f"{named}/".startswith(NOT_OURS)]
    every = [(name, target) for name in inside for target in re.findall(r"\]\(([^)]*)\)", text_of(TREE[name]))]
    relative = [(name, target) for name, target in every if "://" not in target]
    broken = [(name, target) for name, target in relative if leads_nowhere(project.root, name, target)]
    data = project.answer("link-check", "--", named, language=language)
    counts = (data["files"], data["links"], data["external"], data["total"])
    assert counts == (len(inside), len(relative), len(every) - len(relative), len(broken))
    shown = re.findall(r"(?m)^(.*):\d+ (\S+) \(", data["text"])
    assert sorted(shown) == sorted(broken)
    source = named if named != "." else {"en": "the project", "zh": "整个项目"}[language]
    numbers = (
        f"{len(broken)} of {len(relative)} " if language == "en" else f"{len(relative)} 个相对链接中有 {len(broken)} 个"
    )
    assert data["summary"].startswith(source) and numbers in data["summary"]


@cases("language, named, summary")
def test_the_summary_is_a_sentence_of_the_persons_language(
    project: Place, language: str, named: str, summary: str
) -> None:
    assert project.answer("link-check", named, language=language)["summary"] == summary


def test_a_folder_without_markdown_is_an_error(project: Place) -> None:
    assert project.script("link-check", "img").complaint == "there is no Markdown file in 'img'"
