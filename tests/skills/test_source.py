from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.skills.source.address import Source, parse_source
from tables import cases

BASE = Path("/srv/project")


def parsed(text: str) -> tuple[str, str, str, str, str]:
    source = parse_source(text, base=BASE)
    return source.kind, source.url, source.ref, source.subpath, source.label


@pytest.mark.requirement("LIF-2")
@cases("text, url, ref, subpath, label")
def test_every_form_of_a_repository_is_read(text: str, url: str, ref: str, subpath: str, label: str | None) -> None:
    assert parsed(text) == ("git", url, ref, subpath, label or url)


@cases("text, url, page")
def test_a_page_url_is_parsed_without_splitting_its_branch_from_its_path(text: str, url: str, page: str) -> None:
    source = parse_source(text, base=BASE)
    assert (source.url, source.page, source.ref, source.subpath) == (url, page, "", "")


def test_a_ref_given_apart_divides_a_page_that_begins_with_it() -> None:
    text = "https://github.com/o/r/tree/feature/x/a"
    source = parse_source(text, base=BASE, ref="feature/x")
    assert (source.page, source.ref, source.subpath) == ("", "feature/x", "a")
    assert parse_source(text, base=BASE, ref="v1").page == "feature/x/a"


@pytest.mark.parametrize("text", ["./a/pdf.skill", "pdf.skill", "/srv/pdf.ZIP", "./x.tar", "./x.tar.gz", "./x.tgz"])
def test_a_file_with_the_ending_of_an_archive_is_one(text: str) -> None:
    source = parse_source(text, base=BASE)
    assert (source.kind, source.url) == ("archive", str(BASE / text))
    assert source.label == source.url
    assert source.base_name in {"pdf", "x"}
    assert source.repository == ""


def test_a_folder_that_is_called_like_an_archive_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.zip").mkdir()
    assert parse_source("./a.zip", base=tmp_path).kind == "folder"


def test_an_archive_is_known_by_its_real_path(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"")
    (tmp_path / "b.zip").symlink_to("a.zip")
    assert parse_source("./b.zip", base=tmp_path).url == str(tmp_path / "a.zip")


@pytest.mark.parametrize(("text", "url"), [("./a", "/srv/project/a"), ("../b", "/srv/b"), ("/srv/c", "/srv/c")])
def test_a_path_with_a_prefix_is_a_folder(text: str, url: str) -> None:
    assert parsed(text)[:2] == ("folder", url)


def test_a_folder_is_unknown_to_the_mapping_and_a_repository_is_not() -> None:
    assert parse_source("./a", base=BASE).repository == ""
    assert parse_source("o/r", base=BASE).repository == "o/r"


@cases("text")
def test_an_unsafe_source_is_refused_with_a_hint_and_without_its_password_in_the_message(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_source(text, base=BASE)
    assert "secret" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "  ", "word", "https://", "https://github.com/",
                                  "https://github.com/only", "file:///", "owner/..", "$(touch x)/y"])  # fmt: skip
def test_nonsense_is_a_usage_problem(text: str) -> None:
    with pytest.raises((UsageProblem, Refused)):
        parse_source(text, base=BASE)


def test_a_ref_given_apart_stands_in_for_a_missing_one() -> None:
    assert parse_source("o/r", base=BASE, ref="v1").ref == "v1"
    assert parse_source("o/r@v2", base=BASE, ref="v1").ref == "v2"
    for text in ("./a", "./a.zip"):
        with pytest.raises(UsageProblem):
            parse_source(text, base=BASE, ref="v1")


def test_a_host_that_only_begins_like_another_is_simply_another() -> None:
    assert parse_source("https://github.com.evil.example/o/r", base=BASE).url == "https://github.com.evil.example/o/r"


@pytest.mark.parametrize(
    ("url", "name"), [("https://github.com/o/tools.git", "tools"), ("git@h:a/b.git", "b"), ("file:///a/b", "b")]
)
def test_the_base_name_is_the_last_part(url: str, name: str) -> None:
    assert Source(kind="git", url=url, label=url).base_name == name


@pytest.mark.parametrize("text", ["./a!", "/srv/技能：甲", "./npx skills add x", "./a (b)", "../a。"])
def test_a_folder_may_have_any_name(text: str) -> None:
    assert parsed(text)[:2] == ("folder", str((BASE / text).resolve()))
