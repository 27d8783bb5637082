"""An update with a planted growth is asked about, of every kind; one with a harmless edit is not (LIF-5, SAF-1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from cli.support import Place
from lifecycle.test_update_growth import SCRIPT, can
from skill_repositories import commit, make_repo
from skills.conftest import Project, make_project
from tables import table

pytestmark = pytest.mark.sample(1)

HEAD = "---\nname: {name}\ndescription: Greets people\n---\n"
BODY = "# Greet\n\nSay hello. Run `python scripts/greet.py NAME`.\n\n```bash\npython scripts/greet.py Ada\n```\n"


def files_of(name: str) -> dict[str, str]:
    return {f"{name}/SKILL.md": HEAD.format(name=name) + BODY, f"{name}/scripts/greet.py": SCRIPT}


# By kind: the file that changes, and what is added to it or put before its second line of dashes
PLANTED: Mapping[str, tuple[str, str]] = {name: (path, text) for name, path, text in table(__file__, "PLANTED")}


def grow(up: Path, names: Mapping[str, tuple[str, str]]) -> None:
    changed = {}
    for name, (path, text) in names.items():
        target = up / name / path
        before = target.read_text() if target.exists() else ""
        in_head = path == "SKILL.md" and re.match(r"[\w-]+:", text)
        changed[f"{name}/{path}"] = before.replace("\n---\n", f"\n{text}---\n", 1) if in_head else before + text
    commit(up, changed)


def install(tmp_path: Path, home: Path, names: list[str]) -> tuple[Project, Path]:
    up = make_repo(tmp_path, {path: text for name in names for path, text in files_of(name).items()}, name="up")
    project = make_project(tmp_path / "project", home)
    project.run("install", source=f"file://{up}", all=True)
    return project, up


def actions(result: Any) -> dict[str, str]:
    return {one["name"]: one["action"] for one in result["skills"]}


@pytest.mark.requirement("SAF-1")
def test_each_planted_growth_is_asked_about_and_nothing_is_written(tmp_path: Path, home: Path) -> None:
    planted = {name: growth for name, growth in PLANTED.items() if name != "finding"}  # no scanner is here
    project, up = install(tmp_path, home, [*planted, "calm"])
    grow(up, {**planted, "calm": ("SKILL.md", "\nBe kind.\n")})
    assert actions(project.run("update")) == {**dict.fromkeys(planted, "pending"), "calm": "updated"}
    for name in planted:
        assert (project.skills / name / "SKILL.md").read_text() == files_of(name)[f"{name}/SKILL.md"]


@pytest.mark.requirement("SAF-1")
def test_in_a_script_each_planted_growth_is_pending(tmp_path: Path) -> None:
    up = make_repo(tmp_path, {path: text for name in PLANTED for path, text in files_of(name).items()}, name="up")
    place = Place(root=tmp_path / "place")
    place.root.mkdir()
    assert place.run("skill", "install", f"file://{up}", "--all").code == 0
    grow(up, PLANTED)
    done = place.run("update")
    assert done.code == 9
    assert [name for name in PLANTED if f"{name} is pending" not in done.out + done.err] == []


def _outside(text: str, edit: Callable[[str], str]) -> str:
    """The text with the edit of everything outside fences."""
    parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(part if part.startswith("```") else edit(part) for part in parts)


def _sub(pattern: str, new: str, *, count: int = 0) -> Callable[[str], str]:
    return lambda text: _outside(text, lambda part: re.sub(pattern, new, part, count=count, flags=re.MULTILINE))


def _moved(text: str) -> str:
    parts = re.split(r"(?m)^(?=## )", text)
    return "".join([parts[0], *(part.rstrip("\n") + "\n\n" for part in reversed(parts[1:]))])


def _added(more: str) -> Callable[[str], str]:
    return lambda text: f"{text}\n{more}\n"


EDITS: Mapping[str, Callable[[str], str]] = {
    "a typo": _sub(r" the ", " teh ", count=1),
    "renamed headings": _sub(r"^## (.*)$", r"## About \1"),
    "shorter lines": _sub(r"([a-z,]) ([a-z])", "\\1\n\\2", count=40),
    "longer lines": _sub(r"([a-z,])\n([a-z])", r"\1 \2"),
    "other bullets": _sub(r"^- ", "* "),
    "other bold": _sub(r"\*\*([^*\n]+)\*\*", r"__\1__"),
    "other numbers": _sub(r"^(\d)\. ", r"\1) "),
    "other quotes": _sub("'", "’"),
    "more blank lines": _sub(r"\n## ", "\n\n\n## "),
    "blanks at ends": _sub(r"(?<=[a-z.])\n", "  \n"),
    "moved sections": _moved,
    "other line ends": lambda text: text.replace("\n", "\r\n"),
    **{name: _added(more) for name, more in table(__file__, "ADDED").items()},
}
REAL = sorted((Path(__file__).resolve().parents[2] / ".claude/skills").glob("*/SKILL.md"))


@pytest.mark.parametrize("edit", EDITS)
def test_a_harmless_edit_of_a_real_skill_is_not_asked_about(edit: str) -> None:
    assert len(REAL) >= 3
    for path in REAL:
        head, body = re.split(r"(?<=\n---\n)", path.read_text("utf-8"), maxsplit=1)
        assert can({"SKILL.md": head + EDITS[edit](body)}) == can({"SKILL.md": head + body}), path.parent.name
