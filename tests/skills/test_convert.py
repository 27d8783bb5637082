"""Any accepted layout becomes a canonical SKILL.md, and `validate` says what is wrong with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.cli.main import run
from navigator_kernel.errors import NotFound, NotLoadable, Refused, SkillNotFound
from navigator_kernel.skills.formats.frontmatter import split
from navigator_kernel.skills.formats.layouts import FORMATS
from navigator_kernel.skills.formats.manifest import read_manifest
from skill_repositories import make_repo, skill_text, snapshot

SOUND = "Reads PDF files. Use when somebody asks what a PDF says"
LAYOUTS = {
    "pdf/SKILL.md": skill_text("pdf", "reads files"),
    "pdf.md": "---\nname: pdf\ndescription: reads files\ntools: [read]\n---\nDo it.\n",
    "made/pdf.md": "# pdf\ndescription: reads files\ncategory: office\n\nDo it.\n",
    "commands/pdf.md": "---\ndescription: reads files\nargument-hint: file\n---\nRead $ARGUMENTS.\n",
    "pdf.mdc": "---\ndescription: reads files\nglobs: '*.pdf'\nalwaysApply: false\n---\nDo it.\n",
    "pdf.toml": 'description = "reads files"\nprompt = "Read {{args}}."\n',
}


@pytest.fixture
def written(tmp_path: Path) -> Path:
    """A folder with the same skill in every layout."""
    for name, text in LAYOUTS.items():
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_text(text)
    return tmp_path / "in"


@pytest.mark.requirement("LIF-15")
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_converted(project: Any, written: Path, name: str) -> None:
    answer = project.run("convert", path=str(written / name))
    skill = read_manifest(answer["text"].encode(), path=Path("pdf/SKILL.md"), folder=Path("pdf"))
    assert (skill.name, skill.description, answer["name"]) == ("pdf", "reads files", "pdf")
    assert answer["layout"] in FORMATS


@pytest.mark.requirement("LIF-15")
def test_unknown_keys_survive(project: Any, tmp_path: Path) -> None:
    text = "---\nname: a\ndescription: b\ncolour: {warm: [red, blue]}\ntags: [x, y]\n---\nDo it.\n"
    (tmp_path / "a.md").write_text(text)
    meta = split(project.run("convert", path=str(tmp_path / "a.md"))["text"].encode(), "a").meta
    assert meta["colour"] == {"warm": ["red", "blue"]}
    assert meta["metadata"] == {"navigator-tags": "x, y"}


@pytest.mark.requirement("LIF-15")
def test_a_converted_skill_is_written_where_it_is_wanted(project: Any, written: Path, tmp_path: Path) -> None:
    answer = project.run("convert", path=str(written / "pdf.toml"), out=str(tmp_path / "pdf"))
    assert (answer["out"], answer["changed"], "text" in answer) == (str(tmp_path / "pdf" / "SKILL.md"), True, False)
    assert "Read $ARGUMENTS." in (tmp_path / "pdf" / "SKILL.md").read_text()


def test_a_folder_is_converted_by_its_manifest(project: Any, written: Path) -> None:
    assert project.run("convert", path=str(written / "pdf"))["path"] == str(written / "pdf" / "SKILL.md")


def test_a_converted_skill_converts_to_itself(project: Any, written: Path, tmp_path: Path) -> None:
    out = str(tmp_path / "pdf" / "SKILL.md")
    project.run("convert", path=str(written / "pdf.mdc"), out=out)
    before = snapshot(tmp_path)
    assert project.run("convert", path=out, out=out)["changed"] is False
    assert snapshot(tmp_path) == before


def test_a_dry_run_of_convert_writes_nothing(project: Any, written: Path, tmp_path: Path) -> None:
    answer = project.run("convert", path=str(written / "pdf.md"), out=str(tmp_path / "pdf"), dry_run=True)
    assert not (tmp_path / "pdf").exists()
    project.run("convert", path=str(written / "pdf.md"), out=str(tmp_path / "pdf"))
    assert (tmp_path / "pdf" / "SKILL.md").read_text() == answer["text"]


def test_a_file_that_is_there_is_replaced_with_force_only(project: Any, written: Path, tmp_path: Path) -> None:
    out = tmp_path / "own.md"
    out.write_text("mine")
    with pytest.raises(Refused, match="already exists"):
        project.run("convert", path=str(written / "pdf.md"), out=str(out))
    assert out.read_text() == "mine"
    assert project.run("convert", path=str(written / "pdf.md"), out=str(out), force=True)["changed"] is True


@pytest.mark.parametrize("force", [True, False])
def test_convert_writes_through_no_link(project: Any, written: Path, tmp_path: Path, force: bool) -> None:
    (tmp_path / "real.md").write_text("mine")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    with pytest.raises(Refused, match="is a link"):
        project.run("convert", path=str(written / "pdf.md"), out=str(tmp_path / "link.md"), force=force)
    assert (tmp_path / "real.md").read_text() == "mine"


def test_a_skill_that_was_installed_is_not_rewritten(project: Any, tmp_path: Path) -> None:
    repo = make_repo(tmp_path, {"a/SKILL.md": skill_text("a", extra="tags: [x]\n")})
    project.run("install", source=f"file://{repo}")
    before = snapshot(project.root)
    with pytest.raises(Refused):
        project.run("convert", path=str(project.skills / "a"), out=str(project.skills / "a"), force=True)
    assert snapshot(project.root) == before


def test_a_skill_of_ones_own_can_be_rewritten(project: Any) -> None:
    own = project.skills / "a"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(skill_text("a", extra="tags: [x]\n"))
    assert project.run("convert", path=str(own), out=str(own), force=True)["changed"] is True
    assert "navigator-tags: x" in (own / "SKILL.md").read_text()


@pytest.mark.parametrize(("path", "error"), [("none.md", NotFound), (".", NotFound), ("empty.md", NotLoadable)])
def test_converting_a_missing_or_empty_manifest_raises_a_typed_error(
    project: Any, path: str, error: type[Exception]
) -> None:
    (project.root / "empty.md").write_text("")
    with pytest.raises(error):
        project.run("convert", path=path)


@pytest.mark.requirement("LIF-15")
def test_formats_names_every_layout(project: Any) -> None:
    assert project.run("formats") == {"formats": dict(FORMATS)}
    assert all(text and "\n" not in text for text in FORMATS.values())


def findings(answer: Any) -> set[tuple[str, str, int | None]]:
    return {(one["code"], one["level"], one["line"]) for skill in answer["skills"] for one in skill["findings"]}


@pytest.mark.requirement("LIF-15")
def test_a_sound_skill_has_no_findings(project: Any, tmp_path: Path) -> None:
    (tmp_path / "pdf").mkdir()
    (tmp_path / "pdf" / "SKILL.md").write_text(skill_text("pdf", SOUND))
    answer = project.run("validate", path=str(tmp_path / "pdf"), strict=True)
    assert (findings(answer), answer["count"], answer["exit_code"]) == (set(), 1, 0)


@pytest.mark.requirement("LIF-15")
@pytest.mark.parametrize(("strict", "level", "exit_code"), [(False, "warning", 0), (True, "error", 1)])
def test_strict_makes_an_error_of_every_rule(
    project: Any, tmp_path: Path, strict: bool, level: str, exit_code: int
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "SKILL.md").write_text(skill_text("a", SOUND))
    answer = project.run("validate", path=str(tmp_path / "b"), strict=strict)
    assert findings(answer) == {("name-folder", level, 2)}
    assert answer["exit_code"] == exit_code


def test_a_manifest_that_cannot_be_used_is_an_error(project: Any, tmp_path: Path) -> None:
    (tmp_path / "SKILL.md").write_text("---\nname: a\n")
    answer = project.run("validate", path=str(tmp_path / "SKILL.md"))
    assert (answer["errors"], answer["exit_code"], answer["skills"][0]["ok"]) == (1, 1, False)


def test_files_beside_the_manifest_count(project: Any, tmp_path: Path) -> None:
    (tmp_path / "a" / "evals").mkdir(parents=True)
    (tmp_path / "a" / "SKILL.md").write_text(skill_text("a") + "[more](more.md) and [less](less.md)\n")
    (tmp_path / "a" / "more.md").write_text("more")
    (tmp_path / "a" / "evals" / "evals.json").write_text("{")
    answer = project.run("validate", path=str(tmp_path / "a"))
    paths = {one["path"] for one in answer["skills"][0]["findings"]}
    said = " ".join(one["message"] for one in answer["skills"][0]["findings"])
    assert paths == {"SKILL.md", "evals/evals.json"}
    assert "less.md" in said and "more.md" not in said


def test_every_skill_of_a_folder_is_checked(project: Any, tmp_path: Path) -> None:
    texts = {"skills/a/SKILL.md": skill_text("a"), "skills/b/SKILL.md": "", "tests/c/SKILL.md": ""}
    repo = make_repo(tmp_path, texts)
    answer = project.run("validate", path=str(repo))
    assert [(one["name"], one["ok"]) for one in answer["skills"]] == [("a", True), ("b", False)]


def test_an_installed_skill_is_checked_by_its_name(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, {'a/SKILL.md': skill_text('a')})}")
    answer = project.run("validate", path="A", base=str(tmp_path))
    assert answer["skills"][0]["path"] == str(project.skills / "a" / "SKILL.md")


def test_a_word_that_is_nothing_suggests(project: Any, tmp_path: Path) -> None:
    project.run("install", source=f"file://{make_repo(tmp_path, {'alpha/SKILL.md': skill_text('alpha')})}")
    with pytest.raises(SkillNotFound) as caught:
        project.run("validate", path="alfa")
    assert caught.value.data["suggestions"] == ["alpha"]


def test_a_link_is_not_read(project: Any, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "SKILL.md").symlink_to("/etc/hostname")
    with pytest.raises(Refused, match="is a link"):
        project.run("validate", path=str(tmp_path / "a"))


# The command line


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that is the current folder."""
    root = tmp_path / "here"
    (root / "mybox").mkdir(parents=True)
    (root / "a").mkdir()
    (root / "a" / "SKILL.md").write_text(skill_text("b", SOUND))
    monkeypatch.chdir(root)
    return root


def test_validate_prints_file_line_level_and_code(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill", "validate", "a", "--strict"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith(f"{here / 'a' / 'SKILL.md'}:2: error: name-folder: ")
    assert err == "name-folder: Rename one of them\n1 skill, 1 error\n"


def test_a_folder_is_seen_from_where_the_person_is(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "a").rename(here / "mybox" / "a")
    monkeypatch.chdir(here / "mybox")
    assert run(["skill", "validate", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["skills"][0]["path"] == str(here / "mybox" / "a" / "SKILL.md")


@pytest.mark.requirement("LIF-15")
def test_convert_prints_what_it_does_not_write(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill", "convert", "a"]) == 0
    printed = capsys.readouterr().out
    assert run(["skill", "convert", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == printed
    assert printed.startswith("---\nname: b\n")


def test_formats_are_a_table_and_a_document(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["skill", "formats"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(FORMATS)
    assert run(["skill", "formats", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"exit_code": 0, "formats": dict(FORMATS)}


def test_export_and_import_lock_say_what_they_did(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = {"version": 1, "skills": {"x": {"source": "x", "sourceType": "node_modules"}}}
    (here / "skills-lock.json").write_text(json.dumps(lock))
    assert run(["skill", "import-lock"]) == 0
    assert "skipped x: it comes from an npm package" in capsys.readouterr().err
    (here / ".claude" / "skills").mkdir(parents=True)
    (here / "a").rename(here / ".claude" / "skills" / "b")
    assert run(["skill", "export", "b", "out", "--dry-run"]) == 0
    assert capsys.readouterr().out == f"would export b to {here / 'out' / 'b'}\n"
    assert run(["skill", "export", "b", "b.skill", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["target"] == str(here / "b.skill")
