"""`info` lists the skills of a source and what an install of it would report (LIF-1; issue 4, item 7)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from cli.support import place_in
from navigator_kernel.skills.install.deps import open_source_tree
from navigator_kernel.skills.install.info import analyse
from navigator_kernel.skills.options import InstallOptions
from navigator_kernel.skills.source.address import Source
from navigator_kernel.skills.source.reading import SourceReader
from navigator_kernel.values.receipt import NOT_SCANNED
from navigator_kernel.values.resource import Diagnostic, SkillDef
from skill_repositories import add_raw, git, make_repo, skill_text
from skills.conftest import Maker, Project

MARKETPLACE = {"plugins": [{"name": "office", "source": "./office"}, {"name": "", "source": "./none"}]}
FILES = {
    "office/skills/alpha/SKILL.md": skill_text("alpha", extra="license: MIT\nallowed-tools: Read, Bash\n"),
    "office/skills/alpha/run.py": "print(1)\n",
    "beta/SKILL.md": skill_text("beta", extra="command: python {skill_root}/draw.py\n"),
    "beta/draw.py": "print(2)\n",
    "examples/gamma/SKILL.md": skill_text("gamma"),
    ".claude-plugin/marketplace.json": json.dumps(MARKETPLACE),
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return make_repo(tmp_path, FILES)


class Scanner:
    """A scanner that returns given findings, and records the files it got."""

    def __init__(self, *found: Diagnostic) -> None:
        self.found, self.seen = found, dict[str, list[str]]()

    def __call__(self, skill: SkillDef, files: Mapping[str, bytes]) -> Sequence[Diagnostic]:
        self.seen[skill.name] = sorted(files)
        return self.found


def finding(level: Any, code: str = "shell") -> Diagnostic:
    return Diagnostic(code=code, level=level, path="run.py", message="starts a\u202e shell", line=1)


@pytest.mark.requirement("LIF-1")
@pytest.mark.parametrize(("level", "verdict"), [("warning", "warn"), ("error", "block")])
def test_info_shows_the_scanner_findings_of_a_named_skill(maker: Maker, repo: Path, level: str, verdict: str) -> None:
    scanner = Scanner(finding(level))
    project = maker(scan=scanner)
    (alpha,) = project.run("info", source=f"file://{repo}", skill="alpha")["skills"]
    assert scanner.seen == {"alpha": ["SKILL.md", "run.py"]}
    assert alpha["verdict"] == verdict
    told = {"code": "shell", "level": level, "path": "run.py", "message": "starts a shell", "line": 1}
    assert alpha["findings"] == [told]
    assert not (project.skills / "alpha").exists()


@pytest.mark.parametrize(
    ("scan", "verdict"),
    [(None, "not_scanned"), (Scanner(), "ok"), (Scanner(finding("warning", NOT_SCANNED)), "not_scanned")],
    ids=["none", "clean", "failed"],
)
def test_info_distinguishes_a_clean_skill_from_one_that_was_not_scanned(
    maker: Maker, repo: Path, scan: Any, verdict: str
) -> None:
    (beta,) = maker(scan=scan).run("info", source=f"file://{repo}", skill="beta")["skills"]
    assert (beta["verdict"], beta["findings"] == []) == (verdict, scan is None or not scan.found)


def test_files_of_skills_that_are_not_named_are_neither_read_nor_scanned(maker: Maker, repo: Path) -> None:
    scanner = Scanner(finding("error"))
    skills = maker(scan=scanner).run("info", source=f"file://{repo}")["skills"]
    assert [(one["size"], one["findings"], one["verdict"]) for one in skills] == [(None, None, "not_scanned")] * 3
    assert scanner.seen == {}


def test_info_shows_a_link_out_of_a_skill_as_a_blocking_finding(project: Project, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a")}, name="odd")
    add_raw(repo, {"a/secret": ("120000", b"/etc/passwd")})
    (told,) = project.run("info", source=f"file://{repo}", skill="a")["skills"]
    assert (told["verdict"], [one["level"] for one in told["findings"]]) == ("block", ["error"])
    assert (told["findings"][0]["code"], "secret" in told["findings"][0]["message"]) == ("unsafe-files", True)


@pytest.mark.requirement("LIF-1")
def test_info_shows_the_plugin_and_the_role_of_each_skill(project: Project, repo: Path) -> None:
    skills = project.run("info", source=f"file://{repo}")["skills"]
    told = {one["name"]: (one["plugin"], one["role"]) for one in skills}
    assert told == {"alpha": ("office", "skill"), "beta": ("", "skill"), "gamma": ("", "example")}


def test_info_reports_an_odd_plugin_name_in_the_marketplace_file(project: Project, repo: Path) -> None:
    (problem,) = project.run("info", source=f"file://{repo}")["problems"]
    assert (problem["code"], problem["path"]) == ("plugin-name-odd", ".claude-plugin/marketplace.json")


def test_info_splits_the_page_of_a_folder_into_an_existing_ref_and_a_subpath(project: Project, repo: Path) -> None:
    git(repo, "branch", "feature/new")
    source = Source(kind="git", url=f"file://{repo}", label="o/r", page="feature/new/office/skills")
    deps = project.lifecycle.deps
    with open_source_tree(source, deps, InstallOptions()) as tree:
        answer = analyse(SourceReader(source, tree), (), deps)
    assert (answer.ref, answer.subpath) == ("feature/new", "office/skills")
    assert [one["name"] for one in answer.skills] == ["alpha"]


@pytest.mark.wide
def test_the_command_line_shows_the_question_before_an_install(tmp_path: Path, repo: Path) -> None:
    place, source = place_in(tmp_path), f"file://{repo}"
    seen = place.run("skill", "info", source)
    head, alpha = seen.out.splitlines()[0], next(line for line in seen.out.splitlines() if line.startswith("alpha"))
    assert head.split() == ["skill", "type", "licence", "bytes", "tools", "scripts", "plugin", "description"]
    assert alpha.split()[:8] == ["alpha", "B", "MIT", "-", "Read,", "Bash", "1", "office"]
    assert "plugin-name-odd" in seen.err
    assert "sizes and findings are shown for skills named with --skill" in seen.err
    named = place.run("skill", "info", source, "--skill", "beta")
    size = sum(len(FILES[f"beta/{name}"]) for name in ("SKILL.md", "draw.py"))
    assert named.out.splitlines()[1].split()[:4] == ["beta", "A", "-", str(size)]
    assert "beta: runs python {skill_root}/draw.py" in named.out
    assert "beta: script draw.py" in named.out
    assert "named with --skill" not in named.err
