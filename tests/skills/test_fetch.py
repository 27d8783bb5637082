"""From the source that a person names to the skills in it."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from navigator_kernel.adapters.sources.git import GitSource
from navigator_kernel.adapters.sources.local import ArchiveSource, FolderSource
from navigator_kernel.adapters.sources.repo_cache import RepoCache
from navigator_kernel.errors import FetchFailed, KernelError, Refused
from navigator_kernel.skills.source.address import Source, parse_source
from navigator_kernel.skills.source.gate import admit
from navigator_kernel.skills.source.reading import SourceReader, open_source
from skill_repositories import GitCount, git, make_repo, skill_text
from tables import cases

FILES = {
    "skills/pdf/SKILL.md": skill_text("pdf"),
    "skills/pdf/run.py": "print(1)\n",
    "skills/docx/SKILL.md": skill_text("docx"),
}


def at_page(repo: Path, url: str) -> Source:
    """The source that the GitHub page `url` names, read from `repo` instead."""
    return replace(parse_source(url, base=repo), url=f"file://{repo}")


def names(source: Source, **given: Any) -> list[str]:
    with open_source(source, **given) as tree:
        return [found.name for found in SourceReader(source, tree).find()]


@pytest.mark.requirement("LIF-15")
@cases("page, ref, subpath, found", lists=True)
def test_the_page_of_a_folder_or_a_file_names_the_skills_there(
    tmp_path: Path, page: str, ref: str, subpath: str, found: list[str]
) -> None:
    repo = make_repo(tmp_path, FILES)
    git(repo, "branch", "feature/new")
    git(repo, "tag", "v1")
    source = at_page(repo, f"https://github.com/o/r/{page}")
    with open_source(source) as tree:
        reader = SourceReader(source, tree)
        assert [one.name for one in reader.find()] == found
        assert (reader.source.ref, reader.source.subpath, reader.source.page) == (ref, subpath, "")
        assert reader.source.label == "o/r"


@pytest.mark.requirement("LIF-15")
def test_a_path_behind_the_repository_names_the_skills_below_it(tmp_path: Path) -> None:
    repo = make_repo(tmp_path, FILES)
    source = replace(parse_source("o/r/skills/pdf@main", base=tmp_path), url=f"file://{repo}")
    assert names(source) == ["pdf"]


def test_a_page_of_an_unknown_branch_is_a_fetch_failure_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FetchFailed, match="gone/a"):
        names(at_page(make_repo(tmp_path, FILES), "https://github.com/o/r/tree/gone/a"))


def test_each_kind_of_source_is_opened_as_what_it_is(tmp_path: Path) -> None:
    for text, kind in (("./a", FolderSource), ("./a.skill", ArchiveSource), ("file:///a", GitSource)):
        assert type(open_source(parse_source(text, base=tmp_path))) is kind


def test_a_kept_commit_is_read_without_a_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo, cache = make_repo(tmp_path, FILES), RepoCache(tmp_path / "cache")
    source = parse_source(f"file://{repo}#{git(repo, 'rev-parse', 'HEAD').strip()}", base=tmp_path)
    count = GitCount(tmp_path, monkeypatch)
    assert names(source, cache=cache) == ["docx", "pdf"]
    assert count.network()
    assert names(source, cache=cache) == names(source, cache=cache, offline=True) == ["docx", "pdf"]
    assert count.network() == []


def pack(path: Path, files: dict[str, str], links: dict[str, str] | None = None) -> Path:
    with zipfile.ZipFile(path, "w") as made:
        for name, text in files.items():
            made.writestr(name, text)
        for name, target in (links or {}).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o120777 << 16
            made.writestr(info, target)
    return path


def pack_tar(path: Path, files: dict[str, str]) -> Path:
    with tarfile.open(path, "w" if path.suffix == ".tar" else "w:gz") as made:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            made.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.mark.requirement("LIF-15")
@pytest.mark.parametrize("name", ["pdf.skill", "pdf.zip", "pdf.tar", "pdf.tar.gz", "pdf.tgz"])
@pytest.mark.parametrize("folder", ["", "pdf/", "some-name-1.2/skills/pdf/"])
def test_the_skill_in_an_archive_is_found_and_read(tmp_path: Path, name: str, folder: str) -> None:
    maker = pack if name.endswith((".skill", ".zip")) else pack_tar
    maker(tmp_path / name, {f"{folder}SKILL.md": skill_text("pdf"), f"{folder}run.py": "print(1)\n"})
    source = parse_source(f"./{name}", base=tmp_path)
    with open_source(source) as tree:
        reader = SourceReader(source, tree)
        (found,) = reader.find()
        assert found.name == "pdf"
        assert not isinstance(reader.manifest(found), KernelError)
        files = admit(found, {})
        held = reader.read(file.oid for file in files)
        assert {file.path: held[file.oid] for file in files}["run.py"] == b"print(1)\n"
        assert tree.commit == tree.tree == ""


@pytest.mark.parametrize(("target", "whole"), [("run.py", True), ("../../../x", False), ("/etc/passwd", False)])
def test_a_link_in_an_archive_is_judged_as_one_in_a_repository(tmp_path: Path, target: str, whole: bool) -> None:
    pack(tmp_path / "a.zip", {path: str(text) for path, text in FILES.items()}, {"skills/pdf/link": target})
    source = parse_source("./a.zip", base=tmp_path)
    with open_source(source) as tree:
        reader = SourceReader(source, tree)
        (pdf,) = [found for found in reader.find() if found.name == "pdf"]
        links = reader.read(entry.oid for entry in pdf.entries if entry.mode == "120000")
        if whole:
            assert len(admit(pdf, links)) == 3
        else:
            with pytest.raises(Refused, match="link that leads out"):
                admit(pdf, links)
