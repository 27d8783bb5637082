"""What git is asked for the addresses that people copy from a browser, a clone button or a message."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest

from navigator_kernel.errors import FetchFailed, KernelError, UsageProblem
from navigator_kernel.skills.source.address import parse_source
from navigator_kernel.skills.source.reading import SourceReader, open_source
from skill_repositories import git, make_repo, skill_text
from tables import cases

# A git that writes down what it is asked: it knows a few branches and tags, and fetches nothing
RECORDER = """#!/bin/sh
for word in "$@"; do case "$word" in remote.origin.url=*) url=${word#*=};; esac; done
for word in "$@"; do last=$word; done
case " $* " in
  *" ls-remote "*)
    echo "ls-remote $url" >> RECORD
    for name in heads/main heads/dev heads/feature/x tags/v1 tags/v1.2; do
      printf '%040d\\trefs/%s\\n' 1 "$name"
    done;;
  *" fetch "*) echo "fetch $url $last" >> RECORD; echo "fatal: nothing is sent" >&2; exit 128;;
  *" --batch-check "*) cat;;
esac
"""


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which every request of git's stands."""
    record = tmp_path / "asked"
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(RECORDER.replace("RECORD", str(record)))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    return record


@pytest.mark.requirement("LIF-2")
@cases("address, url, ref, path")
def test_git_is_asked_for_the_repository_and_the_ref_of_an_address(
    asked: Path, address: str, url: str, ref: str, path: str
) -> None:
    source = parse_source(address, base=Path("/srv"))
    tree = open_source(source)
    with pytest.raises(FetchFailed, match="nothing is sent"), tree:
        pass
    requests = asked.read_text().splitlines()
    assert requests[-1] == f"fetch {url} {ref}"
    assert {line.split(" ")[1] for line in requests} == {url}
    assert (source.subpath or getattr(tree, "subpath", "")) == path
    assert len(requests) == (2 if ref.startswith("refs/") else 1)  # only the server can divide a page


@cases("address, url, ref")
def test_the_page_of_a_package_means_the_package(address: str, url: str, ref: str) -> None:
    source = parse_source(address, base=Path("/srv"))
    assert (source.kind, source.url, source.ref) == ("web", url, ref)


@cases("address, skill, ref")
def test_the_skill_that_an_address_or_a_pasted_line_names_is_meant(address: str, skill: str, ref: str) -> None:
    source = parse_source(address, base=Path("/srv"))
    assert (source.skill, source.ref) == (skill, ref)


@cases("line, label, ref, skills")
def test_a_pasted_line_means_the_skills_that_it_names(line: str, label: str, ref: str, skills: tuple[str, ...]) -> None:
    source = parse_source(line, base=Path("/srv"))
    assert (source.label, source.ref, source.skill, source.skills) == (label, ref, "", skills)


def test_the_skills_of_a_pasted_line_are_installed_with_those_of_the_option(project: Any, repo: Path) -> None:
    result = project.run("install", source=f"npx skills add file://{repo} --skill pdf", skill="docx")
    assert [one["name"] for one in result["skills"]] == ["pdf", "docx"]


@pytest.mark.parametrize("mark", ["#", "@"])
def test_a_ref_behind_a_local_repository_is_read(repo: Path, mark: str) -> None:
    bare = repo.parent / "bare.git"
    git(repo, "clone", "--quiet", "--bare", ".", str(bare))
    source = parse_source(f"./bare.git{mark}pdf-2", base=repo.parent)
    assert (source.url, source.ref) == (f"file://{bare}", "pdf-2")
    with pytest.raises(UsageProblem, match="a folder has no refs"):
        parse_source(f"./{repo.name}{mark}pdf-2", base=repo.parent)
    (repo.parent / f"bare.git{mark}pdf-2").mkdir()
    assert parse_source(f"./bare.git{mark}pdf-2", base=repo.parent).kind == "folder"


@cases("address, hint")
def test_the_error_for_an_address_without_a_repository_says_how_to_write_it(address: str, hint: str) -> None:
    with pytest.raises(KernelError) as caught:
        parse_source(address, base=Path("/srv"))
    assert hint in caught.value.hint


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = make_repo(tmp_path, {f"skills/{name}/SKILL.md": skill_text(name) for name in ("pdf", "docx")})
    git(made, "branch", "pdf-2")
    return made


def found(repo: Path, **parts: str) -> tuple[list[str], str, str]:
    source = parse_source("owner/repo@word", base=Path("/"))
    fields = {**{name: getattr(source, name) for name in source.__struct_fields__}, "url": f"file://{repo}", **parts}
    source = type(source)(**fields)
    with open_source(source) as tree:
        reader = SourceReader(source, tree)
        skills = [skill.name for skill in reader.find()]
        return skills, reader.source.ref, reader.source.skill


def test_the_word_behind_an_at_sign_is_the_skill_if_there_is_no_such_ref(repo: Path) -> None:
    assert found(repo, ref="pdf", skill="pdf") == (["pdf"], "", "pdf")
    assert found(repo, ref="pdf-2", skill="pdf-2") == (["docx", "pdf"], "pdf-2", "")
    with pytest.raises(FetchFailed, match="no branch, tag, commit or skill called 'pdg'") as caught:
        found(repo, ref="pdg", skill="pdg")
    assert "pdf" in caught.value.hint


def test_the_path_of_a_manifest_means_its_folder(repo: Path) -> None:
    assert found(repo, ref="", skill="", subpath="skills/pdf/SKILL.md")[0] == ["pdf"]


def test_a_repository_with_long_ids_is_refused_with_a_way_around(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--object-format=sha256", "long")
    (tmp_path / "long" / "SKILL.md").write_text(skill_text("long"))
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid")
    git(tmp_path / "long", "add", "--all")
    git(tmp_path / "long", *who, "commit", "--quiet", "--message", "a change")
    with pytest.raises(FetchFailed) as caught, open_source(parse_source(f"file://{tmp_path}/long", base=tmp_path)):
        pass
    assert "SHA-256" in caught.value.hint


def test_an_empty_repository_is_called_so(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "empty")
    with pytest.raises(FetchFailed) as caught, open_source(parse_source(f"file://{tmp_path}/empty", base=tmp_path)):
        pass
    assert "the repository is empty" in caught.value.hint


@cases("said, first, hint")
def test_the_reason_that_ssh_gives_is_shown_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, first: str, hint: str
) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{said}\nEND\nexit 255\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)
    with pytest.raises(FetchFailed) as caught, open_source(parse_source("git@git.example.org:o/r.git", base=tmp_path)):
        pass
    assert caught.value.message.partition("failed: ")[2].startswith(first)
    assert hint in caught.value.hint


def test_a_windows_path_is_not_a_host() -> None:
    with pytest.raises(UsageProblem, match="not a source"):
        parse_source("C:/skills/x", base=Path("/"))
