from __future__ import annotations

from pathlib import Path

import pytest

from navigator_kernel.errors import Refused, UsageProblem
from navigator_kernel.skills.source import Source, parse_source

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
        ("https://github.com/o/r/tree/main/a/b%20c", "https://github.com/o/r.git", "main", "a/b c", "o/r"),
        ("https://github.com/o/r/tree/main", "https://github.com/o/r.git", "main", "", "o/r"),
        ("https://github.com/o/r/blob/v1/a/SKILL.md", "https://github.com/o/r.git", "v1", "a", "o/r"),
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
def test_what_could_start_something_else_is_refused(text: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_source(text, base=BASE)
    assert "secret" not in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "  ", "word", "a/b/c/d", "example.org:a/b", "https://", "https://example.org/",
                                  "https://github.com/only", "file:///", "owner/..", "$(touch x)/y"])  # fmt: skip
def test_nonsense_is_a_usage_problem(text: str) -> None:
    with pytest.raises((UsageProblem, Refused)):
        parse_source(text, base=BASE)


def test_a_ref_given_apart_stands_in_for_a_missing_one() -> None:
    assert parse_source("o/r", base=BASE, ref="v1").ref == "v1"
    assert parse_source("o/r@v2", base=BASE, ref="v1").ref == "v2"
    with pytest.raises(UsageProblem):
        parse_source("./a", base=BASE, ref="v1")


@pytest.mark.parametrize(
    ("url", "name"), [("https://github.com/o/tools.git", "tools"), ("git@h:a/b.git", "b"), ("file:///a/b", "b")]
)
def test_the_base_name_is_the_last_part(url: str, name: str) -> None:
    assert Source(kind="git", url=url, label=url).base_name == name
