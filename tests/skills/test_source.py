from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.skills.source.address import Source, parse_source

BASE = Path("/srv/project")


def parsed(text: str) -> tuple[str, str, str, str, str]:
    source = parse_source(text, base=BASE)
    return source.kind, source.url, source.ref, source.subpath, source.label


@pytest.mark.requirement("LIF-2")
@pytest.mark.parametrize(
    ("text", "url", "ref", "subpath", "label"),
    [
        ("owner/repo", "https://github.com/owner/repo.git", "", "", "owner/repo"),
        ("owner/repo@v1.2", "https://github.com/owner/repo.git", "v1.2", "", "owner/repo"),
        ("owner/repo#feature/x", "https://github.com/owner/repo.git", "feature/x", "", "owner/repo"),
        ("https://github.com/o/r", "https://github.com/o/r.git", "", "", "o/r"),
        ("https://GitHub.com/o/r.git/", "https://github.com/o/r.git", "", "", "o/r"),
        ("https://github.com/o/r#v1", "https://github.com/o/r.git", "v1", "", "o/r"),
        ("owner/repo/path/to/skill", "https://github.com/owner/repo.git", "", "path/to/skill", "owner/repo"),
        ("owner/repo.git/a/", "https://github.com/owner/repo.git", "", "a", "owner/repo"),
        ("owner/repo/a/b@v1", "https://github.com/owner/repo.git", "v1", "a/b", "owner/repo"),
        ("owner/repo/a/b#feature/x", "https://github.com/owner/repo.git", "feature/x", "a/b", "owner/repo"),
        ("owner/repo@0123456", "https://github.com/owner/repo.git", "0123456", "", "owner/repo"),
        ("https://github.com/o/r/tree/main", "https://github.com/o/r.git", "main", "", "o/r"),
        ("https://github.com/o/r/blob/v1/SKILL.md", "https://github.com/o/r.git", "v1", "", "o/r"),
        ("https://github.com/o/r/blob/v1/SKILL.md#usage", "https://github.com/o/r.git", "v1", "", "o/r"),
        ("https://github.com/o/r/tree/a/b/c#a/b", "https://github.com/o/r.git", "a/b", "c", "o/r"),
        ("https://gitlab.com/g/s/p/-/tree/main", "https://gitlab.com/g/s/p.git", "main", "", None),
        ("https://git.example.org/a/b/c.git", "https://git.example.org/a/b/c.git", "", "", None),
        ("ssh://git@example.org:2222/a/b", "ssh://git@example.org:2222/a/b", "", "", None),
        ("git@example.org:a/b.git", "git@example.org:a/b.git", "", "", None),
        ("git@example.org:a/b.git#v2", "git@example.org:a/b.git", "v2", "", "git@example.org:a/b.git"),
        ("file:///srv/repo", "file:///srv/repo", "", "", None),
        ("file:///srv/repo#v1", "file:///srv/repo", "v1", "", "file:///srv/repo"),
    ],
)
def test_every_form_of_a_repository_is_read(text: str, url: str, ref: str, subpath: str, label: str | None) -> None:
    assert parsed(text) == ("git", url, ref, subpath, label or url)


@pytest.mark.parametrize(
    ("text", "url", "page"),
    [
        ("https://github.com/o/r/tree/main/a/b%20c", "https://github.com/o/r.git", "main/a/b c"),
        ("https://github.com/o/r/tree/feature%2Fx/a/", "https://github.com/o/r.git", "feature/x/a"),
        ("https://github.com/o/r/blob/v1/a/SKILL.md", "https://github.com/o/r.git", "v1/a"),
        ("https://github.com/o/r/blob/v1/a/SKILL.md?plain=1#L3-L9", "https://github.com/o/r.git", "v1/a"),
        ("https://gitlab.com/g/s/p/-/tree/a/b/c", "https://gitlab.com/g/s/p.git", "a/b/c"),
        ("https://git.example.org/p.git/-/blob/a/b/c/SKILL.md", "https://git.example.org/p.git", "a/b/c"),
    ],
)
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


@pytest.mark.parametrize(
    "text",
    [
        "ext::sh -c touch% /tmp/x",
        "EXT::sh",
        "fd::17",
        "foo::https://example.org/a",
        "--upload-pack=touch /tmp/x",
        "-u",
        "http://example.org/a/b",
        "git://example.org/a/b",
        "ftp://example.org/a",
        "https://user:secret@example.org/a/b",
        "https://token@example.org/a/b",
        "ssh://git:secret@example.org/a/b",
        "ssh://-oProxyCommand=x/a",
        "https://exämple.org/a/b",
        "https://githսb.com/a/b",
        "https://xn--githb-bxj.com/a/b",
        "https://www.xn--e1awd7f.com/a/b",
        "git@xn--githb-bxj.com:a/b",
        "git@githսb.com:a/b",
        "-u@example.org:a/b",
        "git@example.org:-oProxyCommand=x",
        "ssh://-u@example.org/a",
        "ssh://git@-oProxyCommand=x/a",
        "https://github.com\\@evil.example/a/b",
        "..\\a",
        "https://example.org/a/b%00c",
        "https://example.org/a/%5c/b",
        "https://example.org/a/../b",
        "https://example.org/a/%2e%2e/b",
        "file:///srv/../etc",
        "git@example.org:a/../../b",
        "owner/repo/../x",
        "owner/repo/a//b",
        "owner/repo/a#-x",
        "https://gitlab.com/g/p/-/tree/-x/a",
        "https://gitlab.com/g/p/-/tree/main/../x",
        "file://elsewhere/srv/repo",
        "owner/repo@--upload-pack=x",
        "owner/repo#-x",
        "owner/repo#a..b",
        "owner/repo#a:b",
        "owner/repo#a b",
        "owner/repo@refs/heads/x^{commit}",
        "owner/re\x1bpo",
        "https://example.org/a\nb",
        "https://github.com/o/r/tree/main/../../x",
        "https://github.com/o/r/tree/main/%2e%2e/x",
        "https://github.com/o/r/tree/--upload-pack=x/a",
    ],
)
def test_an_unsafe_source_is_refused_with_a_hint_and_without_its_password_in_the_message(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_source(text, base=BASE)
    assert "secret" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "  ", "word", "example.org:a/b", "https://", "https://example.org/",
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
